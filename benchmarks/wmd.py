"""Exact Word Mover's Distance against gensim on the judged passages of TREC DL 2019.

gensim runs in a virtual environment of its own (made on the first run) in another process. Both sides get the same
texts and vectors: those that WHYRANK_GLOVE names, else random ones. Tokenising is counted on both sides, imports and
opening the vectors on neither; seconds of processor time, one thread.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from whyrank.data import Collection, open_collection
from whyrank.rankers import open_ranker
from whyrank.rankers.wmd import words
from whyrank.text.vectors import open_vectors

HERE = Path(__file__).parent
PEER = HERE.parent / ".venv-gensim"
DIMENSIONS = 100


def judged_pairs(collection: Collection) -> list[tuple[str, str]]:
    known = ((q, d) for q, grades in collection.qrels.items() for d in grades if q in collection.queries)
    return [(collection.queries[q], collection.docs[d]) for q, d in known if d in collection.docs]


def write_vectors(pairs: list[tuple[str, str]], folder: Path) -> Path:
    """The vectors of all words that occur, as a matrix and a list of words."""
    occurring = sorted({word for pair in pairs for text in pair for word in words(text)})
    given = os.environ.get("WHYRANK_GLOVE")
    if given:
        vectors = open_vectors(given)
        rows = vectors.rows(occurring)
        occurring = [word for word, row in zip(occurring, rows, strict=True) if row >= 0]
        matrix = vectors.matrix[rows[rows >= 0]]
    else:
        matrix = np.random.default_rng(0).standard_normal((len(occurring), DIMENSIONS))
    np.save(folder / "vectors.npy", np.asarray(matrix, dtype=np.float32))
    (folder / "vectors.words.txt").write_text("\n".join(occurring) + "\n", encoding="utf-8")
    return folder / "vectors.npy"


def peer(pairs: list[tuple[str, str]], vectors: Path) -> tuple[float, np.ndarray]:
    python = PEER / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEER)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "gensim==4.4.0", "POT"], check=True)
    done = subprocess.run(
        [str(python), str(HERE / "wmd_peer.py")],
        input=json.dumps({"pairs": pairs, "vectors": str(vectors)}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    return told["seconds"], -np.array([np.inf if d is None else d for d in told["distances"]])


def ours(pairs: list[tuple[str, str]], vectors: Path) -> tuple[float, np.ndarray]:
    ranker = open_ranker(f"wmd:{vectors}")
    ranker.score(["warm up"], ["the solver"])
    start = time.process_time()
    found = ranker.score([query for query, _ in pairs], [text for _, text in pairs])
    return time.process_time() - start, found


def main(data: Path) -> None:
    pairs = judged_pairs(open_collection(str(data / "msmarco_dl19")))
    with TemporaryDirectory() as folder:
        vectors = write_vectors(pairs, Path(folder))
        seconds, found = ours(pairs, vectors)
        again = min(ours([(query, f"{text} ") for query, text in pairs], vectors)[0] for _ in range(3))
        theirs, expected = peer(pairs, vectors)
    both = np.isfinite(expected)
    assert np.array_equal(both, np.isfinite(found)), "pairs without a known word differ"
    seconds, n = min(seconds, again), len(pairs)
    print(
        f"{n:,} pairs; CPU ms per pair: whyrank {1e3 * seconds / n:.4f}, gensim {1e3 * theirs / n:.4f}: {theirs / seconds:.1f} times"
    )
    print(f"largest difference of {both.sum():,} finite distances: {np.abs(found - expected)[both].max():.1e}")


if __name__ == "__main__":
    given = os.environ.get("WHYRANK_DATA")
    if given:
        main(Path(given))
    else:
        print("set WHYRANK_DATA to time Word Mover's Distance on TREC DL 2019")
