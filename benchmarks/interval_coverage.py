"""How often the 95% interval of a study holds the true score, by number of queries: 4,000 simulations a cell.

Effects are +1, 0 or -1. Contrasts of one query agree more than chance: each query has its own probabilities, drawn
from a Dirichlet distribution with the given correlation within queries. Prints a table:

    python benchmarks/interval_coverage.py

With --differences, effects of two rankers on the same contrasts: how often the interval of the difference holds the true
one, and where the true one is zero, how often its p-value is below .05. The rankers agree in the given share of contrasts,
where they have the same effect. A second table is of skewed differences: in some queries rankers differ much, in most
hardly, mostly to one side, and queries have numbers of contrasts from a geometric distribution, or two have 200 and all others 5:

    python benchmarks/interval_coverage.py --differences
"""

from __future__ import annotations

import argparse

import numpy as np

from whyrank.core import cluster_sums, mean_interval, sign_flip_p
from whyrank.studies import paired_interval

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
    parser.add_argument("--differences", action="store_true")
    asked = parser.parse_args()
    if asked.differences:
        differences(asked.simulations)
        skewed_differences(asked.simulations)
        return
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


PAIRS = {
    "half each, both": ((0.5, 0.0, 0.5), (0.5, 0.0, 0.5)),
    "90% +1, both": ((0.9, 0.0, 0.1), (0.9, 0.0, 0.1)),
    "5% +1, 20% -1, both": ((0.05, 0.75, 0.2), (0.05, 0.75, 0.2)),
    "90% +1; half each": ((0.9, 0.0, 0.1), (0.5, 0.0, 0.5)),
    "72% -1; 3% -1": ((0.02, 0.26, 0.72), (0.02, 0.95, 0.03)),
}


def differences(simulations: int) -> None:
    """Coverage, and level in brackets where the true difference is zero, by number of queries."""
    queries = (15, 25, 40)
    print("| effects of two rankers | contrasts per query | agree |", " | ".join(map(str, queries)), "|")
    print("| --- | --- | --- |", " | ".join("---" for _ in queries), "|")
    for effects, pair in PAIRS.items():
        for sizes in SIZES:
            for agree in (0.0, 0.6, 0.9):
                cells = [paired_coverage(pair, sizes, agree, q, simulations) for q in queries]
                print(f"| {effects} | {sizes} | {agree:g} | {' | '.join(cells)} |", flush=True)


def paired_coverage(
    pair: tuple[tuple[float, ...], ...], sizes: str, agree: float, queries: int, simulations: int
) -> str:
    """Each ranker has probabilities of its own in each query, with a correlation of 0.2; in some contrasts the
    second gives what the first does.
    """
    draw, covered, found = np.random.default_rng(queries), 0, 0
    truth = (1 - agree) * np.subtract(*((p[0] - p[2]) for p in pair))
    for seed in range(simulations):
        counts = contrasts_per_query(sizes, queries, draw)
        clusters, chosen = np.repeat(np.arange(queries), counts), []
        for probabilities in pair:
            leaning = draw.dirichlet(4 * np.maximum(probabilities, 1e-9), queries)
            bounds = np.cumsum(leaning, axis=1)[clusters, :2]
            chosen.append(1 - (draw.random(len(clusters))[:, None] > bounds).sum(axis=1))
        first, second = chosen
        paired = first - np.where(draw.random(len(clusters)) < agree, first, second)
        low, high = paired_interval(paired.astype(float), clusters, 2)
        covered += low <= truth + 1e-12 and high >= truth - 1e-12
        found += sign_flip_p(cluster_sums(paired, clusters).sums, 999, seed) < 0.05
    level = f" ({100 * found / simulations:.1f})" if truth == 0 else ""
    return f"{100 * covered / simulations:.1f}{level}"


SKEWED = {  # share of contrasts that differ, correlation within queries, share of gains
    "12% differ, 85% of them gains": (0.12, 0.35, 0.85),
    "10% differ, 90% of them gains": (0.1, 0.3, 0.9),
    "35% differ, 85% of them gains": (0.35, 0.5, 0.85),
    "20% differ, 10% of them gains": (0.2, 0.3, 0.1),
}


def skewed_differences(simulations: int) -> None:
    """Coverage where shares of differing contrasts and of gains have beta distributions over queries."""
    queries = (18, 30, 60, 100)
    print("| differences | contrasts per query |", " | ".join(map(str, queries)), "|")
    print("| --- | --- |", " | ".join("---" for _ in queries), "|")
    for name, (differ, correlation, gains) in SKEWED.items():
        for sizes in ("geometric, mean 20", "two of 200, others 5"):
            cells = []
            for n in queries:
                draw, covered = np.random.default_rng(n), 0
                for _ in range(simulations):
                    counts = (
                        draw.geometric(0.05, n) if sizes.startswith("geo") else np.r_[200, 200, np.full(n - 2, 5)]
                    )
                    clusters = np.repeat(np.arange(n), counts)
                    differing, gaining = (
                        draw.random(len(clusters)) < draw.beta(k * mean, k * (1 - mean), n)[clusters]
                        for mean, k in ((differ, 1 / correlation - 1), (gains, 3))
                    )
                    low, high = paired_interval(np.where(differing, np.where(gaining, 1.0, -1.0), 0.0), clusters, 1)
                    covered += low <= differ * (2 * gains - 1) <= high
                cells.append(f"{100 * covered / simulations:.1f}")
            print(f"| {name} | {sizes} | {' | '.join(cells)} |", flush=True)


def contrasts_per_query(sizes: str, queries: int, draw: np.random.Generator) -> np.ndarray:
    """The same number for every query, or log-normal sizes with a median of 12."""
    if SIZES[sizes] == 0:
        return np.full(queries, int(sizes))
    return np.clip(np.exp(draw.normal(2.5, SIZES[sizes], queries)), 1, 300).astype(int)


if __name__ == "__main__":
    main()
