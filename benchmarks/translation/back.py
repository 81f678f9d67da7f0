"""Runs, means over seeds and the six claims, from the scores that `elsewhere.py` brought back.

    WHYRANK_DATA=FOLDER python benchmarks/translation/back.py WORK CARRIED OUT...

Several OUT are those of several runs. WORK holds the runs of `main.py`. Networks over BERT re-rank by themselves; neural Model 1 is fused with BM25, with
weights from the fusion part for each seed. Only questions and candidates that were scored there count, for all systems.
"""

from __future__ import annotations

import json
import lzma
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from indexed import Run, Texts, added, pool_of
from targets import Target, targets

from whyrank.audit.effectiveness import evaluate, measure_of
from whyrank.audit.fusing import DEPTH as WEIGHED
from whyrank.audit.hypotheses import Hypothesis, judge
from whyrank.audit.objectives import objective_of, ties_ascend
from whyrank.data import Collection, read_run
from whyrank.rankers.coordinate_ascent import fit

FUSED = "neural-model1"
CLAIMS = {
    "words": "bm25+model1-words > bm25+words",
    "pieces": "bm25+model1-pieces > bm25+pieces",
    "neural": "bm25+neural-model1 > bm25+model1-pieces",
    "export": "bm25+neural-model1 > bm25+export",
    "contextual": "bert-model1-full > vanilla-full",
    "length": "bert-model1-full > bert-model1-short",
}


def scores_of(outs: Sequence[Path]) -> dict[str, np.ndarray]:
    """All arrays of all files, by recipe and seed."""
    found = {}
    for path in sorted(path for out in outs for path in out.glob("scores-*.npz")):
        with np.load(path, allow_pickle=False) as file:
            found |= {name: file[name] for name in file.files}
    return found


def runs_of(rows: list[dict], scores: np.ndarray, target: str, part: str) -> Run:
    """The run of one network for one part of a target; empty where it was not asked."""
    ends = np.cumsum([len(row["docs"]) for row in rows])
    parts = np.split(scores.astype(np.float64), ends[:-1])
    return {
        row["id"]: dict(zip(row["docs"], values.tolist(), strict=True))
        for row, values in zip(rows, parts, strict=True)
        if (row["target"], row["part"]) == (target, part) and not np.isnan(values).any()
    }


def only(collection: Collection, run: Run) -> Collection:
    """The collection with the questions of a run."""
    queries = {q: text for q, text in collection.queries.items() if q in run}
    return replace(collection, queries=queries, qrels={q: v for q, v in collection.qrels.items() if q in run})


def cut_to(run: Run, like: Run) -> Run:
    """The same questions and candidates as another run has."""
    return {q: {d: run[q][d] for d in docs if d in run[q]} for q, docs in like.items() if q in run}


def fused(target: Target, texts: Texts, bm25: str, neural: Run, fusion: Run | None, weights) -> tuple[Run, tuple]:
    """BM25 and a network with weights from the fusion part, or with those of another target."""
    if fusion:
        measure, part = measure_of(target.measures[0]), only(target.fusion, fusion)
        lexical = texts.scores(bm25, part.queries, fusion)
        pool = pool_of([lexical, fusion], WEIGHED, ties_ascend(measure))
        weights = fit(pool.matrix, objective_of(measure, part, pool)).weights
    return added([texts.scores(bm25, target.test.queries, neural), neural], weights), weights


def systems(target: Target, rows: list[dict], scores: dict, work: Path, results: dict, known: dict) -> tuple:
    """Runs and groups of seeds, all over the same candidates."""
    found, groups, texts = {}, {}, Texts(target.test)
    bm25 = results[target.name]["parameters"]["bm25"]
    for key, values in scores.items():
        name, _, seed = key.rpartition(".")
        run, fusion = (runs_of(rows, values, target.name, part) for part in ("test", "fusion"))
        if name == FUSED:
            run, known[seed] = fused(target, texts, bm25, run, fusion, known.get(seed))
            name = f"bm25+{name}"
        found[f"{name}.{seed}"] = run
        groups.setdefault(name, []).append(f"{name}.{seed}")
    like = next(iter(found.values()))
    for path in sorted((work / "runs").glob(f"{target.name}.*.txt")):
        name = path.name.removeprefix(f"{target.name}.").removesuffix(".txt")
        found[name] = cut_to(read_run(path), like)
    return found, groups, only(target.test, like)


def main() -> None:
    work, carried, *outs = map(Path, sys.argv[1:])
    with lzma.open(carried / "pairs.json.xz", "rt", encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    results, scores, weights = json.loads((work / "results.json").read_text()), scores_of(outs), {}
    for name, target in targets(Path(os.environ["WHYRANK_DATA"])).items():
        found, groups, part = systems(target, rows, scores, work, results, weights)
        measured = evaluate(part, found, target.measures, "bm25", groups=groups)
        for row in measured:
            spread = "" if row.deviation is None else f"sd {row.deviation:.4f} over {row.runs}"
            tested = "" if row.difference is None else f"{row.difference:+.4f} p adjusted {row.p_adjusted:.4f}"
            print(f"{name:10} {row.measure:13} {row.run:28} {row.mean:.4f} {tested} {spread}", flush=True)
        named = {row.run for row in measured}
        claims = [Hypothesis(key, *claim.split(" > ")) for key, claim in CLAIMS.items()]
        for each in judge(measured, [claim for claim in claims if {claim.better, claim.worse} <= named]):
            print(f"{name:10} {each.measure:13} {each.hypothesis:12} {each.difference:+.4f} {each.verdict(0.05)}")


if __name__ == "__main__":
    main()
