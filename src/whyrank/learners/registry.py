"""Table learners by name: how a table is learned as a call string, and the table of a collection from it.

    table = learn("em(iterations=3,analyzer=lucene)", "sample")

A learner of a plugin is a frozen dataclass of its settings with a method `learn(collection)`, under an entry point of
the group `whyrank.table_learners`. The fields are all that can be set, and the `Attributes:` section of the docstring
explains them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from whyrank.core import Call, Registry, parse_call

if TYPE_CHECKING:
    from whyrank.data import Collection
    from whyrank.tables import TermTable


class TableLearner(Protocol):
    """What a call string of the registry makes."""

    @property
    def name(self) -> str:
        """Call string."""
        ...

    def learn(self, collection: Collection | None = None) -> TermTable:
        """The table that is learned from a collection."""
        ...


table_learners: Registry[TableLearner] = Registry(
    "table_learners",
    "table learner",
    {
        "em": "whyrank.learners.em.learner:EM",
        "local-to-global": "whyrank.learners.local.learner:LocalToGlobal",
        "neural": "whyrank.learners.neural:Neural",
        "parm": "whyrank.learners.parm.table:PaRM",
    },
)
"""Makes learners by call string, `em(iterations=3)`: each has `learn(collection)`, which gives a `TermTable`."""


def learn(learner: str | TableLearner, collection: str | Collection | None = None, **settings: Any) -> TermTable:
    """Learn a term table from a collection.

    Args:
        learner: a call string, such as `em`, `neural:FOLDER` or one of a plugin, or a learner object.
        collection: a collection, or its spec; networks that are trained already need none.
        settings: of the learner, on top of those in the call string.

    Example:
        >>> table = learn("em(iterations=2)", "sample", threshold=0.01)
        >>> len(table) > 0
        True
    """
    from whyrank.data import open_collection

    if isinstance(learner, str):
        call = parse_call(learner)
        learner = table_learners.build(Call(call.name, call.resource, {**call.arguments, **settings}))
    return learner.learn(None if collection is None else open_collection(collection))
