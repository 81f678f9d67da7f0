"""How long fidelity takes on known scores: 200 queries of 1,000 documents, all measures with intervals and tests.

python benchmarks/fidelity.py
"""

from __future__ import annotations

import time

import numpy as np
import scipy.stats

from whyrank.evaluation.fidelity import differences, measures_of, summarise
from whyrank.evaluation.fidelity.agreement import compare_runs

QUERIES, DOCUMENTS = 200, 1_000


def runs() -> list[dict[str, dict[str, float]]]:
    rng = np.random.default_rng(0)
    target = rng.normal(size=(QUERIES, DOCUMENTS))
    near, far = target + rng.normal(size=target.shape), np.round(target + 3 * rng.normal(size=target.shape), 1)
    return [
        {f"q{q}": dict(zip(map(str, range(DOCUMENTS)), row.tolist(), strict=True)) for q, row in enumerate(scores)}
        for scores in (target, near, far)
    ]


def whole(target, near, far):
    cells = {("target", "near"): compare_runs(target, near), ("target", "far"): compare_runs(target, far)}
    return summarise({"all": cells}, measures_of()), differences({"all": cells}, "far", measures_of())


def one(target, near):
    return summarise({"all": {("target", "near"): compare_runs(target, near)}}, measures_of())


def peer(target, near) -> list[float]:
    """Kendall's tau-b by scipy."""
    return [scipy.stats.kendalltau(list(target[q].values()), list(near[q].values())).statistic for q in target]


def timed(what: str, work, *arguments):
    start, cpu = time.perf_counter(), time.process_time()
    found = work(*arguments)
    print(f"{what}: {time.perf_counter() - start:.3f} s by the clock, {time.process_time() - cpu:.3f} s of CPU")
    return found


def main() -> None:
    target, near, far = runs()
    compare_runs({"q0": target["q0"]}, {"q0": near["q0"]})  # compiles
    print(f"{QUERIES} queries of {DOCUMENTS:,} documents")
    found = timed("all measures per query, one surrogate", compare_runs, target, near)
    timed("one surrogate, with means and intervals", one, target, near)
    timed("two surrogates, with means, intervals and paired tests", whole, target, near, far)
    expected = timed("Kendall's tau-b alone, by scipy", peer, target, near)
    print(f"largest difference of tau-b: {np.abs(found.values['kendall'] - expected).max():.0e}")


if __name__ == "__main__":
    main()
