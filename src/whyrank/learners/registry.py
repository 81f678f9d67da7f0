"""Table learners by name: how a table is learned as a call string, and the table of a collection from it.

    table = table_learners.create("em(iterations=3,analyzer=lucene)").learn(open_collection("sample"))

A learner of a plugin is a frozen dataclass of its settings with a method `learn(collection)`, under an entry point of
the group `whyrank.table_learners`. The fields are all that can be set, and the `Attributes:` section of the docstring
explains them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from whyrank.core import Registry

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
