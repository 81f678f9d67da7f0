"""Any PyTerrier transformer as a ranker: `pyterrier:module:attr`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from whyrank.core import Answered, Floats, MissingExtra, WhyrankError, call_of, check_whole
from whyrank.rankers.grouping import distinct
from whyrank.rankers.importing import module_of, source_digest

_COLUMNS = ["qid", "docno", "score"]
_LACKING = "the transformer gave no row for this pair"


@dataclass(frozen=True, repr=False)
class PyTerrierRanker:
    """A PyTerrier transformer that scores texts: `module:attr` or `path/file.py:attr`.

    It is given a data frame with the columns qid, query, docno and text, one row per pair, and gives back a frame
    with qid, docno and score, in any order. What is no transformer but can be called is called once without
    arguments to make one. Rows that it leaves out are counted as pairs without a score. A score must depend on its
    pair alone: what ranks or normalises within a list sees the batches of the engine, which mean nothing.

    The identity has a hash of the module's source and of what it imports from beside it; what else the transformer
    depends on (an index, a model) is named by `version=`, and only with it scores are reused in a later run.
    """

    resource: str
    version: str | int | float | None = None
    batch_size: int = 64

    arithmetic: ClassVar[str] = "theirs"

    def __post_init__(self) -> None:
        check_whole("pyterrier: batch_size", self.batch_size, 1)

    @property
    def name(self) -> str:
        """Call string."""
        return call_of(self, "pyterrier")

    @property
    def cacheable(self) -> bool:
        """Whether scores may be reused in a later run."""
        return self.version is not None

    def __repr__(self) -> str:
        return f"pyterrier:{self.resource} source={self._source} version={self.version!r}"

    def __getstate__(self) -> dict[str, Any]:
        """The configuration alone: a worker imports the transformer for itself."""
        return {key: value for key, value in self.__dict__.items() if key not in ("_module", "_transformer")}

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Put all pairs to the transformer in one frame."""
        transformer = self._transformer
        query, doc = distinct(queries), distinct(docs)
        pairs = [(f"q{q}", f"d{d}") for q, d in zip(query.codes.tolist(), doc.codes.tolist(), strict=True)]
        if not pairs:
            return np.zeros(0)
        rows = [(q, query.texts[int(q[1:])], d, doc.texts[int(d[1:])]) for q, d in dict.fromkeys(pairs)]
        found = self._scores(transformer.transform(_frame(rows)))
        reasons = {i: _LACKING for i, pair in enumerate(pairs) if pair not in found}
        return Answered(np.array([found.get(pair, np.nan) for pair in pairs]), reasons).handed_over()

    def _scores(self, frame: Any) -> dict[tuple[str, str], float]:
        """The scores of a frame by query and document."""
        lacking = [name for name in _COLUMNS if name not in getattr(frame, "columns", ())]
        if lacking:
            raise WhyrankError(f"ranker {self.name!r} gave back no column {lacking[0]!r}; it must score the pairs")
        columns = (frame["qid"].astype(str), frame["docno"].astype(str), frame["score"].astype(float))
        found: dict[tuple[str, str], float] = {}
        for qid, docno, score in zip(*columns, strict=True):
            if (qid, docno) in found:
                raise WhyrankError(
                    f"ranker {self.name!r} gave back two rows for one pair; it must give one score each"
                )
            found[qid, docno] = score
        return found

    @cached_property
    def _transformer(self) -> Any:
        name = self.resource.rpartition(":")[2]
        found = getattr(self._module, name, None)
        if (isinstance(found, type) or not hasattr(found, "transform")) and callable(found):
            found = self._made(found)
        if not hasattr(found, "transform"):
            raise WhyrankError(
                f"ranker 'pyterrier:{self.resource}': {name!r} is no transformer; it needs transform(df)"
            )
        return found

    def _made(self, maker: Callable[[], Any]) -> Any:
        try:
            return maker()
        except Exception as error:  # other people's code may raise anything
            raise WhyrankError(f"ranker 'pyterrier:{self.resource}' cannot be made: {error}") from error

    @cached_property
    def _source(self) -> str:
        return source_digest(self._module)

    @cached_property
    def _module(self) -> ModuleType:
        return module_of("pyterrier", self.resource)


def _frame(rows: Sequence[tuple[str, str, str, str]]) -> Any:
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise MissingExtra("ranker 'pyterrier'", "pyterrier") from None
    return pandas.DataFrame(rows, columns=["qid", "query", "docno", "text"], dtype=object)  # any text, however odd
