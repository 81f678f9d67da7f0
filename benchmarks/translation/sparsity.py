"""How small a table of a neural Model 1 may be: entries and quality by threshold and by the best N of each query piece.

    WHYRANK_DATA=FOLDER python benchmarks/translation/sparsity.py NETWORK...

RR@10 on questions of MedQuAD's dev part, by the table alone and fused with BM25 (weights from the fusion part). Pieces that
neither questions nor texts of the modelling part have are left out.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from indexed import Texts, added, pool_of
from targets import SEED, Target, targets

from whyrank.core import generator
from whyrank.data import Collection
from whyrank.evaluation import evaluate
from whyrank.evaluation.effectiveness import measure_of
from whyrank.evaluation.fusion.ascent import fit
from whyrank.evaluation.fusion.objectives import objective_of
from whyrank.learners import export_table, open_network

QUESTIONS, BM25 = 500, "bm25(k1=0.6,b=0.4)"
CHOICES = [
    {"threshold": 1e-3}, {"threshold": 1e-2}, {"threshold": 0.1}, {"threshold": 1e-2, "top_query": 3000},
    {"threshold": 1e-2, "top_query": 1000}, {"threshold": 1e-2, "top_query": 300},
]  # fmt: skip


def first(collection: Collection, n: int) -> Collection:
    """So many questions, drawn with the seed of all parts."""
    drawn = generator(SEED, "sparsity", collection.name).permutation(sorted(collection.qrels))[:n]
    ids = sorted(drawn.tolist())
    queries = {q: collection.queries[q] for q in ids}
    return replace(collection, queries=queries, qrels={q: collection.qrels[q] for q in ids})


def measured(
    target: Target, texts: Texts, table: str, parts: dict[str, Collection], runs: dict
) -> tuple[float, float]:
    measure = measure_of("RR@10")
    found = {
        name: [runs[name], texts.scores(f"model1:{table}", part.queries, runs[name])] for name, part in parts.items()
    }
    pool = pool_of(found["fusion"], 20, True)
    weights = fit(pool.matrix, objective_of(measure, parts["fusion"], pool), restarts=3).weights
    both = {"alone": found["dev"][1], "fused": added(found["dev"], weights)}
    return tuple(evaluate(parts["dev"], {name: run}, ["RR@10"])[0].mean for name, run in both.items())


def main() -> None:
    torch.set_num_threads(1)
    target = targets(Path(os.environ["WHYRANK_DATA"]))["medquad"]
    parts = {name: first(getattr(target, name), QUESTIONS) for name in ("dev", "fusion")}
    texts = Texts(target.test)
    found = {name: texts.search("lucene", part.queries, 50) for name, part in parts.items()}
    runs = {name: texts.scores(BM25, part.queries, found[name]) for name, part in parts.items()}
    print(f"bm25 {evaluate(parts['dev'], {'': runs['dev']}, ['RR@10'])[0].mean:.4f}", flush=True)
    for folder in map(Path, sys.argv[1:]):
        network = open_network(folder)
        whole = export_table(network, 1e-3, collection=target.modelling)
        for choice in CHOICES:
            table = whole.prune(**choice)
            with tempfile.TemporaryDirectory() as place:
                table.save(f"{place}/t.arrow")
                alone, fused = measured(target, texts, f"{place}/t.arrow", parts, runs)
            print(f"{folder} {choice}: {len(table):,} entries, alone {alone:.4f}, fused {fused:.4f}", flush=True)


if __name__ == "__main__":
    main()
