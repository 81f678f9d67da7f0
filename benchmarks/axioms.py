"""Axioms against ir_axioms on the top 100 of TREC DL 2019, and fourteen million generated LNC1 instances.

ir_axioms 1.2.5 pins an old numpy, so it runs in a virtual environment of its own (made on the first run) in another
process. Both sides get the same documents, the same words ([a-z0-9]+ in lower case), document frequencies and word
vectors; tokenising is counted on both sides, imports and compilation on neither.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from whyrank.data import Collection, open_collection
from whyrank.studies.axioms import axioms

HERE = Path(__file__).parent
PEER = HERE.parent / ".venv-ir-axioms"
ANALYZER = "chain(tokens=ascii)"
NINE = ("TFC1", "TFC2", "M-TDC", "LNC1", "LNC2", "TP", "STMC1", "STMC2", "STMC3")
SHARED = ("TFC1", "TFC3", "M-TDC", "LNC1", "TF-LNC", "LB1", "PROX1", "PROX2", "PROX3", "PROX4", "PROX5", "REG", "ANTI-REG", "AND", "M-AND", "DIV", "STMC1", "STMC2")  # fmt: skip
DIMENSIONS = 50


def words(text: str) -> list[str]:
    return re.findall("[a-z0-9]+", text.lower())


def vectors_of(vocabulary: list[str]) -> dict[str, list[float]]:
    """A random unit vector per word: what they say does not matter for the time they take."""
    drawn = np.random.default_rng(0).standard_normal((len(vocabulary), DIMENSIONS))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return dict(zip(vocabulary, drawn.round(4).tolist(), strict=True))


def top_documents(data: Path) -> Collection:
    """The queries, and of the documents the top 100 of the BM25 run."""
    whole = open_collection(str(data / "msmarco_dl19"))
    run = whole.runs["bm25.top100"]
    kept = {d: whole.docs[d] for q in run if q in whole.queries for d in run[q] if d in whole.docs}
    return Collection.of(kept, whole.queries, whole.qrels, runs={"bm25": run}, name="dl19")


def peer_seconds(collection: Collection, vectors: Path) -> dict[str, float]:
    python = PEER / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEER)], check=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "ir-axioms==1.2.5"],
            check=True,
            stderr=subprocess.DEVNULL,
        )
    run = collection.runs["bm25"]
    queries = [
        {
            "id": q,
            "text": text,
            "docs": [[d, collection.docs[d], s] for d, s in run[q].items() if d in collection.docs],
        }
        for q, text in collection.queries.items()
    ]
    frequencies = Counter(word for text in collection.docs.values() for word in set(words(text)))
    task = {"queries": queries, "axioms": [name.replace("-", "_") for name in SHARED], "documents": len(collection.docs),
            "frequencies": frequencies, "vectors": dict(_read(vectors))}  # fmt: skip
    done = subprocess.run(
        [str(python), str(HERE / "axioms_peer.py")],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.replace("_", "-"): s for name, s in json.loads(done.stdout)["seconds"].items()}


def _read(path: Path) -> list[tuple[str, list[float]]]:
    lines = path.read_text().splitlines()
    return [(word, [float(x) for x in rest.split()]) for word, _, rest in (line.partition(" ") for line in lines)]


def our_seconds(collection: Collection, names: tuple[str, ...], vectors: Path) -> dict[str, float]:
    """Seconds per axiom; the first one pays for tokenising."""
    seconds = {}
    for name in names:
        axiom = axioms.create(
            f"axiom/{name}", analyzer=ANALYZER, pairs="top:100", candidates="bm25", vectors=str(vectors)
        )
        start = time.perf_counter()
        axiom.contrasts(collection)
        seconds[name] = time.perf_counter() - start
    return seconds


def against_peer(data: Path) -> None:
    collection = top_documents(data)
    vocabulary = sorted(
        {word for text in (*collection.docs.values(), *collection.queries.values()) for word in words(text)}
    )
    vectors = HERE.parent / ".bench-vectors.txt"
    vectors.write_text("".join(f"{w} {' '.join(map(str, v))}\n" for w, v in vectors_of(vocabulary).items()))
    small = Collection.of(
        {f"d{i}": "vocabulary of another kind " * i for i in range(1, 9)},
        {"q": "another kind"},
        runs={"bm25": {"q": {f"d{i}": float(i) for i in range(1, 9)}}},
    )
    our_seconds(small, NINE + SHARED, vectors)  # compiled, and the vectors read, before anything is timed
    ours = our_seconds(collection, tuple(dict.fromkeys(NINE + SHARED)), vectors)
    theirs = peer_seconds(collection, vectors)
    both = [name for name in NINE if name in theirs]
    print(f"{len(collection.queries)} queries, top 100; seconds, tokenising included (ours pays for it in {NINE[0]})")
    print(f"{'axiom':10}{'whyrank':>10}{'ir_axioms':>11}{'ratio':>8}")
    for name in ours:
        told = f"{theirs[name]:11.3f}{theirs[name] / ours[name]:8.1f}" if name in theirs else f"{'-':>11}{'-':>8}"
        print(f"{name:10}{ours[name]:10.3f}{told}")
    for what, names in (("of the nine", both), ("in all", SHARED)):
        here, there = sum(ours[name] for name in names), sum(theirs[name] for name in names)
        print(
            f"the {len(names)} {what} that both have: {here:.2f} s here, {there:.2f} s there: {there / here:.1f} times"
        )
    print(f"all nine here: {sum(ours[name] for name in NINE):.2f} s")
    vectors.unlink()


def generated(queries: int = 1558, documents: int = 100, length: int = 160) -> Collection:
    """Queries with documents of their own, words by Zipf's law."""
    random = np.random.default_rng(0)
    names = np.array([f"w{i}" for i in range(30_000)])
    chance = 1 / np.arange(1, len(names) + 1)
    drawn = names[random.choice(len(names), size=(queries * documents, length), p=chance / chance.sum())]
    docs = {f"d{i}": " ".join(row) for i, row in enumerate(drawn)}
    asked = {f"q{q}": " ".join(drawn[q * documents][:4]) for q in range(queries)}
    run = {f"q{q}": {f"d{q * documents + i}": float(documents - i) for i in range(documents)} for q in range(queries)}
    return Collection.of(docs, asked, runs={"all": run}, name="generated")


def memory() -> None:
    """LNC1 as released, both directions, over 1,558 queries with 100 documents."""
    collection = generated()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.perf_counter()
    axiom = axioms.create("axiom/LNC1", analyzer="whitespace", pairs="top:100", compat="camara-hauff")
    found = axiom.contrasts(collection)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"LNC1 as released: {len(found):,} instances of 1,558 x 100 documents in {seconds:.1f} s; peak {peak:,.0f} MiB ({before:,.0f} MiB before, the generated collection included)"
    )


if __name__ == "__main__":
    if "--memory" in sys.argv:
        memory()
        sys.exit()
    given = os.environ.get("WHYRANK_DATA")
    if given:
        against_peer(Path(given))
    else:
        print("set WHYRANK_DATA to time axioms on TREC DL 2019")
    subprocess.run([sys.executable, __file__, "--memory"], check=True)
