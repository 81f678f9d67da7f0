"""Embeddings and how two of them are compared: one vector, a sparse one, or one per token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core.protocols import Codes, Floats

Matrix = npt.NDArray[np.float64]
_AT_ONCE = 16_384  # pairs that are compared at a time
_TINY = 1e-12


def dot(a: Matrix, b: Matrix) -> Floats:
    """Sum of products."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def cosine(a: Matrix, b: Matrix) -> Floats:
    """Sum of products over the product of the lengths."""
    return np.asarray(dot(a, b) / (np.maximum(_length(a), _TINY) * np.maximum(_length(b), _TINY)))


def euclidean(a: Matrix, b: Matrix) -> Floats:
    """Minus the straight distance."""
    return -_length(a - b)


def manhattan(a: Matrix, b: Matrix) -> Floats:
    """Minus the sum of absolute differences."""
    return np.asarray(-np.abs(a - b).sum(1))


SIMILARITIES: Mapping[str, Callable[[Matrix, Matrix], Floats]] = {
    "cosine": cosine,
    "dot": dot,
    "euclidean": euclidean,
    "manhattan": manhattan,
}


class DenseVectors:
    """One vector per text."""

    def __init__(self, model: Any, similarity: str) -> None:
        """Vectors of a model, which may want only their first dimensions to be used."""
        self.similarity, self.dimensions = SIMILARITIES[similarity], getattr(model, "truncate_dim", None)

    def take(self, outputs: Mapping[str, Any]) -> list[Any]:
        """The vector of each text of a batch."""
        found = outputs["sentence_embedding"].float().cpu().numpy()[:, : self.dimensions]
        return [row.copy() for row in found]

    def size(self, embedding: Any) -> int:
        """Bytes that a vector takes."""
        return int(embedding.nbytes)

    def compare(self, queries: Sequence[Any], docs: Sequence[Any], query: Codes, doc: Codes) -> Floats:
        """Similarities of pairs."""
        a, b, found = np.stack(queries), np.stack(docs), np.empty(len(query))
        for start in range(0, len(query), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            found[some] = self.similarity(a[query[some]].astype(np.float64), b[doc[some]].astype(np.float64))
        return found


class SparseVector(NamedTuple):
    """The dimensions that are not zero, and their weights."""

    places: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]


class SparseVectors:
    """A vector over the vocabulary per text, most of it zero; compared by the sum of products."""

    def __init__(self, model: Any) -> None:
        """Vectors of a model, which may want only the largest weights to be used."""
        self.most = getattr(model, "max_active_dims", None)

    def take(self, outputs: Mapping[str, Any]) -> list[Any]:
        """The vector of each text of a batch."""
        return [self._vector(row) for row in outputs["sentence_embedding"].float().cpu().numpy()]

    def _vector(self, row: npt.NDArray[np.float32]) -> SparseVector:
        places = np.flatnonzero(row)
        if self.most is not None and len(places) > self.most:
            places = np.sort(places[np.argsort(-np.abs(row[places]), kind="stable")[: self.most]])
        return SparseVector(places.astype(np.int32), row[places])

    def size(self, embedding: SparseVector) -> int:
        """Bytes that a vector takes."""
        return int(embedding.places.nbytes + embedding.weights.nbytes)

    def compare(self, queries: Sequence[Any], docs: Sequence[Any], query: Codes, doc: Codes) -> Floats:
        """Sums of products of pairs."""
        width = 1 + max((int(v.places[-1]) for v in (*queries, *docs) if len(v.places)), default=0)
        a, b = _sparse_matrix(queries, width), _sparse_matrix(docs, width)
        return np.asarray(a[query].multiply(b[doc]).sum(axis=1), dtype=np.float64).reshape(-1)


class TokenVectors:
    """One vector per token; each token of the query finds the most similar one of the text, and these are summed."""

    def __init__(self, model: Any) -> None:
        """Vectors of a model, which knows whether the sum or the mean over query tokens counts."""
        self.model = model

    def take(self, outputs: Mapping[str, Any]) -> list[Any]:
        """The vectors of each text of a batch."""
        vectors, masks = outputs["token_embeddings"].float().cpu(), outputs["attention_mask"].bool().cpu()
        return [each[mask] for each, mask in zip(vectors, masks, strict=True)]

    def size(self, embedding: Any) -> int:
        """Bytes that the vectors take."""
        return int(embedding.nbytes)

    def compare(self, queries: Sequence[Any], docs: Sequence[Any], query: Codes, doc: Codes) -> Floats:
        """Summed highest similarities of pairs."""
        a, b = [queries[i] for i in query.tolist()], [docs[i] for i in doc.tolist()]
        return np.asarray(self.model.similarity_pairwise(a, b).float().cpu().numpy(), dtype=np.float64)


def _length(rows: Matrix) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _sparse_matrix(vectors: Sequence[SparseVector], width: int) -> Any:
    from scipy.sparse import csr_array

    edges = np.concatenate([[0], np.cumsum([len(v.places) for v in vectors])])
    values, places = (np.concatenate([part[i] for part in vectors]) for i in (1, 0))
    return csr_array((values.astype(np.float64), places, edges), shape=(len(vectors), width))
