"""Draws within a budget against the whole audit: how often intervals hold its scores, how wide they are, what is saved.

    python benchmarks/budget.py COLLECTION [--ranker bm25 --ranker ql] [--budget 20000pairs] [--width 0.2] [--seeds 100]

All contrasts are scored once. Then the rounds of an audit with a budget are repeated with other seeds, from these scores.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whyrank.core import ALPHA, SharedDocuments
from whyrank.data import open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine, ScoreStore
from whyrank.studies import Budget, Request, answers, make_plan, usual_studies
from whyrank.studies.sampling import MOST, Forecast, Frame, Rounds, pairs_of


@dataclass
class Whole:
    """One study with all its contrasts: the readings of all rankers, and the scores of the whole audit."""

    contrasts: Any
    readings: list[Any]
    findings: list[Any]
    made: int
    symmetric: bool


def whole_audit(spec: str, rankers: list[str], studies: list[str], store: str | None) -> tuple[dict[str, Whole], int]:
    collection = open_collection(spec)
    request = Request(
        studies=studies or usual_studies(spec),
        collection=lambda: collection,
        rankers=lambda opened: [open_ranker(each, Setting(opened)) for each in rankers],
        engine=Engine(ScoreStore(store)) if store else Engine(),
        options={"tolerance": "10%"} if spec == "sample" else {},
    )
    plan, found = replace(make_plan(request), draws=1), dict[str, Whole]()
    for answer in answers(plan):
        if not len(answer.contrasts) or answer.details is not None:
            continue
        made = int(getattr(answer.study, "makes_texts", False))
        known = found.setdefault(answer.name, Whole(answer.contrasts, [], [], made, answer.study.symmetric))
        known.readings.append(answer.reading)
        known.findings.append(answer.findings[0])
    calibration = max((len(t.calibration.diffs) for t in plan.thresholds.values() if t.calibration), default=0)
    return found, calibration


def frame_of(whole: Whole, seed: int) -> tuple[Frame, np.ndarray]:
    order = whole.contrasts.drawing_order(seed, MOST)
    cells = whole.contrasts.cells(seed)[order]
    cells = cells[:, :1] if whole.made else cells
    distinct, first = np.unique(cells, return_index=True)
    by_need = np.argsort(first, kind="stable")
    needed = first[by_need] // cells.shape[1]
    frame = Frame(len(whole.contrasts), len(order), distinct[by_need], needed, whole.made, lambda count: None)
    return frame, order


def interval(whole: Whole, reading: Any, rows: np.ndarray, alpha: float) -> tuple[float, float]:
    shared = SharedDocuments(reading.clusters[rows], whole.contrasts.doc[rows])
    part = replace(
        reading, scores=reading.scores[rows], diffs=reading.diffs[rows], effects=reading.effects[rows],
        finite=reading.finite[rows], clusters=reading.clusters[rows], shared=shared,
    )  # fmt: skip
    return part.interval(part.finite, whole.symmetric, alpha)


def simulate(wholes: dict[str, Whole], budget: Budget, seed: int) -> tuple[list[tuple[bool, float]], int, dict]:
    framed = {name: frame_of(whole, seed) for name, whole in wholes.items()}
    rounds, ends = Rounds({name: frame for name, (frame, _) in framed.items()}, budget), {}
    for looks in rounds:
        for name, look in looks.items():
            rows = np.sort(framed[name][1][: look.units])
            found = [interval(wholes[name], each, rows, ALPHA * look.share) for each in wholes[name].readings]
            ends[name] = found
            plain = [
                max(
                    high - low
                    for low, high in (interval(wholes[name], each, some, ALPHA) for each in wholes[name].readings)
                )
                for some in (rows, rows[::2])
            ]
            rounds.saw(name, max(high - low for low, high in found), Forecast.of(look.units, *plain))
    rows = []
    for name, found in ends.items():
        for (low, high), finding in zip(found, wholes[name].findings, strict=True):
            if finding.ci_low is not None and np.isfinite(low):
                width = (high - low) / max(finding.ci_high - finding.ci_low, 1e-9)
                rows.append((low - 1e-9 <= finding.score <= high + 1e-9, width))
    return (
        rows,
        pairs_of(rounds.frames, rounds.counts),
        {n: max(high - low for low, high in found) for n, found in ends.items()},
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("collection")
    parser.add_argument("--ranker", action="append", default=[])
    parser.add_argument("--study", action="append", default=[])
    parser.add_argument("--budget", default="20000pairs")
    parser.add_argument("--width", type=float)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--store")
    given = parser.parse_args()
    start = time.perf_counter()
    wholes, _ = whole_audit(given.collection, given.ranker or ["bm25", "ql"], given.study, given.store)
    frames = {name: frame_of(whole, 0)[0] for name, whole in wholes.items()}
    every = pairs_of(frames, {name: frame.size for name, frame in frames.items()})
    print(f"{len(wholes)} studies, {every:,} pairs in all, scored in {time.perf_counter() - start:.0f} s")
    budget = Budget.of(None if given.budget == "none" else given.budget, given.width)
    assert budget is not None
    covered, widths, pairs = [], [], []
    for seed in range(given.seeds):
        rows, used, narrow = simulate(wholes, budget, seed)
        covered += [row[0] for row in rows]
        widths += [row[1] for row in rows]
        pairs.append(used)
    print(f"seeds {given.seeds}, findings {len(covered):,}")
    print(f"intervals that hold the score of the whole audit: {np.mean(covered):.2%}")
    print(
        f"median width, relative to the whole audit's: {np.median(widths):.2f}, 90th percentile {np.quantile(widths, 0.9):.2f}"
    )
    print(f"pairs drawn: median {np.median(pairs):,.0f}, at most {max(pairs):,} of {every:,}")
    if given.width:
        print(
            f"studies narrower than {given.width}: {sum(w <= given.width for w in narrow.values())} of {len(narrow)}"
        )


if __name__ == "__main__":
    main()
