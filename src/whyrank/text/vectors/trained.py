"""Word vectors trained on the documents of a collection, and kept in the cache for the next run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from whyrank.core import Ints, track
from whyrank.text.analyzer import Analyzer, Tokens
from whyrank.text.vectors.glove import GloVe
from whyrank.text.vectors.vectors import Vectors, keep, load_kept

KEPT_FROM = 100
"""Vectors of fewer documents are trained in no time and not kept."""

_CHUNK = 4096  # documents


def collection_vectors(docs: Mapping[str, str], analyzer: Analyzer, model: GloVe) -> Vectors:
    """Train on all documents in the analyzer's own terms; neither their order nor their ids make a difference.

    Of documents with more than `model.most_tokens` tokens in all, those are taken that a hash of seed and text puts
    first.
    """
    keys = _keys(docs, model.seed)
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    facts = hashlib.sha256(f"glove 1\x1f{analyzer.identity}\x1f{model!r}\x1f".encode("utf-8", "surrogatepass"))
    facts.update(np.ascontiguousarray(keys[order], dtype="<u8").data)
    name, key = f"{model!r} of {len(docs)} documents", facts.hexdigest()[:32]
    kept = load_kept(name, key) if len(docs) >= KEPT_FROM else None
    if kept is not None:
        return kept
    found = model.train(_drawn(docs, order, analyzer, model.most_tokens), analyzer.vocabulary.terms).vectors
    made = Vectors(name, found.words, found.matrix)
    if len(docs) >= KEPT_FROM:
        keep(made, key)
    return made


def _keys(docs: Mapping[str, str], seed: int) -> npt.NDArray[np.uint64]:
    """Two numbers per document, a hash of the seed and its text."""
    salt = hashlib.sha256(str(seed).encode()).digest()[:16]
    found = bytearray()
    for text in track(docs.values(), "reading documents", len(docs)):
        found += hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, salt=salt).digest()
    return np.frombuffer(found, dtype=">u8").astype(np.uint64).reshape(-1, 2)


def _drawn(docs: Mapping[str, str], order: Ints, analyzer: Analyzer, most: int) -> Tokens:
    """The first documents in this order that have at most so many tokens in all."""
    ids, parts, lengths = list(docs), [np.empty(0, np.int32)], [0]
    for start in range(0, len(order), _CHUNK):
        tokens = analyzer.docs([docs[ids[i]] for i in order[start : start + _CHUNK].tolist()])
        ends = sum(lengths) + tokens.offsets[1:]
        fit = int(np.searchsorted(ends, most, side="right"))
        parts.append(tokens.ids[: tokens.offsets[fit]])
        lengths += np.diff(tokens.offsets[: fit + 1]).tolist()
        if fit < len(ends):
            break
    return Tokens(np.concatenate(parts), np.cumsum(lengths))
