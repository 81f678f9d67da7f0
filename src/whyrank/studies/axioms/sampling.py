"""Instances in bounded memory: all of them, or beyond a limit a sample of stated seed and rate."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from whyrank.core import Codes
from whyrank.studies.axioms.view import View
from whyrank.studies.pools import Pool

Keys = npt.NDArray[np.uint64]


class Sampler:
    """Takes blocks of instances and holds at most `most` of them.

    Whether an instance is kept depends on a hash of the seed, the query and its documents alone: a hash below
    2**64 / 2**k keeps a share 2**-k. Each time the limit is passed, k (`halvings`) grows by one, so the sample does
    not depend on the order in which instances come.
    """

    def __init__(self, most: int, seed: int) -> None:
        self.most, self.seed = most, seed
        self.found, self.held, self.halvings = 0, 0, 0
        self._blocks: list[tuple[View, Codes]] = []

    def offer(self, view: View, rows: Codes) -> None:
        """Take the instances of a block: rows of document numbers."""
        if not len(rows):
            return
        self.found += len(rows)
        kept = self._thinned(view, rows)
        self._blocks.append((view, kept))
        self.held += len(kept)
        while self.held > self.most:
            self.halvings += 1
            self._blocks = [(view, self._thinned(view, rows)) for view, rows in self._blocks]
            self.held = sum(len(rows) for _, rows in self._blocks)

    def blocks(self) -> list[tuple[Pool, Codes]]:
        """What is held, by pool."""
        return [(view.pool, rows) for view, rows in self._blocks]

    def dropped(self) -> dict[str, int]:
        """How many instances were not kept, and by which rule."""
        if not self.halvings:
            return {}
        return {f"not drawn (rate 1/{2**self.halvings}, seed {self.seed})": self.found - self.held}

    def _thinned(self, view: View, rows: Codes) -> Codes:
        if not self.halvings:
            return rows
        keys = view.once(("keys", self.seed), lambda: _keys(view, self.seed))
        hashes = np.zeros(len(rows), np.uint64)
        for column in rows.T:  # the finaliser of splitmix64, over the documents in their order
            hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + keys[column]
            hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            hashes ^= hashes >> np.uint64(31)
        return rows[hashes < np.uint64(2 ** (64 - self.halvings))]


def _keys(view: View, seed: int) -> Keys:
    """A hash per document of a view."""
    texts = ["\x1f".join((str(seed), view.pool.query_id, doc_id)) for doc_id in view.pool.doc_ids]
    digests = b"".join(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8] for text in texts)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
