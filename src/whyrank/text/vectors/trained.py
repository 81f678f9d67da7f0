"""Word vectors trained on the documents of a collection, and kept in the cache for the next run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from whyrank.core import Ints, Progress
from whyrank.text.analyzer import Analyzer
from whyrank.text.vectors.glove import GloVe
from whyrank.text.vectors.vectors import Vectors, keep, load_kept
from whyrank.text.vocabulary import Tokens

KEPT_FROM = 100
"""Vectors of fewer documents are trained in no time and not kept."""

_CHUNK = 4096
Keys = npt.NDArray[np.uint64]


def collection_vectors(docs: Mapping[str, str], analyzer: Analyzer, model: GloVe) -> Vectors:
    """Train on all documents in the analyzer's own terms; neither their order nor their ids make a difference.

    Of documents with more than `model.most_tokens` tokens in all, those are taken that a hash of seed and text puts
    first.
    """
    keys = _keys(docs, model.seed)
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    name = f"{model!r} of {len(docs)} documents"
    key = _digest(keys[order], analyzer, model)
    kept = load_kept(name, key) if len(docs) >= KEPT_FROM else None
    if kept is not None:
        return kept
    found = model.train(_drawn(docs, order, analyzer, model.most_tokens), analyzer.vocabulary.terms).vectors
    made = Vectors(name, found.words, found.matrix)
    if len(docs) >= KEPT_FROM:
        keep(made, key)
    return made


def _keys(docs: Mapping[str, str], seed: int) -> Keys:
    """Two numbers per document, a hash of the seed and its text."""
    salt = hashlib.sha256(str(seed).encode()).digest()[:16]
    found = bytearray()
    with Progress("reading documents", len(docs)) as progress:
        for text in docs.values():
            found += hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, salt=salt).digest()
            progress.step()
    return np.frombuffer(found, dtype=">u8").astype(np.uint64).reshape(-1, 2)


def _digest(keys: Keys, analyzer: Analyzer, model: GloVe) -> str:
    found = hashlib.sha256(f"glove 1\x1f{analyzer.identity}\x1f{model!r}\x1f".encode("utf-8", "surrogatepass"))
    found.update(np.ascontiguousarray(keys, dtype="<u8").data)
    return found.hexdigest()[:32]


def _drawn(docs: Mapping[str, str], order: Ints, analyzer: Analyzer, most: int) -> Tokens:
    """The first documents in this order that have at most so many tokens in all."""
    parts, lengths = [np.empty(0, np.int32)], [0]
    for tokens in _analysed(docs, order, analyzer):
        ends = sum(lengths) + tokens.offsets[1:]
        fit = int(np.searchsorted(ends, most, side="right"))
        parts.append(tokens.ids[: tokens.offsets[fit]])
        lengths += np.diff(tokens.offsets[: fit + 1]).tolist()
        if fit < len(ends):
            break
    return Tokens(np.concatenate(parts), np.cumsum(lengths))


def _analysed(docs: Mapping[str, str], order: Ints, analyzer: Analyzer) -> Iterator[Tokens]:
    ids = list(docs)
    for start in range(0, len(order), _CHUNK):
        yield analyzer.docs([docs[ids[i]] for i in order[start : start + _CHUNK].tolist()])
