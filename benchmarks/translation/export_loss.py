"""What tables lose against their networks: both fused with BM25, on MedQuAD's test part, means over seeds.

    WHYRANK_DATA=FOLDER python benchmarks/translation/export_loss.py NETWORK TABLE [NETWORK TABLE]...

The 50 best candidates of BM25 are re-ranked; weights come from 500 questions of the fusion part, for each network and
each table anew.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from indexed import Run, Texts, added, pool_of
from sparsity import BM25, QUESTIONS, first
from targets import targets

from whyrank.data import Collection
from whyrank.evaluation import Hypothesis, evaluate, judge
from whyrank.evaluation.effectiveness import measure_of
from whyrank.evaluation.fusion.ascent import fit
from whyrank.evaluation.fusion.objectives import objective_of
from whyrank.rankers import open_ranker, query_scale
from whyrank.scoring import Engine, rerank

DEPTH = 50
MEASURES = ["RR@10", "nDCG@10"]


def by_network(folder: str, part: Collection, candidates: Run) -> Run:
    """Scores by the number of distinct query pieces, as `model1` has them."""
    ranker = open_ranker(f"neural-model1:{folder}(device=cpu)")
    run, _ = rerank(Engine(), ranker, part, candidates)
    scales = {q: query_scale(ranker, part.queries[q]) for q in run}
    return {q: {d: score / scales[q] for d, score in docs.items()} for q, docs in run.items()}


def two_ways(folder: str, table: str, texts: Texts, parts: dict[str, Collection], found: dict[str, Run]) -> dict:
    """The scores of a table and of its network, by part."""
    return {
        "export": {name: texts.scores(f"model1:{table}", part.queries, found[name]) for name, part in parts.items()},
        "network": {name: by_network(folder, part, found[name]) for name, part in parts.items()},
    }


def fused(lexical: dict[str, Run], way: dict[str, Run], fusion: Collection) -> tuple[Run, tuple[float, ...]]:
    """BM25 and another system with weights from the fusion part."""
    pool = pool_of([lexical["fusion"], way["fusion"]], 20, True)
    weights = fit(pool.matrix, objective_of(measure_of("RR@10"), fusion, pool)).weights
    return added([lexical["test"], way["test"]], weights), weights


def report(test: Collection, runs: dict[str, Run], groups: dict[str, list[str]]) -> None:
    """Means against BM25, and what is lost, with intervals."""
    rows = evaluate(test, runs, MEASURES, "bm25", groups=groups)
    for row in rows:
        spread = "" if row.deviation is None else f"sd {row.deviation:.4f} over {row.runs}"
        print(
            f"{row.measure:8} {row.run:14} {row.mean:.4f} {row.difference or 0:+.4f} p adjusted {row.p_adjusted} {spread}"
        )
    for each in judge(rows, [Hypothesis("loss", "bm25+network", "bm25+export")]):
        print(f"{each.measure}: network - export {each.difference:+.4f} [{each.ci_low:+.4f}, {each.ci_high:+.4f}]")


def main() -> None:
    given = sys.argv[1:]
    torch.set_num_threads(1)
    target = targets(Path(os.environ["WHYRANK_DATA"]))["medquad"]
    parts, texts = {"test": target.test, "fusion": first(target.fusion, QUESTIONS)}, Texts(target.test)
    found = {
        name: texts.search("lucene", part.queries, DEPTH if name == "test" else 20) for name, part in parts.items()
    }
    lexical = {name: texts.scores(BM25, part.queries, found[name]) for name, part in parts.items()}
    runs, groups = {"bm25": lexical["test"]}, {}
    for seed, (folder, table) in enumerate(zip(given[::2], given[1::2], strict=True)):
        for name, way in two_ways(folder, table, texts, parts, found).items():
            both, weights = fused(lexical, way, parts["fusion"])
            print(f"weights with {name} {seed}: {weights}", flush=True)
            for system, run in ((name, way["test"]), (f"bm25+{name}", both)):
                runs[f"{system}.{seed}"] = run
                groups.setdefault(system, []).append(f"{system}.{seed}")
    report(target.test, runs, groups)


if __name__ == "__main__":
    main()
