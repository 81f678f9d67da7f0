"""Exact shares: what the words of a text give to a score, from the matrix of query terms and document terms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from whyrank.core import Floats
from whyrank.explain.explanation import Part
from whyrank.explain.words import words_of
from whyrank.rankers.lexical import Explaining, ScoreMatrix

READ = 2000  # words whose tokens a network is asked for: it reads no more


def column_shares(matrix: ScoreMatrix) -> Floats:
    """What each document term gives to the score.

    A row of a log ranker adds weight * ln(total / reference) beyond its reference, the larger of background and
    floor: what it would add if the text had none of its terms. That is shared out in proportion to the cells. A row
    with neither background nor floor has no reference, and nothing of it is shared out.
    """
    if matrix.kind == "additive":
        return np.asarray(matrix.cells.sum(axis=0))
    reference, given = np.maximum(matrix.background, matrix.floor), matrix.cells.sum(axis=1)
    ratio = np.divide(
        np.maximum(matrix.totals, matrix.floor), reference, out=np.ones(len(given)), where=reference > 0
    )
    gains = matrix.weights * np.log(ratio)
    return np.asarray(np.divide(gains, given, out=np.zeros(len(given)), where=given > 0) @ matrix.cells)


class ExactShares(NamedTuple):
    """The words that contribute to a score, and what the ranker notes."""

    parts: list[Part]
    notes: Sequence[str]


def exact_shares(ranker: Explaining, query: str, text: str, doc: int) -> ExactShares:
    """What the words of the first text (0) contribute to its score, those of the second (1) to that of the first.

    A term gives the same to each of the words that it stands for; where the matrix has a column for each position,
    each word has the share of its own. A word with several terms has the sum.
    """
    matrix, analyzer = ranker.explain(query, text), getattr(ranker, "analyzer", None)
    columns: defaultdict[str, list[float]] = defaultdict(list)
    for term, share in zip(matrix.document_terms, column_shares(matrix).tolist(), strict=True):
        columns[term].append(share)
    words, places = words_of(text), defaultdict[str, list[int]](list)
    known: dict[str, Sequence[str]] = {}
    for i, (start, end) in enumerate(words if analyzer else words[:READ]):
        word = text[start:end]
        if word not in known:
            known[word] = analyzer.terms(word) if analyzer else ranker.explain(query, word).document_terms
        for term in known[word]:
            places[term].append(i)
    shares = np.zeros(len(words))
    for term, given in columns.items():
        at = places[term]
        if len(given) > 1:
            np.add.at(shares, at[: len(given)], given[: len(at)])
        elif at:
            np.add.at(shares, at, given[0] / len(at))
    shares = -shares if doc else shares
    found = [Part(text[slice(*words[i])], doc, *words[i], float(shares[i])) for i in np.flatnonzero(shares)]
    return ExactShares(found, matrix.notes)
