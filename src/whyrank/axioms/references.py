"""Orders to hold axioms against: that of a run, and that of the judgements. Parts of combinations, above all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whyrank.axioms.axiom import Axiom
from whyrank.axioms.view import View, Views
from whyrank.core.errors import WhyrankError
from whyrank.core.protocols import Codes, Flags, Floats
from whyrank.data import Run, open_run
from whyrank.data.trec import ranking


@dataclass(frozen=True, kw_only=True)
class ORIG(Axiom):
    """The text that the run `candidates` ranks higher wins; texts that are not in it say nothing."""

    name: ClassVar[str] = "ORIG"
    favours: ClassVar[str] = "the text that the given run ranks higher"

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Both are in the run, `a` before `b`."""
        ranks = view.once(("ORIG", self.candidates), lambda: self._ranks(view))
        return np.asarray(ranks[a] < ranks[b])

    def _ranks(self, view: View) -> Floats:
        """The rank of each document; NaN, which is neither less nor more, where it has none."""
        run = view.views.once(("ORIG", self.candidates), lambda: self._run(view.views))
        rank = {doc_id: i for i, doc_id in enumerate(ranking(run.get(view.pool.query_id, {})))}
        return np.array([rank.get(doc_id, np.nan) for doc_id in view.pool.doc_ids], dtype=np.float64)

    def _run(self, views: Views) -> Run:
        collection = views.pools.collection
        if self.candidates is not None:
            return open_run(collection, self.candidates).run
        if len(collection.runs) == 1:
            return next(iter(collection.runs.values()))
        have = ", ".join(collection.runs) or "none"
        raise WhyrankError(f"axiom ORIG needs candidates=RUN (a run file, or a run of the collection: {have})")


@dataclass(frozen=True, kw_only=True)
class ORACLE(Axiom):
    """The text that is judged more relevant wins; a text that is not judged counts as non-relevant."""

    name: ClassVar[str] = "ORACLE"
    favours: ClassVar[str] = "the text that is judged more relevant"

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The grade of `a` is higher; an unjudged document has the non-relevant one."""
        grades, nonrelevant = view.pool.relevance, view.pool.pools.collection.grades.nonrelevant
        known = np.where(np.isnan(grades), nonrelevant, grades)
        return np.asarray(known[a] > known[b])
