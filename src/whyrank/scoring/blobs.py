"""Scores of one query as two blobs: the digests of its documents, ascending, and their scores."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from whyrank.core.protocols import Flags, Floats, Ints
from whyrank.scoring.pairs import DIGEST_BYTES, DIGEST_TYPE, Digests, Pairs

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


class Found(NamedTuple):
    """What is known about distinct pairs: their scores (NaN where unknown), and which are known at all."""

    values: Floats
    known: Flags


def fill(found: Found, pairs: Pairs, stored: Mapping[int, Blobs]) -> None:
    """Write the scores of up to `MAX_QUERIES` neighbouring queries, ascending, where their pairs are."""
    if not stored:
        return
    codes = np.fromiter(stored, np.int64)
    docs, scores = _joined(stored)
    pair = np.arange(*np.searchsorted(pairs.query, (codes[0], codes[-1] + 1)))
    wanted = pairs.docs.digests[pairs.doc[pair]]
    counts = [len(blobs.scores) // _SCORE_BYTES for blobs in stored.values()]
    doc_keys = _keys(docs, np.repeat(codes - codes[0], counts))
    place, there = _places(docs, doc_keys, wanted, _keys(wanted, pairs.query[pair] - codes[0]))
    found.values[pair[there]] = scores[place[there]]
    found.known[pair[there]] = True


def by_query(pairs: Pairs, rows: Ints, values: Floats) -> dict[bytes, Blobs]:
    """The scores of some pairs (`rows` ascend) as blobs, by the digest of the query."""
    docs = pairs.docs.digests[pairs.doc[rows]].astype(DIGEST_TYPE, copy=False).tobytes()
    scores = values.astype(_SCORE_TYPE, copy=False).tobytes()
    query = pairs.query[rows]
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    bounds = pairwise([*starts.tolist(), len(rows)])
    cut = [Blobs(_part(docs, a, b, DIGEST_BYTES), _part(scores, a, b, _SCORE_BYTES)) for a, b in bounds]
    return dict(zip(digest_bytes(pairs.queries.digests[query[starts]]), cut, strict=True))


def merge(old: Blobs | None, new: Blobs) -> Blobs | None:
    """Old and new scores together, where a score that is there already stays; None when nothing is new."""
    if old is None:
        return new
    (old_docs, old_scores), (new_docs, new_scores) = _arrays(old), _arrays(new)
    place, there = _places(old_docs, _keys(old_docs), new_docs, _keys(new_docs))
    if there.all():
        return None
    docs = np.insert(old_docs, place[~there], new_docs[~there], axis=0)
    scores = np.insert(old_scores, place[~there], new_scores[~there])
    return Blobs(docs.tobytes(), scores.tobytes())


def digest_bytes(digests: Digests) -> list[bytes]:
    """Each digest as it is stored."""
    joined = digests.astype(DIGEST_TYPE, copy=False).tobytes()
    return [joined[i : i + DIGEST_BYTES] for i in range(0, len(joined), DIGEST_BYTES)]


def _joined(stored: Mapping[int, Blobs]) -> tuple[Digests, Floats]:
    docs, scores = zip(*stored.values(), strict=True)
    return _arrays(Blobs(b"".join(docs), b"".join(scores)))


def _arrays(blobs: Blobs) -> tuple[Digests, Floats]:
    return np.frombuffer(blobs.docs, DIGEST_TYPE).reshape(-1, 2), np.frombuffer(blobs.scores, _SCORE_TYPE)


def _part(blob: bytes, start: int, end: int, size: int) -> bytes:
    return blob[start * size : end * size]


def _keys(digests: Digests, code: Ints | int = 0) -> Digests:
    """Numbers that ascend by the code of the query, then by the start of the digest."""
    return np.asarray(code).astype(np.uint64) << np.uint64(56) | digests[:, 0] >> np.uint64(8)


def _places(stored: Digests, stored_keys: Digests, wanted: Digests, wanted_keys: Digests) -> tuple[Ints, Flags]:
    """Where each wanted digest is, or belongs, among stored ones, and whether it is there.

    The key finds the place, then the whole digest must agree: texts are never confused.
    """
    place = np.searchsorted(stored_keys, wanted_keys)
    inside = np.flatnonzero(place < len(stored))
    at, there = place[inside], np.zeros(len(wanted), np.bool_)
    same = stored_keys[at] == wanted_keys[inside]
    there[inside] = same & (stored[at, 0] == wanted[inside, 0]) & (stored[at, 1] == wanted[inside, 1])
    return place, there
