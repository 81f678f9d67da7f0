"""A ranker as a black box: scores of changed texts for one query, each distinct text once, and so many at most."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from whyrank.core import Floats, Ranker, WhyrankError, name_of
from whyrank.scoring import Engine, one_line

CHARACTERS = 50_000_000  # of changed texts that are scored together: those of a long text would fill any memory


class BlackBox:
    """The scores of texts for one query, by at most `calls` distinct texts put to the ranker.

    Attributes:
        used: distinct texts scored so far.
        failed: those of them that have no finite score.
    """

    def __init__(self, ranker: Ranker, query: str, engine: Engine, calls: int) -> None:
        self.ranker, self.query, self.engine, self.calls = ranker, query, engine, calls
        self._known: dict[bytes, float] = {}

    @property
    def used(self) -> int:
        """How many distinct texts were scored."""
        return len(self._known)

    @property
    def left(self) -> int:
        """How many more texts may be scored."""
        return self.calls - self.used

    @property
    def failed(self) -> int:
        """How many texts have no finite score."""
        return sum(not np.isfinite(score) for score in self._known.values())

    def whole(self, texts: Sequence[str]) -> list[float]:
        """The scores of the texts that are explained; an error where one is not finite."""
        found: list[float] = self.scores(texts).tolist()
        for text, score in zip(texts, found, strict=True):
            if not np.isfinite(score):
                shown = one_line(text, 60)
                why = one_line(self._reason or f"its score is {score}")
                raise WhyrankError(f"ranker {name_of(self.ranker)!r} has no finite score for {shown!r}: {why}")
        return found

    def scores(self, texts: Sequence[str]) -> Floats:
        """The score of each text, NaN where there is none; texts beyond the number allowed have none either."""
        keys = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        waiting = list(new.items())[: self.left]
        while waiting:
            size = np.cumsum([len(text) for _, text in waiting])
            some = waiting[: max(1, int(np.searchsorted(size, CHARACTERS)))]
            waiting = waiting[len(some) :]
            found = self.engine.score(
                self.ranker, [self.query], [text for _, text in some], np.zeros(len(some), np.int32),
                np.arange(len(some), dtype=np.int32),
            )  # fmt: skip
            self._reason = found.failures[0].reason if found.failures else ""
            self._known |= zip((key for key, _ in some), found.values.tolist(), strict=True)
        return np.array([self._known.get(key, np.nan) for key in keys])
