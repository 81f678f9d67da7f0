"""Weights of pairs that were drawn for a sample: a large one is scored in parts, and a stop keeps them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from whyrank.core.checksums import check_seal, sealed_file
from whyrank.core.errors import BadInput
from whyrank.core.progress import Progress
from whyrank.networks.term_pairs_results import Results
from whyrank.networks.term_pairs_running import STORED, Clock
from whyrank.networks.term_pairs_scorer import PairScorer
from whyrank.networks.term_pairs_task import BROKEN

AT_ONCE = {"cpu": 1 << 14, "cuda": 4_000_000}  # pairs that are scored at a time
_FILES = "drawn.*.npy"


class Drawn:
    """Scores drawn pairs as they would be stored."""

    def __init__(self, scorer: PairScorer, results: Results, clock: Clock, at_once: int) -> None:
        """Samples of no more than `at_once` pairs are scored in one go."""
        self._scorer, self._results, self._clock, self._at_once = scorer, results, clock, at_once
        self._parts = 0

    def __call__(self, queries: Any, docs: Any) -> Any:
        """Weights of aligned pairs; `TimeIsUp` between two parts."""
        query, doc = np.asarray(queries), np.asarray(docs)
        return self._scored(query, doc) if len(query) <= self._at_once else self._in_parts(query, doc)

    def forget(self) -> None:
        """Remove what was kept: the step that needed it is done."""
        for file in self._results.folder.glob(_FILES):
            file.unlink()

    def _scored(self, query: Any, doc: Any) -> Any:
        kind = STORED[self._scorer.precision]
        return self._scorer.pairs(query, doc).to(kind).float().cpu().numpy()

    def _in_parts(self, query: Any, doc: Any) -> Any:
        file = self._file(query, doc)
        parts = [_kept(file)]
        first = len(parts[0])
        try:
            parts.extend(self._rest(query[first:], doc[first:]))
        finally:
            found = np.concatenate(parts)
            with sealed_file(file) as out:
                np.save(out, found, allow_pickle=False)
        return found

    def _rest(self, query: Any, doc: Any) -> Iterator[Any]:
        begun = self._clock.elapsed
        with Progress("sample", len(query), unit="pairs") as progress:
            for start in range(0, len(query), self._at_once):
                if self._parts:  # each run goes on by one at least, however short it is
                    self._clock.check()
                at = slice(start, start + self._at_once)
                yield self._scored(query[at], doc[at])
                self._parts += 1
                self._clock.lap()
                progress.step(len(query[at]))
                self._clock.tell(progress, self._clock.elapsed - begun)

    def _file(self, query: Any, doc: Any) -> Path:
        """Where the weights of these pairs by this network are kept."""
        head = hashlib.sha256(self._results.identity.encode())
        for side in (query, doc):
            head.update(np.ascontiguousarray(side, np.int64).tobytes())
        return self._results.folder / _FILES.replace("*", head.hexdigest()[:16])


def _kept(file: Path) -> Any:
    try:
        check_seal(file, "score the sample again")
        found = np.load(file, allow_pickle=False)
        return np.asarray(found, np.float32).reshape(-1)
    except (BadInput, *BROKEN):  # these pairs are scored again
        return np.empty(0, np.float32)
