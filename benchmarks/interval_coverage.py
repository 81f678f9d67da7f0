"""How often the 95% interval of a study holds the true score, by number of queries: 4,000 simulations a cell.

Effects are +1, 0 or -1. Contrasts of one query agree more than chance: each query has its own probabilities, drawn
from a Dirichlet distribution with the given correlation within queries. Prints a table for docs/statistics.md:

    python benchmarks/interval_coverage.py
"""

from __future__ import annotations

import argparse

import numpy as np

from whyrank.core import mean_interval

QUERIES = (8, 11, 14, 15, 25, 40)
EFFECTS = {
    "+1 or -1, half each": (0.5, 0.0, 0.5),
    "+1 or -1, 90% +1": (0.9, 0.0, 0.1),
    "three-valued: 5% +1, 20% -1": (0.05, 0.75, 0.2),
}
SIZES = {"1": 0.0, "20": 0.0, "1 to 300": 1.2}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--correlation", type=float, nargs="*", default=[0.0, 0.2, 0.6])
    asked = parser.parse_args()
    print("| effects | contrasts per query | correlation |", " | ".join(map(str, QUERIES)), "|")
    print("| --- | --- | --- |", " | ".join("---" for _ in QUERIES), "|")
    for effects, probabilities in EFFECTS.items():
        for sizes in SIZES:
            for correlation in asked.correlation if sizes != "1" else (0.0,):
                found = [coverage(probabilities, sizes, correlation, q, asked.simulations) for q in QUERIES]
                cells = " | ".join(f"{100 * share:.1f}" for share in found)
                print(f"| {effects} | {sizes} | {correlation:g} | {cells} |", flush=True)


def coverage(
    probabilities: tuple[float, ...], sizes: str, correlation: float, queries: int, simulations: int
) -> float:
    draw, truth, covered = np.random.default_rng(queries), probabilities[0] - probabilities[2], 0
    for _ in range(simulations):
        counts = contrasts_per_query(sizes, queries, draw)
        if correlation:
            concentration = (1 - correlation) / correlation * np.maximum(probabilities, 1e-9)
            leaning = draw.dirichlet(concentration, queries)
        else:
            leaning = np.tile(probabilities, (queries, 1))
        effects = [draw.choice([1, 0, -1], n, p=p / p.sum()) for n, p in zip(counts, leaning, strict=True)]
        low, high = mean_interval(np.concatenate(effects), np.repeat(np.arange(queries), counts), bounds=(-1, 1))
        covered += low <= truth + 1e-12 and high >= truth - 1e-12
    return covered / simulations


def contrasts_per_query(sizes: str, queries: int, draw: np.random.Generator) -> np.ndarray:
    """The same number for every query, or log-normal sizes with a median of 12."""
    if SIZES[sizes] == 0:
        return np.full(queries, int(sizes))
    return np.clip(np.exp(draw.normal(2.5, SIZES[sizes], queries)), 1, 300).astype(int)


if __name__ == "__main__":
    main()
