"""What a table loses against its network: both fused with BM25, on MedQuAD's test part.

    WHYRANK_DATA=FOLDER python benchmarks/translation/export_loss.py NETWORK TABLE

The 50 best candidates of BM25 are re-ranked; weights come from 500 questions of the fusion part.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from indexed import Run, Texts, added, pool_of
from sparsity import BM25, QUESTIONS, first
from targets import targets

from whyrank.audit.effectiveness import evaluate, measure_of
from whyrank.audit.hypotheses import Hypothesis, judge
from whyrank.audit.objectives import objective_of
from whyrank.data import Collection
from whyrank.rankers import open_ranker
from whyrank.rankers.coordinate_ascent import fit
from whyrank.scoring import Engine
from whyrank.scoring.ranking import rerank

DEPTH = 50


def by_network(folder: str, part: Collection, candidates: Run) -> Run:
    """Scores by the number of distinct query pieces, as `model1` has them."""
    ranker = open_ranker(f"neural-model1:{folder}(device=cpu)")
    run, _ = rerank(Engine(), ranker, part, candidates)
    pieces = {q: len(set(ranker.explain(part.queries[q], "").query_terms)) or 1 for q in run}
    return {q: {d: score / pieces[q] for d, score in docs.items()} for q, docs in run.items()}


def main() -> None:
    folder, table = sys.argv[1:3]
    torch.set_num_threads(1)
    target = targets(Path(os.environ["WHYRANK_DATA"]))["medquad"]
    parts, texts = {"test": target.test, "fusion": first(target.fusion, QUESTIONS)}, Texts(target.test)
    found = {
        name: texts.search("lucene", part.queries, DEPTH if name == "test" else 20) for name, part in parts.items()
    }
    lexical = {name: texts.scores(BM25, part.queries, found[name]) for name, part in parts.items()}
    ways = {
        "export": {name: texts.scores(f"model1:{table}", part.queries, found[name]) for name, part in parts.items()},
        "network": {name: by_network(folder, part, found[name]) for name, part in parts.items()},
    }
    runs = {"bm25": lexical["test"]}
    for name, way in ways.items():
        pool = pool_of([lexical["fusion"], way["fusion"]], 20, True)
        weights = fit(pool.matrix, objective_of(measure_of("RR@10"), parts["fusion"], pool)).weights
        runs |= {name: way["test"], f"bm25+{name}": added([lexical["test"], way["test"]], weights)}
        print(f"weights with {name}: {weights}", flush=True)
    rows = evaluate(target.test, runs, ["RR@10", "nDCG@10"], "bm25")
    for row in rows:
        print(f"{row.measure:8} {row.run:14} {row.mean:.4f} {row.difference or 0:+.4f} p adjusted {row.p_adjusted}")
    for each in judge(rows, [Hypothesis("loss", "bm25+network", "bm25+export")]):
        print(f"{each.measure}: network - export {each.difference:+.4f} [{each.ci_low:+.4f}, {each.ci_high:+.4f}]")


if __name__ == "__main__":
    main()
