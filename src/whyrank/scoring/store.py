"""Scores on disk: a row per (ranker, query), with the scores of all its documents as blobs."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from whyrank.core import Flags, Floats, Ints, Layout, cache_folder, checksum, digest, is_read_only, writing
from whyrank.scoring.batches import Failure
from whyrank.scoring.pairs import DIGEST_BYTES, DIGEST_TYPE, Digests, Pairs

SCORES = Layout(
    what="score store",
    application=0x77726E6B,
    version=2,
    tables=(
        "CREATE TABLE rankers (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE)",
        # docs: 16-byte digests, ascending by their first half as a little-endian number; scores: float64
        """CREATE TABLE scores (ranker INTEGER NOT NULL REFERENCES rankers, query BLOB NOT NULL,
        docs BLOB NOT NULL, scores BLOB NOT NULL, checksum BLOB NOT NULL, PRIMARY KEY (ranker, query))""",
        """CREATE TABLE failures (ranker INTEGER NOT NULL REFERENCES rankers, query_digest BLOB NOT NULL,
        doc_digest BLOB NOT NULL, query BLOB NOT NULL, doc BLOB NOT NULL, reason TEXT NOT NULL,
        "when" TEXT NOT NULL, checksum BLOB NOT NULL, PRIMARY KEY (ranker, query_digest, doc_digest))""",
    ),
    elsewhere="pass another path (the variable WHYRANK_CACHE names the folder)",
)


# Scores of one query as two blobs: the digests of its documents, ascending, and their scores.

MAX_QUERIES = 256  # that many queries can be searched at once: their codes are the top 8 bits of a search key
_SCORE_TYPE = np.dtype("<f8")
_SCORE_BYTES = _SCORE_TYPE.itemsize


class Blobs(NamedTuple):
    """What is stored of one query: the documents' digests and their scores, as bytes."""

    docs: bytes
    scores: bytes

    @property
    def fit(self) -> bool:
        """Whether there is one score per document."""
        return len(self.docs) % DIGEST_BYTES == 0 and len(self.scores) * DIGEST_BYTES == len(self.docs) * _SCORE_BYTES


class StoredScores(NamedTuple):
    """What is known about distinct pairs: their scores (NaN where unknown), and which are known at all."""

    values: Floats
    known: Flags


def fill(found: StoredScores, pairs: Pairs, stored: Mapping[int, Blobs]) -> None:
    """Write the scores of up to `MAX_QUERIES` neighbouring queries, ascending, where their pairs are."""
    if not stored:
        return
    codes = np.fromiter(stored, np.int64)
    docs, scores = _arrays(Blobs(*(b"".join(parts) for parts in zip(*stored.values(), strict=True))))
    pair = np.arange(*np.searchsorted(pairs.query, (codes[0], codes[-1] + 1)))
    wanted = pairs.docs.digests[pairs.doc[pair]]
    counts = [len(blobs.scores) // _SCORE_BYTES for blobs in stored.values()]
    doc_keys = _keys(docs, np.repeat(codes - codes[0], counts))
    position, there = _positions(docs, doc_keys, wanted, _keys(wanted, pairs.query[pair] - codes[0]))
    found.values[pair[there]] = scores[position[there]]
    found.known[pair[there]] = True


def by_query(pairs: Pairs, rows: Ints, values: Floats) -> dict[bytes, Blobs]:
    """The scores of some pairs (`rows` ascend) as blobs, by the digest of the query."""
    docs = pairs.docs.digests[pairs.doc[rows]].astype(DIGEST_TYPE, copy=False).tobytes()
    scores = values.astype(_SCORE_TYPE, copy=False).tobytes()
    query = pairs.query[rows]
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    bounds = pairwise([*starts.tolist(), len(rows)])
    cut = [
        Blobs(docs[a * DIGEST_BYTES : b * DIGEST_BYTES], scores[a * _SCORE_BYTES : b * _SCORE_BYTES])
        for a, b in bounds
    ]
    return dict(zip(digest_bytes(pairs.queries.digests[query[starts]]), cut, strict=True))


def merge(old: Blobs | None, new: Blobs) -> Blobs | None:
    """Old and new scores together, where a score that is there already stays; None when nothing is new."""
    if old is None:
        return new
    (old_docs, old_scores), (new_docs, new_scores) = _arrays(old), _arrays(new)
    position, there = _positions(old_docs, _keys(old_docs), new_docs, _keys(new_docs))
    if there.all():
        return None
    docs = np.insert(old_docs, position[~there], new_docs[~there], axis=0)
    scores = np.insert(old_scores, position[~there], new_scores[~there])
    return Blobs(docs.tobytes(), scores.tobytes())


def digest_bytes(digests: Digests) -> list[bytes]:
    """Each digest as it is stored."""
    joined = digests.astype(DIGEST_TYPE, copy=False).tobytes()
    return [joined[i : i + DIGEST_BYTES] for i in range(0, len(joined), DIGEST_BYTES)]


def _arrays(blobs: Blobs) -> tuple[Digests, Floats]:
    return np.frombuffer(blobs.docs, DIGEST_TYPE).reshape(-1, 2), np.frombuffer(blobs.scores, _SCORE_TYPE)


def _keys(digests: Digests, code: Ints | int = 0) -> Digests:
    """Numbers that ascend by the code of the query, then by the start of the digest."""
    return np.asarray(code).astype(np.uint64) << np.uint64(56) | digests[:, 0] >> np.uint64(8)


def _positions(stored: Digests, stored_keys: Digests, wanted: Digests, wanted_keys: Digests) -> tuple[Ints, Flags]:
    """Where each wanted digest is, or belongs, among stored ones, and whether it is there.

    The key finds the position, then the whole digest must agree: texts are never confused.
    """
    position = np.searchsorted(stored_keys, wanted_keys)
    inside = np.flatnonzero(position < len(stored))
    at, there = position[inside], np.zeros(len(wanted), np.bool_)
    same = stored_keys[at] == wanted_keys[inside]
    there[inside] = same & (stored[at, 0] == wanted[inside, 0]) & (stored[at, 1] == wanted[inside, 1])
    return position, there


_SAVE = """INSERT INTO scores VALUES (?, ?, ?, ?, ?) ON CONFLICT (ranker, query)
DO UPDATE SET docs = excluded.docs, scores = excluded.scores, checksum = excluded.checksum"""
_SAVE_FAILURE = "INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_FAILED = "SELECT query_digest, doc_digest FROM failures JOIN rankers ON ranker = id WHERE identity = ?"


class ScoreStore:
    """All scores that were ever computed, in one sqlite file that several processes may use at once.

    A pair is keyed by the ranker's identity and by the digests of both texts. The first score that is
    stored for a pair stays. Each row has a checksum over what it says and over its keys.

    Example:
        >>> import tempfile, whyrank
        >>> with tempfile.TemporaryDirectory() as folder, ScoreStore(f"{folder}/scores.sqlite") as store:
        ...     _ = whyrank.audit("bm25", "sample", "edited/typos", limit=20, engine=whyrank.Engine(store))
        ...     store.state() > 0
        True
    """

    def __init__(self, path: str | PathLike[str] | None = None) -> None:
        """Open the store at `path`, or the one in the cache folder; make it where there is none."""
        self.path = Path(path) if path is not None else cache_folder() / "scores.sqlite"
        self.read_only = is_read_only(self.path)
        self._connection = SCORES.connect(self.path)
        self._lock = threading.RLock()
        self._finalizer = weakref.finalize(self, self._connection.close)

    def __repr__(self) -> str:
        return f"ScoreStore({str(self.path)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        self._finalizer()

    def find(self, identity: str, pairs: Pairs) -> StoredScores:
        """Look up the scores of distinct pairs."""
        found = StoredScores(np.full(len(pairs.keys), np.nan), np.zeros(len(pairs.keys), np.bool_))
        queries = digest_bytes(pairs.queries.digests)
        with self._lock, SCORES.reporting(self.path):
            if self._ranker(identity) is None:
                return found
            for start in range(0, len(queries), MAX_QUERIES):
                some = queries[start : start + MAX_QUERIES]
                stored = self._load(identity, some)
                fill(found, pairs, {i: stored[query] for i, query in enumerate(some, start) if query in stored})
        return found

    def add(self, identity: str, pairs: Pairs, rows: Ints, values: Floats, failures: Iterable[Failure] = ()) -> None:
        """Commit the scores of some pairs (`rows` index `pairs`) and the failures of others in one step."""
        order = np.argsort(rows)
        new = by_query(pairs, rows[order], values[order])
        with self._lock, SCORES.reporting(self.path), writing(self._connection):
            self._connection.execute("INSERT OR IGNORE INTO rankers (identity) VALUES (?)", (_storable(identity),))
            ranker = self._ranker(identity)
            self._connection.executemany(_SAVE, self._merge_rows(ranker, identity, new))
            self._connection.executemany(_SAVE_FAILURE, _failure_rows(ranker, identity, failures))

    def forget(self, identity: str) -> None:
        """Delete all that is stored of a ranker."""
        with self._lock, SCORES.reporting(self.path), writing(self._connection):
            for table in ("scores", "failures"):
                self._connection.execute(f"DELETE FROM {table} WHERE ranker = ?", (self._ranker(identity),))

    def state(self) -> int:
        """A number that is another one after another process has stored something."""
        with self._lock, SCORES.reporting(self.path):
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def failed(self, identity: str, pairs: Pairs, rows: Ints) -> Flags:
        """Which of some pairs the ranker raised an exception on before."""
        with self._lock, SCORES.reporting(self.path):
            known = set(self._connection.execute(_FAILED, (_storable(identity),)))
        if not known:
            return np.zeros(len(rows), np.bool_)
        queries, docs = digest_bytes(pairs.queries.digests), digest_bytes(pairs.docs.digests)
        codes = zip(pairs.query[rows].tolist(), pairs.doc[rows].tolist(), strict=True)
        return np.array([(queries[query], docs[doc]) in known for query, doc in codes], np.bool_)

    def _ranker(self, identity: str) -> int | None:
        select = "SELECT id FROM rankers WHERE identity = ?"
        row = self._connection.execute(select, (_storable(identity),)).fetchone()
        return row[0] if row else None

    def _load(self, identity: str, queries: Sequence[bytes]) -> dict[bytes, Blobs]:
        """What is stored of up to `MAX_QUERIES` queries."""
        marks = ",".join("?" * len(queries))
        select = f"SELECT query, docs, scores, checksum FROM scores WHERE ranker = ? AND query IN ({marks})"
        rows = self._connection.execute(select, (self._ranker(identity), *queries))
        found = {query: Blobs(docs, scores) for query, docs, scores in self._verify(identity, rows)}
        if not all(blobs.fit for blobs in found.values()):
            raise SCORES.damage_error(self.path)
        return found

    def _verify(self, identity: str, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """The rows of a ranker without their checksums; an error for one that is not as it was written."""
        for *values, kept in rows:
            if kept != checksum(_storable(identity), *values):
                raise SCORES.damage_error(self.path, "score the ranker anew with --fresh, or ")
            yield tuple(values)

    def _merge_rows(self, ranker: int | None, identity: str, new: dict[bytes, Blobs]) -> list[tuple[object, ...]]:
        """The rows to write: new scores together with those that are stored of the same queries."""
        queries, rows, key = list(new), list[tuple[object, ...]](), _storable(identity)
        for start in range(0, len(queries), MAX_QUERIES):
            some = queries[start : start + MAX_QUERIES]
            old = self._load(identity, some)
            merged = ((query, merge(old.get(query), new[query])) for query in some)
            rows += [(ranker, q, *blobs, checksum(key, q, *blobs)) for q, blobs in merged if blobs is not None]
        return rows


def _failure_rows(ranker: int | None, identity: str, failures: Iterable[Failure]) -> Iterator[tuple[object, ...]]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for query, doc, reason in failures:
        said = (_blob(query), _blob(doc), _storable(reason))
        yield ranker, digest(query), digest(doc), *said, now, checksum(_storable(identity), *said)


def _blob(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _storable(text: str) -> str:
    """The text with lone surrogates spelled out: sqlite takes valid Unicode only."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
