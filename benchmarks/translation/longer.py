"""Short against full where texts are longer than a chunk, from the scores that `elsewhere.py` brought back.

    WHYRANK_DATA=FOLDER python benchmarks/translation/longer.py WORK CARRIED OUT...

A network that reads one chunk sees the first 200 pieces of a text, one that reads three the first 600. Four views of the
test part of each target: all questions; those whose relevant candidates are all longer than a chunk; those whose relevant
candidates all fit into it; and those that have a relevant candidate when all candidates that fit into a
chunk are taken away. Means over seeds for each question, then tests, corrected over one view.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from back import Back, claimed, judged, only, opened_back
from indexed import Run
from targets import Target, targets

from whyrank.data import Collection
from whyrank.evaluation import evaluate

CHUNK = 200  # pieces
FEWEST = 20  # questions, below which a view is counted and not tested
CLAIMS = {"vanilla": "vanilla-full > vanilla-short", "bert-model1": "bert-model1-full > bert-model1-short"}
SYSTEMS = {side for claim in CLAIMS.values() for side in claim.split(" > ")}


def relevant(collection: Collection, run: Run, grade: int) -> dict[str, list[str]]:
    """The relevant candidates of each question that has any."""
    found = {q: [d for d in docs if collection.qrels.get(q, {}).get(d, 0) >= grade] for q, docs in run.items()}
    return {q: docs for q, docs in found.items() if docs}


def views(run: Run, right: Mapping[str, list[str]], lengths: Mapping[str, int], chunk: int = CHUNK) -> dict[str, Run]:
    """The questions and candidates of each view."""
    over = {q: [lengths[d] > chunk for d in docs] for q, docs in right.items()}
    long = {q: {d: s for d, s in run[q].items() if lengths[d] > chunk} for q in right if any(over[q])}
    return {
        "all": run,
        "relevant longer": {q: run[q] for q in right if all(over[q])},
        "relevant within": {q: run[q] for q in right if not any(over[q])},
        "candidates longer": long,
    }


def like(run: Run, view: Run) -> Run:
    """A run with the questions and candidates of a view."""
    return {q: {d: run[q][d] for d in docs} for q, docs in view.items()}


def lengths_of(back: Back, texts: list[str], target: str) -> dict[str, int]:
    """Pieces of each candidate, as many as one more than a chunk has at most."""
    sizes = [len(ids) for ids in back.pieces.ids(texts, CHUNK + 1)]
    rows = [row for row in back.rows if row["target"] == target]
    return {d: sizes[i] for row in rows for d, i in zip(row["docs"], row["texts"], strict=True)}


def told(back: Back, target: Target, lengths: Mapping[str, int]) -> list[str]:
    """The lines of a target."""
    keys = [key for key in back.scores if key.rpartition(".")[0] in SYSTEMS]
    runs = {key: back.run(key, target.name, "test") for key in keys}
    groups = {name: [key for key in keys if key.rpartition(".")[0] == name] for name in sorted(SYSTEMS)}
    one = runs[keys[0]]
    sizes = [lengths[d] for d in {d for docs in one.values() for d in docs}]
    lines = [f"{np.mean(np.array(sizes) > CHUNK):.0%} of {len(sizes)} texts are longer than {CHUNK} pieces"]
    grade = 2 if "rel=2" in target.measures[0] else 1
    for name, view in views(one, relevant(target.test, one, grade), lengths).items():
        lines.append(f"{name}: {len(view)} questions, {sum(map(len, view.values()))} candidates")
        if len(view) >= FEWEST:
            part, cut = only(target.test, view), {key: like(run, view) for key, run in runs.items()}
            lines += map(claimed, judged(evaluate(part, cut, target.measures, groups=groups), CLAIMS))
    return lines


def main() -> None:
    work, carried, *outs = map(Path, sys.argv[1:])
    back, texts = opened_back(work, carried, outs)
    for name, target in targets(Path(os.environ["WHYRANK_DATA"])).items():
        for line in told(back, target, lengths_of(back, texts, name)):
            print(f"{name:10} {line}", flush=True)


if __name__ == "__main__":
    main()
