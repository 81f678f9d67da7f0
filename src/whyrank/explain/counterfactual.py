"""Counterfactuals: the smallest edit of one of two texts that turns their order round, verified by scoring.

Words are taken out of the text above, those that raise its score most first, or out of the text below, those that
lower its score most first; and words of the query and of the text above are put in front of the text below. The edit
with the fewest words changed that reverses the order is then shortened as long as it still does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from whyrank.core import Floats
from whyrank.explain.blackbox import BlackBox
from whyrank.explain.explanation import Counterfactual, Part
from whyrank.explain.words import Span, without, words_of

SINGLE, PAIRED = 12, 5  # of the strongest words of a text, so many are taken out alone, so many two at a time
INSERTED = 4  # words of the text above that are put into the text below


class Edit(NamedTuple):
    """Spans to take out of a text, and words to put in front of it."""

    doc: int
    removed: tuple[Span, ...] = ()
    inserted: tuple[str, ...] = ()


class Search:
    """The search for the smallest edit that turns the order of two texts round.

    Args:
        box: who scores.
        docs: the two texts.
        scores: their scores.
        tolerance: scores that differ by no more are equal.
        most: so many texts may be scored.
    """

    def __init__(self, box: BlackBox, docs: Sequence[str], scores: list[float], tolerance: float, most: int) -> None:
        self.box, self.docs, self.scores, self.tolerance = box, docs, scores, tolerance
        self.end = box.used + most
        self.above = 0 if scores[0] > scores[1] else 1
        self.best: tuple[int, float, Edit] | None = None

    def run(self, parts: Sequence[Part]) -> Counterfactual | None:
        """The smallest edit that was found, by what the parts contribute to score(first) - score(second)."""
        sign = 1 if self.above == 0 else -1
        helpful = [
            sorted((part for part in parts if part.doc == doc and sign * part.share > 0), key=lambda p: -abs(p.share))
            for doc in (self.above, 1 - self.above)
        ]
        self.attempt(self._removal([part]) for own in helpful for part in own[:SINGLE])
        inserted = self._insertable(helpful[0])
        if self._smallest > 1:
            self.attempt(Edit(1 - self.above, (), (word,)) for word in inserted)
        if self._smallest > 2:
            self.attempt(self._removal(pair) for own in helpful for pair in combinations(own[:PAIRED], 2))
        for sizes in (range(3, 8), range(8, 20, 3), range(20, 400, 20)):
            if self.best is None:
                self.attempt(self._removal(own[:size]) for own in helpful for size in sizes if size <= len(own))
        if self.best is None and inserted:
            self.attempt([Edit(1 - self.above, (), tuple(inserted))])
        while self._shorten():
            pass
        return None if self.best is None else self._counterfactual(self.best[2], parts)

    def attempt(self, edits: Iterable[Edit]) -> None:
        """Score some edits and keep the smallest that reverses the order; of equal ones the clearest."""
        some = list(edits)
        for edit, margin in zip(some, self._margins(some), strict=True):
            found = (self._size(edit), -margin, edit)
            if margin > self.tolerance and (self.best is None or found < self.best):
                self.best = found

    @property
    def _smallest(self) -> float:
        return math.inf if self.best is None else self.best[0]

    def _shorten(self) -> bool:
        """Leave out what the best edit does not need, each word alone and then as many as possible together."""
        if self.best is None or self.best[0] < 2:
            return False
        size, _, edit = self.best
        spans = [Span(span.start + word.start, span.start + word.end) for span in edit.removed
                 for word in words_of(self.docs[edit.doc][span.start : span.end])]  # fmt: skip
        room = self.end - self.box.used
        units = spans if len(spans) <= max(room, 1) else list(edit.removed)
        smaller = [edit._replace(removed=tuple(s for s in units if s != unit)) for unit in units]
        smaller += [edit._replace(inserted=tuple(w for w in edit.inserted if w != word)) for word in edit.inserted]
        margins = self._margins(smaller)
        needless = [i for i in np.argsort(-margins, kind="stable") if margins[i] > self.tolerance]
        self.attempt(smaller[i] for i in needless)
        several = []
        for count in range(2, len(needless) + 1):
            gone = needless[:count]
            removed = tuple(s for i, s in enumerate(units) if i not in gone)
            inserted = tuple(w for i, w in enumerate(edit.inserted, len(units)) if i not in gone)
            several.append(edit._replace(removed=removed, inserted=inserted))
        self.attempt(several)
        return self.best[0] < size

    def _margins(self, edits: Sequence[Edit]) -> Floats:
        """How far each edit puts the text below over the one above; NaN beyond the number of texts allowed."""
        texts = [self._text(edit) for edit in edits]
        allowed = max(0, self.end - self.box.used)
        found = self.box.scores(texts[:allowed]) if allowed else np.zeros(0)
        scores = np.concatenate([found, np.full(len(texts) - len(found), np.nan)])
        others = np.array([self.scores[1 - edit.doc] for edit in edits])
        raised = np.array([edit.doc != self.above for edit in edits])
        margins = np.where(raised, scores - others, others - scores)
        return np.where(np.isfinite(margins), margins, -np.inf)

    def _text(self, edit: Edit) -> str:
        return " ".join([*edit.inserted, without(self.docs[edit.doc], edit.removed)]).strip()

    def _size(self, edit: Edit) -> int:
        text = self.docs[edit.doc]
        return len(edit.inserted) + sum(len(words_of(text[span.start : span.end])) for span in edit.removed)

    def _removal(self, parts: Sequence[Part]) -> Edit:
        return Edit(parts[0].doc, tuple(sorted(Span(part.start, part.end) for part in parts)))

    def _insertable(self, strongest: Sequence[Part]) -> list[str]:
        """Words of the query, and those that raise the text above most, that the text below lacks."""
        below = self.docs[1 - self.above].casefold()
        query = self.box.query
        asked = [query[start:end] for start, end in words_of(query)]
        given = [part.text for part in strongest[:INSERTED] if len(words_of(part.text)) == 1]
        return [word for word in dict.fromkeys([*asked, *given]) if word.strip(".,;:?!").casefold() not in below]

    def _counterfactual(self, edit: Edit, parts: Sequence[Part]) -> Counterfactual:
        text = self._text(edit)
        score = float(self.box.scores([text])[0])
        scores = (score, self.scores[1]) if edit.doc == 0 else (self.scores[0], score)
        doc = self.docs[edit.doc]
        removed = []
        for start, end in edit.removed:  # a word of a phrase has its part of the share
            [of] = [part for part in parts if part.doc == edit.doc and part.start <= start and end <= part.end]
            words = [len(words_of(doc[a:b])) for a, b in ((start, end), (of.start, of.end))]
            removed.append(Part(doc[start:end], edit.doc, start, end, of.share * words[0] / words[1]))
        size = self._size(edit)
        whole = max(1, len(words_of(doc)))
        return Counterfactual(edit.doc, text, tuple(removed), edit.inserted, scores, size, size / whole)
