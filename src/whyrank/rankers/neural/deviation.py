"""How far scores that were computed faster are from those of torch in fp32, measured on the first pairs scored."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyrank.core import Codes, Floats, WhyrankError, cache_folder, read_sealed_json, sealed_json, write_text
from whyrank.rankers.neural.passages import TextPairs

PAIRS = 256
TIMED = 128  # fewer pairs say nothing about the speed
WARM = 16  # pairs that are scored before time is taken
ENOUGH = 0.99
LOW = f": less than {ENOUGH:g}, use precision=exact where the order of close texts matters"
Score = Callable[[TextPairs], Floats]
log = logging.getLogger(__name__)


class Deviation(NamedTuple):
    """Scores beside those of torch in fp32.

    Attributes:
        pairs: how many pairs were scored both ways.
        tau: Kendall's tau-b of the two orders, mean over queries; None where no query has two texts to order.
        largest: the largest absolute difference of two scores.
        times: how many times as fast, once both have run; None for too few pairs to tell.
    """

    pairs: int
    tau: float | None
    largest: float
    times: float | None = None

    def __str__(self) -> str:
        tau = "" if self.tau is None else f"Kendall tau {_short(self.tau)} to fp32, "
        difference = f"largest difference {_short(self.largest)}"
        times = "" if self.times is None else f"{self.times:.1f} times as fast as torch fp32; "
        return f"{times}{tau}{difference} (on {self.pairs} pairs)"


class Watch:
    """The first pairs that a ranker scored, and how far its scores of them are from those of torch in fp32."""

    def __init__(self, how: str, identity: str, fast: Score, load_exact: Callable[[], Score]) -> None:
        self._how, self._identity, self._fast, self._load_exact = how, identity, fast, load_exact
        self._pairs: dict[tuple[str, str], None] = {}
        self._found: Deviation | None = None

    def add(self, queries: Sequence[str], docs: Sequence[str]) -> None:
        """Note pairs that were scored; they are compared when the deviation is asked for, not while others wait."""
        if len(self._pairs) < PAIRS:
            new = dict.fromkeys(zip(queries, docs, strict=True))
            self._pairs |= dict.fromkeys(
                islice((pair for pair in new if pair not in self._pairs), PAIRS - len(self._pairs))
            )

    @property
    def deviation(self) -> Deviation | None:
        """The deviation on the pairs so far, or one on more pairs that was measured in an earlier run."""
        if self._found is None or self._found.pairs < len(self._pairs):
            kept = recall(self._identity)
            if kept is not None and kept.pairs > len(self._pairs):
                return kept
            if self._pairs:
                self._measure()
        return self._found

    @property
    def line(self) -> str:
        """The deviation in words."""
        return f"{self._how}, {self.deviation or 'not compared with fp32, as nothing was scored'}"

    def _measure(self) -> None:
        pairs = TextPairs.of(*zip(*self._pairs, strict=True))
        self._found = measure(pairs, self._fast, self._load_exact())
        remember(self._identity, self._found)
        low = self._found.tau is not None and self._found.tau < ENOUGH
        log.log(logging.WARNING if low else logging.INFO, "%s%s", self.line, LOW if low else "")


def lines_of(ranker: object) -> list[str]:
    """How a ranker, and the rankers that it is made of, computed their scores, where not by torch in fp32."""
    ranker = getattr(ranker, "unnamed", ranker)
    own = getattr(ranker, "how_computed", None)
    held = [getattr(ranker, each.name, None) for each in fields(ranker)] if is_dataclass(ranker) else []
    parts = [part for value in held for part in (value if isinstance(value, tuple) else (value,))]
    inner = [line for part in parts if hasattr(part, "score") for line in lines_of(part)]
    return [*([own] if isinstance(own, str) else []), *inner]


def measure(pairs: TextPairs, fast: Score, exact: Score) -> Deviation:
    """Score pairs both ways; some of them once before, so that what is only done once is not timed."""
    few = pairs._replace(query=pairs.query[:WARM], doc=pairs.doc[:WARM])
    enough = len(pairs.query) >= TIMED
    scores, seconds = [], []
    for score in (fast, exact):
        if enough:
            score(few)
        start = time.perf_counter()
        scores.append(score(pairs))
        seconds.append(time.perf_counter() - start)
    found, expected = scores
    largest = float(np.max(np.abs(found - expected), initial=0.0))
    times = seconds[1] / max(seconds[0], 1e-9) if enough else None
    return Deviation(len(pairs.query), mean_tau(pairs.query, found, expected), largest, times)


def mean_tau(query: Codes, found: Floats, expected: Floats) -> float | None:
    """Kendall's tau-b between two scorings, mean over the queries whose texts both of them order."""
    taus = []
    for code in np.unique(query):
        sides = [scores[query == code] for scores in (found, expected)]
        if not np.isnan(sides).any():
            a, b = (np.sign(np.subtract.outer(rank, rank)) for rank in map(_ranks, sides))
            if untied := math.sqrt(np.count_nonzero(a) * np.count_nonzero(b)):
                taus.append(float((a * b).sum()) / untied)
    return float(np.mean(taus)) if taus else None


def _ranks(scores: Floats) -> Floats:
    """The rank of each score; infinite ones have no differences."""
    return np.unique(scores, return_inverse=True)[1].astype(np.float64)


def remember(identity: str, deviation: Deviation) -> None:
    """Keep a deviation for runs in which all scores come from the store."""
    try:
        write_text(_file(identity), sealed_json(deviation._asdict()))
    except (OSError, WhyrankError) as error:
        log.info("the deviation is not kept: %s", error)


def recall(identity: str) -> Deviation | None:
    """The deviation that was measured last for a ranker of this identity."""
    try:
        return Deviation(**read_sealed_json(_file(identity), "remove it"))
    except (OSError, ValueError, TypeError, WhyrankError):
        return None


def _file(identity: str) -> Path:
    return cache_folder() / "deviations" / f"{sha256(identity.encode('utf-8', 'replace')).hexdigest()[:32]}.json"


def _short(number: float) -> str:
    """Three digits behind the point and no zero before it; a very small number as a power of ten."""
    return f"{number:.0e}" if 0 < number < 5e-4 else f"{number:.3f}".removeprefix("0")
