"""Rankers for the scoring tests; importable, so that worker processes and subprocesses can load them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from whyrank.core import WhyrankError, executor
from whyrank.scoring import Engine, ScoreStore
from whyrank.scoring.pairs import unique_pairs


def true_score(query: str, doc: str) -> float:
    """What all well-behaved rankers here answer: a number that only this pair of texts has."""
    mixed = f"{query}\x1f{doc}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(mixed).digest()[:6], "big") / 2**40


@dataclass(frozen=True)
class Plain:
    name: str = "plain"

    def score(self, queries, docs):
        return np.array([true_score(q, d) for q, d in zip(queries, docs, strict=True)])


@dataclass(frozen=True)
class Counting:
    """Appends each batch that it scored to a file in one write; `pause` is seconds per batch."""

    log: str
    pause: float = 0.0
    name: str = "counting"

    def score(self, queries, docs):
        Path(self.log + ".begun").touch()
        time.sleep(self.pause)
        lines = "".join(json.dumps(pair) + "\n" for pair in zip(queries, docs, strict=True))
        handle = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, lines.encode())
        os.close(handle)
        return Plain().score(queries, docs)


@dataclass(frozen=True)
class Picky:
    """Raises when a document of the batch contains `bad`; alone or in company."""

    bad: str = "bad"
    name: str = "picky"

    def score(self, queries, docs):
        for doc in docs:
            if self.bad in doc:
                raise ValueError(f"cannot read {doc!r}")
        return Plain().score(queries, docs)


@dataclass(frozen=True)
class Misbehaving:
    """Does what `deed` says once it meets the document `trigger`."""

    deed: str
    trigger: str = "d7"
    name: str = "misbehaving"

    def score(self, queries, docs):
        if any(self.trigger in (doc, "") for doc in docs):
            getattr(self, self.deed)()
        return Plain().score(queries, docs)

    def exit_hard(self):
        os._exit(3)

    def kill_itself(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def sleep(self):
        time.sleep(1e6)

    def spin(self):
        while True:
            pass

    def refuse(self):
        raise WhyrankError("weights.bin: no such file; download it first")

    def refuse_oddly(self):
        raise OddError("one", "two")


class OddError(WhyrankError):
    """Cannot be pickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")
        self.lock = threading.Lock()


class LoadsNowhere:
    """Can be pickled but not loaded."""

    name = "loads-nowhere"

    def score(self, queries, docs):
        return np.zeros(len(docs))

    def __reduce__(self):
        return _fail_to_load, ()


def _fail_to_load():
    raise RuntimeError("no GPU here")


def read_log(path) -> list[tuple[str, str]]:
    path = Path(path)
    return [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def grid(n_queries: int, first_doc: int, last_doc: int):
    """Texts and codes that ask for every pair of some queries and documents."""
    queries = [f"q{i}" for i in range(n_queries)]
    docs = [f"d{i}" for i in range(first_doc, last_doc)]
    query = np.repeat(np.arange(len(queries), dtype=np.int32), len(docs))
    doc = np.tile(np.arange(len(docs), dtype=np.int32), len(queries))
    return queries, docs, query, doc


def stored(store, identity: str, query: str, docs) -> dict[str, float]:
    """The scores of one query's documents in a store, by text."""
    texts = list(docs)
    codes = np.arange(len(texts), dtype=np.int32)
    pairs = unique_pairs([query], texts, np.zeros_like(codes), codes)
    values, known = store.find(identity, pairs)
    return dict(zip(pairs.doc_texts(np.flatnonzero(known)), values[known].tolist(), strict=True))


def main(store, log, name, pause, n_queries, first_doc, last_doc, batch_size, go=""):
    """Score a grid in this process, once the file `go` is there."""
    while go and not Path(go).exists():
        time.sleep(0.002)
    with ScoreStore(store) as opened:
        engine = Engine(opened, executor(name), batch_size, checked=0)
        scores = engine.score(Counting(log, pause), *grid(n_queries, first_doc, last_doc))
    sys.stdout.write(f"{scores.scored} {scores.reused} {len(scores.failures)}\n")
