"""The terms of queries and texts, and the parts of BM25 that phase 2 of PaRM puts together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core.progress import Progress
from whyrank.training.parm_data import Terms

if TYPE_CHECKING:
    from whyrank.rankers.index import LexicalIndex
    from whyrank.rankers.lexical import Weights

Numbers = npt.NDArray[np.int32]


class _Query(NamedTuple):
    terms: Numbers
    weights: Weights
    absent: npt.NDArray[np.bool_]
    value: npt.NDArray[np.float64]


def terms_of(index: LexicalIndex, queries: Sequence[str], doc: Numbers) -> Terms:
    """The terms of all queries and texts; `doc` holds the candidates of each query by row of the index."""
    asked = []
    with Progress("analysing queries", len(queries)) as progress:
        for query, rows in zip(queries, doc, strict=True):
            asked.append(_query(index, query, rows))
            progress.step()
    told, ends = _distinct(index)
    flat = np.concatenate([np.zeros(0, np.int32), *(one.terms for one in asked)])
    used, place = np.unique(np.concatenate([flat, told]), return_inverse=True)
    names = [index.ranker.analyzer.vocabulary.terms[i] for i in used]
    return Terms(
        names, place[: len(flat)].astype(np.int32),
        np.concatenate([np.zeros(0), *(one.weights.weights for one in asked)]).astype(np.float32),
        _ends([len(one.terms) for one in asked]),
        np.concatenate([np.zeros((0, doc.shape[1]), np.bool_), *(one.absent for one in asked)]),
        place[len(flat) :].astype(np.int32), ends, _norms(index, asked).astype(np.float32),
        np.stack([one.value for one in asked]).astype(np.float32),
    )  # fmt: skip


def _query(index: LexicalIndex, query: str, rows: Numbers) -> _Query:
    from whyrank.rankers import kernels
    from whyrank.rankers.lexical import weighed

    terms, weights = index.ranker.query(query)
    tf = np.zeros((len(rows), len(terms)), np.int32)
    slots = np.full(len(index.ranker.analyzer.vocabulary), -1, np.int32) if len(terms) else np.zeros(0, np.int32)
    if len(terms):
        kernels.scan(index.tokens.ids, index.tokens.offsets, rows, terms, slots, tf)
    return _Query(terms, weights, (tf == 0).T, weighed(weights, tf, index.lengths[rows]))


def _distinct(index: LexicalIndex) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """The distinct terms of each text, and where those of each end."""
    size = int(index.tokens.ids.max(initial=0)) + 1
    owner = np.repeat(np.arange(len(index.lengths)), index.lengths)
    keys = np.unique(owner * size + index.tokens.ids)
    return (keys % size).astype(np.int32), _ends(np.bincount(keys // size, minlength=len(index.lengths)))


def _norms(index: LexicalIndex, asked: Sequence[_Query]) -> npt.NDArray[np.float64]:
    weights = asked[0].weights
    return np.asarray(weights.a + weights.b * index.lengths)


def _ends(sizes: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))])
