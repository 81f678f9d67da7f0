"""Occlusion: what words and phrases contribute to a score, from the scores of texts that lack some of them.

The score of a text without some of its words is modelled as the score of the whole text minus the shares of what was
taken out. The shares are the weighted least squares solution over all changed texts: one without each word, and
others without several words at random, where a text counts 1 / (number of words or phrases taken out). Where a ranker
is additive, the shares are its weights. A long text is cut into phrases; those that matter most are cut further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from whyrank.core import Flags, Floats, generator
from whyrank.explain.blackbox import BlackBox
from whyrank.explain.explanation import Part
from whyrank.explain.words import Span, phrases, without, words_of

SPLIT = 4  # a phrase that matters is cut into so many
LEAST_UNSEEN = 3  # texts to judge the fit on
ROUNDING = 1e-12  # of the largest score; a smaller share is none


class Unit(NamedTuple):
    """A word or phrase of one of the texts."""

    doc: int
    words: list[Span]

    @property
    def span(self) -> Span:
        """From the first character of its first word to the last one of its last word."""
        return Span(self.words[0].start, self.words[-1].end)


@dataclass
class Occlusion:
    """The words and phrases of one or two texts, and the scores of the texts that lack some of them.

    Args:
        box: who scores.
        docs: the texts.
        scores: theirs.
        seed: of the random removals.
    """

    box: BlackBox
    docs: Sequence[str]
    scores: Sequence[float]
    seed: int

    def __post_init__(self) -> None:
        """Nothing is removed yet."""
        self.base = np.array(self.scores)
        self.units: list[Unit] = []
        self.rows: list[tuple[int, list[Span]]] = []
        self.drops: list[float] = []

    def remove_each(self, most: int) -> None:
        """Score the texts without each word; of more than `most` words without each phrase, cut where it matters."""
        words = [words_of(text) for text in self.docs]
        total = sum(map(len, words))
        for doc, own in enumerate(words):
            count = len(own) if total <= most else min(len(own), max(1, most * len(own) // (3 * total)))
            cut = phrases(self.docs[doc], own, count) if count else []
            self.units += [Unit(doc, some) for some in cut]
        strength = dict(enumerate(self._remove([(unit.doc, [unit.span]) for unit in self.units])))
        left = most - len(self.units)
        while True:
            longest = max((len(unit.words) for unit in self.units), default=1)
            rounds = max(1, int(np.ceil(np.log(longest) / np.log(SPLIT))))
            order = sorted((i for i in strength if len(self.units[i].words) > 1), key=lambda i: -strength[i])
            chosen = [i for i in order if strength[i] > 0][: max(1, left // (SPLIT * rounds))]
            made: list[Unit] = []
            for i in chosen:
                unit = self.units[i]
                count = min(SPLIT, len(unit.words))
                if len(made) + count <= left:
                    made += [Unit(unit.doc, some) for some in phrases(self.docs[unit.doc], unit.words, count)]
                    del strength[i]
            if not made:
                break
            left -= len(made)
            found = self._remove([(unit.doc, [unit.span]) for unit in made])
            strength |= zip(range(len(self.units), len(self.units) + len(made)), found, strict=True)
            self.units += made
        self.units = sorted(self.units[i] for i in strength)

    def remove_some(self, most: int) -> float | None:
        """Score texts without several words drawn at random; give R^2 on the half of them that is not fitted to."""
        random = generator(self.seed, "explain", self.box.query, *self.docs)
        drawn: dict[frozenset[int], None] = {}
        for _ in range(20 * most):
            if len(drawn) == most or not self.units:
                break
            doc = self.units[random.integers(len(self.units))].doc
            own = [i for i, unit in enumerate(self.units) if unit.doc == doc]
            if len(own) > 1:
                size = random.integers(2, max(2, len(own) // 2) + 1)
                drawn[frozenset(random.choice(own, size, replace=False).tolist())] = None
        rows = [(self.units[min(some)].doc, [self.units[i].span for i in sorted(some)]) for some in drawn]
        unseen = min(len(rows) // 2, max(LEAST_UNSEEN, self.box.calls // 10))
        self._remove(rows[unseen:])
        kept = len(self.rows)
        self._remove(rows[:unseen])
        covered, drops = self._covered(self.rows[kept:]), np.array(self.drops[kept:])
        del self.rows[kept:], self.drops[kept:]
        finite = np.isfinite(drops)
        spread = ((drops[finite] - drops[finite].mean()) ** 2).sum() if finite.any() else 0.0
        if finite.sum() < LEAST_UNSEEN or spread <= 1e-12 * max(1.0, float(np.abs(self.base).max()) ** 2):
            return None
        return float(1 - ((drops - covered @ self.shares())[finite] ** 2).sum() / spread)

    def parts(self) -> list[Part]:
        """What each unit contributes to the score of the text, or to score(first) - score(second)."""
        rows = zip(self.units, self.shares().tolist(), strict=True)
        return [Part(self.docs[u.doc][slice(*u.span)], u.doc, *u.span, -s if u.doc else s) for u, s in rows]

    def shares(self) -> Floats:
        """What each unit contributes to the score of its text."""
        drops = np.array(self.drops)
        finite = np.isfinite(drops)
        covered = self._covered(self.rows)[finite]
        root = 1 / np.sqrt(np.maximum(covered.sum(axis=1), 1))
        found = np.linalg.lstsq(root[:, None] * covered, root * drops[finite], rcond=None)[0]
        return np.where(np.abs(found) > ROUNDING * np.abs([*self.base, *drops[finite]]).max(), found, 0.0)

    def _remove(self, rows: Sequence[tuple[int, list[Span]]]) -> list[float]:
        """Score texts without some spans, and give how far each score falls or rises."""
        scores = self.box.scores([without(self.docs[doc], spans) for doc, spans in rows])
        drops = self.base[[doc for doc, _ in rows]] - scores if rows else scores
        self.rows += rows
        self.drops += drops.tolist()
        return [float(drop) for drop in np.nan_to_num(np.abs(drops), posinf=0.0)]  # no finite score: no effect

    def _covered(self, rows: Sequence[tuple[int, list[Span]]]) -> Flags:
        """Which units each row takes out."""
        places = np.array([(unit.doc, *unit.span) for unit in self.units]).reshape(-1, 3)
        found = np.zeros((len(rows), len(self.units)), np.bool_)
        for i, (doc, spans) in enumerate(rows):
            for start, end in spans:
                found[i] |= (places[:, 0] == doc) & (places[:, 1] >= start) & (places[:, 2] <= end)
        return found
