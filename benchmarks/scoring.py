"""Pairs per second on a CPU: every family of neural rankers, then every back end, beside sentence-transformers.

    WHYRANK_DATA=DATA python benchmarks/scoring.py [--quick | --judged RANKER ...]

One trained model on all sides: the bundled one, written as a BertForSequenceClassification (its two layers over [CLS] are
BERT's pooler and a classifier with one output). Pairs of mixed length: queries of TREC DL 2019 with their BM25 candidates
where WHYRANK_DATA is set, else the bundled sample. The sides take turns; figures are medians. Wall time is for all threads;
processor time is taken with one thread, so that it holds on a machine that others use too.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from neural_models import FAMILIES, peer

from whyrank.data import open_collection, open_run
from whyrank.networks import network
from whyrank.rankers import open_ranker
from whyrank.rankers.neural import model_folder
from whyrank.rankers.neural.computing import is_installed, quiet
from whyrank.rankers.neural.deviation import mean_tau
from whyrank.rankers.neural.passages import TextPairs

QUERIES, DEPTH, ROUNDS, TOKENS = 6, 100, 3, 80
PEER = "CrossEncoder.predict"
SIDES = {
    "exact": "precision=exact",
    "exact, openvino": "precision=exact,backend=openvino",
    "exact, onnx": "precision=exact,backend=onnx",
    "fast": "precision=fast",
    "fast, torch": "precision=fast,backend=torch",
}


def mixed_pairs() -> list[tuple[str, str, str]]:
    """Query id, query and text of the first candidates of some queries."""
    data = os.environ.get("WHYRANK_DATA")
    collection = open_collection(str(Path(data) / "msmarco_dl19") if data else "sample")
    run = open_run(collection, "bm25.top100" if data else "bm25").run
    best = {q: sorted(docs, key=docs.get, reverse=True)[:DEPTH] for q, docs in list(run.items())[:QUERIES]}
    return [(q, collection.queries[q], collection.docs[d]) for q, docs in best.items() for d in docs]


def export(folder: Path) -> Path:
    """The bundled model in the form that other packages read."""
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    own: Any = network.load(model_folder("bundled"))
    model = BertForSequenceClassification(BertConfig(**own.encoder.model.config.to_diff_dict() | {"num_labels": 1}))
    state = {f"bert.{name}": tensor for name, tensor in own.encoder.model.state_dict().items()}
    for theirs, ours in (("bert.pooler.dense", own.inner), ("classifier", own.outer)):
        state |= {f"{theirs}.weight": ours.weight, f"{theirs}.bias": ours.bias}
    model.load_state_dict(state)
    model.save_pretrained(str(folder))
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "cls", "sep", "unk", "mask")}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=own.tokenizer._tokenizer,
        model_max_length=512,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **special,
    )
    tokenizer.save_pretrained(str(folder))
    return folder


def sides(folder: Path, queries: list[str], docs: list[str]) -> dict[str, Callable[[], np.ndarray]]:
    """What gives the scores of all pairs, by name; all are loaded and have scored once."""
    from sentence_transformers import CrossEncoder

    peer, pairs = CrossEncoder(str(folder), device="cpu"), list(zip(queries, docs, strict=True))
    found = {PEER: lambda: peer.predict(pairs, activation_fn=torch.nn.Identity())}
    for name, arguments in SIDES.items():
        if is_installed(arguments.partition("backend=")[2] or "torch"):
            scorer = open_ranker(f"cross:{folder}(device=cpu,{arguments})")._scorer
            asked = TextPairs.of(queries, docs)
            label = f"{name} ({scorer.computing.backend} {scorer.computing.format})"
            found[label] = lambda scorer=scorer, asked=asked: replace(scorer)(asked)  # a copy has nothing kept
    return found


def timed(works: dict[str, Callable[[], np.ndarray]], clock: Callable[[], float], rounds: int) -> dict[str, float]:
    """Seconds of each, the median of several rounds in which all take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            start = clock()
            work()
            seconds[name].append(clock() - start)
    return {name: median(each) for name, each in seconds.items()}


def compare(folder: Path, threads: int, clock: Callable[[], float], what: str) -> None:
    torch.set_num_threads(threads)
    rows = mixed_pairs()
    codes = np.unique([q for q, _, _ in rows], return_inverse=True)[1]
    works = sides(folder, [query for _, query, _ in rows], [doc for _, _, doc in rows])
    scores = {name: np.asarray(work(), float) for name, work in works.items()}  # the first time is not counted
    seconds = timed(works, clock, ROUNDS)
    print(f"{len(rows):,} pairs of {len(set(codes))} queries, threads: {threads}, {what}")
    print(f"{'':33} {'pairs/s':>9} {'ratio':>6} {'tau':>7} {'largest difference':>19}")
    for name in works:
        tau = mean_tau(codes, scores[name], scores[PEER])
        gap = np.abs(scores[name] - scores[PEER]).max()
        rate, ratio = len(rows) / seconds[name], seconds[PEER] / seconds[name]
        print(f"{name:33} {rate:9.1f} {ratio:6.2f} {tau:7.4f} {gap:19.1e}")


def exactly(tokens: int) -> tuple[list[str], list[str]]:
    """Real pairs, the texts cut at the word that makes the input so long."""
    reader: Any = open_ranker("cross:bundled(device=cpu)")._scorer.reader
    queries, docs = [], []
    for _, query, doc in mixed_pairs():
        words, room = doc.split(), tokens - 3 - len(reader.query_ids([query])[0])
        starts = [" ".join(words[:n]) for n in range(1, min(len(words), room) + 1)]
        fitting = [start for start, ids in zip(starts, reader.doc_ids(starts), strict=True) if len(ids) == room]
        queries, docs = queries + [query] * bool(fitting), docs + fitting[:1]
    return queries, docs


def bundled(threads: int) -> None:
    torch.set_num_threads(threads)
    queries, docs = exactly(TOKENS)
    scorer, pairs = open_ranker("cross:bundled(device=cpu,precision=fast)")._scorer, TextPairs.of(queries, docs)
    scorer(pairs)
    wall = timed({"": lambda: replace(scorer)(pairs)}, time.perf_counter, ROUNDS)[""]
    processor = timed({"": lambda: replace(scorer)(pairs)}, time.process_time, ROUNDS)[""]
    print(
        f"cross:bundled, fast ({scorer.computing.backend} {scorer.computing.format}), {len(docs):,} pairs of exactly "
        f"{TOKENS} tokens, threads: {threads}: {len(docs) / wall:.0f} pairs/s; "
        f"{len(docs) / processor:.0f} per second of one processor"
    )


def families(root: Path, shape: str, pairs: int, names: list[str], rounds: int) -> None:
    """Each family with random weights beside sentence-transformers or transformers, in turns, by processor time."""
    torch.set_num_threads(1)
    rows = mixed_pairs()[:pairs]
    queries, docs = [query for _, query, _ in rows], [doc for _, _, doc in rows]
    print(f"every family, {shape}, {len(rows)} pairs, threads: 1, processor time; ratios to the package named first")
    for name in names:
        family = FAMILIES[name]
        folder = family.make(root / name, shape)
        score = peer(name, folder, "cpu")
        works: dict[str, Callable[[], np.ndarray]] = {family.peer: lambda score=score: score(queries, docs, 32)}
        for precision in ("exact", "fast"):
            options = {"device": "cpu", "precision": precision, **dict(family.arguments)}
            spec = f"{family.ranker}:{folder}({','.join(f'{k}={v}' for k, v in options.items())})"
            scorer, asked = open_ranker(spec)._scorer, TextPairs.of(queries, docs)
            works[precision] = lambda scorer=scorer, asked=asked: replace(scorer)(asked)
        for work in works.values():
            work()
        spent = timed(works, time.process_time, rounds)
        rates = "  ".join(f"{what} {len(rows) / each:8.1f}/s" for what, each in spent.items())
        ratios = [spent[family.peer] / spent[precision] for precision in ("exact", "fast")]
        print(f"{name:<8} {rates}  ratios {ratios[0]:.2f} and {ratios[1]:.2f}", flush=True)


def judged(specs: list[str]) -> None:
    """How far `fast` orders the judged texts of each query as `exact` does."""
    collection = open_collection(str(Path(os.environ["WHYRANK_DATA"]) / "msmarco_dl19"))
    rows = [(q, d) for q, grades in collection.qrels.items() for d in grades if d in collection.docs]
    queries, docs = [collection.queries[q] for q, _ in rows], [collection.docs[d] for _, d in rows]
    codes = np.unique([q for q, _ in rows], return_inverse=True)[1].astype(np.int32)
    for spec in specs:
        exact, fast = (open_ranker(f"{spec}(precision={each})").score(queries, docs) for each in ("exact", "fast"))
        tau, gap = mean_tau(codes, fast, exact), np.abs(fast - exact).max()
        print(f"{spec}: {len(rows):,} judged pairs, mean tau {tau:.4f}, largest difference {gap:.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="cross- and bi-encoders only, on few pairs")
    parser.add_argument("--pairs", type=int, default=None, help="pairs of the table of families")
    parser.add_argument("--judged", nargs="+", help="only Kendall's tau of fast precision, over all judged pairs")
    given = parser.parse_args()
    if given.judged:
        judged(given.judged)
        return
    threads = torch.get_num_threads()
    with TemporaryDirectory() as place, quiet():
        if given.quick:
            families(Path(place), "6 x 384", given.pairs or 64, ["cross", "bi"], 3)
            return
        families(Path(place), "6 x 384", given.pairs or 100, list(FAMILIES), ROUNDS)
        folder = export(Path(place))
        compare(folder, threads, time.perf_counter, "wall time")
        compare(folder, 1, time.process_time, "processor time")
        bundled(threads)


if __name__ == "__main__":
    main()
