"""How long fitting the weights of a fuse takes, on generated scores: one relevant text among the candidates, RR@10.

python benchmarks/fusion.py
"""

from __future__ import annotations

import time

import numpy as np

from whyrank.evaluation.fusion.ascent import fit
from whyrank.evaluation.fusion.objectives import RankedGains, cut


def problem(queries: int, depth: int, parts: int):
    rng = np.random.default_rng(0)
    offsets, gains = np.arange(queries + 1, dtype=np.int64) * depth, np.zeros(queries * depth)
    gains[offsets[:-1] + rng.integers(0, depth, queries)] = 1
    matrix = rng.normal(size=(queries * depth, parts)) + 0.7 * gains[:, None]
    discounts = cut(1 / np.arange(1, depth + 2, dtype=np.float64), 10)
    return matrix, RankedGains(offsets, gains, discounts, np.ones(queries), queries, first=True)


def main() -> None:
    fit(*problem(10, 5, 2), restarts=1)  # compiles
    for queries, depth, parts in ((1_000, 20, 3), (5_000, 20, 3), (5_000, 100, 3)):
        given = problem(queries, depth, parts)
        start = time.process_time()
        found = fit(*given, restarts=10)
        seconds, passes = time.process_time() - start, sum(ascent.passes for ascent in found.ascents)
        print(
            f"{queries:,} queries, depth {depth}, {parts} parts, 10 ascents ({passes} passes): {seconds:.2f} s of CPU"
        )


if __name__ == "__main__":
    main()
