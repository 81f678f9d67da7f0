"""Pairs of distinct texts, and long texts in windows of words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from whyrank.core import Codes, Floats, Ints
from whyrank.rankers.base import distinct

How = Literal["truncate", "first", "max", "mean"]
_WORD = re.compile(r"\S+")


class TextPairs(NamedTuple):
    """Distinct queries and distinct texts, and for each pair the numbers of the two."""

    queries: list[str]
    docs: list[str]
    query: Codes
    doc: Codes

    @classmethod
    def of(cls, queries: Sequence[str], docs: Sequence[str]) -> TextPairs:
        """From aligned texts."""
        if len(queries) != len(docs):
            raise ValueError(f"{len(queries)} queries and {len(docs)} texts are not aligned")
        (query_texts, query), (doc_texts, doc) = _distinct(queries), _distinct(docs)
        return cls(query_texts, doc_texts, query, doc)

    @classmethod
    def alone(cls, texts: Sequence[str]) -> TextPairs:
        """Distinct texts without queries."""
        codes = np.arange(len(texts), dtype=np.int32)
        return cls([""], list(texts), np.zeros_like(codes), codes)

    def chunks(self, size: int) -> Iterator[Ints]:
        """All pairs, the longest ones first, up to `size` at a time, and at first an eighth of it, to start early."""
        query, doc = (np.array([len(text) for text in texts], np.int64) for texts in (self.queries, self.docs))
        order, start = np.argsort(-(query[self.query] + doc[self.doc]), kind="stable"), 0
        while start < len(order):
            end = start + min(size, max(size // 8, start, 1))
            yield order[start:end]
            start = end


class Passages(NamedTuple):
    """Distinct pairs of queries and passages, which of them each requested pair has, and where its passages begin."""

    pairs: TextPairs
    rows: Ints
    starts: Ints

    @classmethod
    def of(cls, pairs: TextPairs, how: str, window: int, stride: int) -> Passages:
        """Cut each text into windows; for `first` only the first one counts."""
        cut = [windows(text, window, stride)[: 1 if how == "first" else None] for text in pairs.docs]
        texts, codes = _distinct([passage for each in cut for passage in each])
        counts = np.array([len(each) for each in cut], np.int64)
        begins = np.concatenate([[0], np.cumsum(counts)])
        taken = [np.arange(begins[doc], begins[doc + 1]) for doc in pairs.doc.tolist()]
        sizes = counts[pairs.doc]
        keys = np.repeat(pairs.query.astype(np.int64), sizes) * len(texts) + codes[np.concatenate(taken)]
        found, rows = np.unique(keys, return_inverse=True)
        query, doc = (part.astype(np.int32) for part in np.divmod(found, len(texts)))
        return cls(TextPairs(pairs.queries, texts, query, doc), rows, np.cumsum(sizes) - sizes)

    def combine(self, scores: Floats, how: str) -> Floats:
        """From scores of passages to scores of texts: the highest one, or the mean."""
        scores = scores[self.rows]
        if how == "max":
            return np.asarray(np.maximum.reduceat(scores, self.starts))
        counts = np.diff(np.append(self.starts, len(scores)))
        return np.asarray(np.add.reduceat(scores, self.starts) / counts)


def windows(text: str, size: int, stride: int) -> list[str]:
    """Windows of `size` words that begin every `stride` words, up to the one that reaches the end of the text.

    150 words every 75 is what Dai and Callan take ("Deeper text understanding for IR with contextual neural
    language modeling", SIGIR 2019).
    """
    words = [word.span() for word in _WORD.finditer(text)]
    if len(words) <= size:
        return [text]
    last = -(-(len(words) - size) // stride)
    spans = (words[i * stride : i * stride + size] for i in range(last + 1))
    return [text[span[0][0] : span[-1][1]] for span in spans]


def _distinct(texts: Sequence[str]) -> tuple[list[str], Codes]:
    """The distinct texts, without halves of surrogate pairs, which tokenizers refuse; and the number of each."""
    found, codes = distinct(texts)
    return [text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8") for text in found], codes
