"""Corpus evidence: strong entries of a table whose terms avoid each other, weak ones whose terms seek each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from whyrank.core import Call, Ints, WhyrankError
from whyrank.data import Collection
from whyrank.learners.surprises.classes import Words
from whyrank.learners.surprises.tests import EVIDENCE, Surprise, Tested, Unjudged
from whyrank.tables import TermTable, self_entries
from whyrank.text import Analyzer, Tokens, analyzers

SHARE, MOST = 0.05, 2_000  # of the entries, the strongest and the weakest
LEAST = 4.0  # expected documents with both terms, below which absence says nothing
NEAREST, COMPARED = 200, 5  # terms that are as frequent, and those of them in the study


class Postings(NamedTuple):
    """For every term of a collection that a table has, the documents that it is in; and how many there are."""

    docs: dict[str, Ints]
    size: int


def postings_of(collection: Collection, table: TermTable) -> Postings:
    """Analyse every text as the table's analyzer does."""
    analyzer = _analyzer(table)
    tokens = analyzer.docs(list(collection.docs.values()))
    wanted = set(table.query_terms) | set(table.doc_terms)
    return Postings(_inverted(tokens, analyzer.vocabulary.terms, wanted), len(collection.docs))


def _analyzer(table: TermTable) -> Analyzer:
    learned = str(table.facts.get("analyzer") or "lucene")
    try:
        return analyzers.create(learned)
    except WhyrankError as error:
        raise WhyrankError(f"the table was learned with {learned}: {error}; leave out the collection") from None


def evidence_surprises(table: TermTable, postings: Postings) -> Tested:
    """Strong entries that are together in too few documents, and weak ones of whole rows that are in too many."""
    rows = table.row_numbers()
    order = np.argsort(-table.weights, kind="stable")
    order = order[~self_entries(table)[order]]
    whole = np.diff(table.indptr) >= 0.9 * len(table.doc_terms)
    known = order[whole[rows[order]]][::-1]
    weak = known[: _tested(len(known))]
    strong = [_entry(table, postings, int(e), int(rows[e]), 1) for e in order[: _tested(len(order))]]
    found = [each for each in strong if each is not None]
    rare = f"{len(strong) - len(found):,} of {len(strong):,} strong entries have terms that are too rare"
    unjudged = [Unjudged("evidence", rare)] if len(strong) > len(found) else []
    if not len(weak):
        why = "no query term has an entry for every document term, so nothing shows which weights are too small"
        unjudged += [Unjudged("evidence", why)]
    below = (_entry(table, postings, int(e), int(rows[e]), -1) for e in weak)
    return Tested([*found, *(each for each in below if each is not None)], unjudged)


def _tested(entries: int) -> int:
    """How many of so many entries are strong, or weak."""
    return min(entries, MOST, max(1, int(SHARE * entries)))


def _inverted(tokens: Tokens, terms: Sequence[str], wanted: set[str]) -> dict[str, Ints]:
    doc = np.repeat(np.arange(len(tokens.offsets) - 1), np.diff(tokens.offsets))
    pairs = np.unique(np.stack([tokens.ids.astype(np.int64), doc]), axis=1)
    starts = np.flatnonzero(np.diff(pairs[0], prepend=-1))
    parts = np.split(pairs[1], starts[1:])
    named = zip(pairs[0][starts].tolist(), parts, strict=True)
    return {terms[i]: docs for i, docs in named if terms[i] in wanted}


def _entry(table: TermTable, postings: Postings, entry: int, row: int, direction: int) -> Surprise | None:
    """The test of one entry; None where chance alone would hardly bring the terms together."""
    term, value = table.query_terms[row], table.doc_terms[table.indices[entry]]
    first, second = postings.docs.get(term), postings.docs.get(value)
    if first is None or second is None:
        return None
    expected = len(first) * len(second) / postings.size
    if direction > 0 and expected < LEAST:
        return None
    both = len(np.intersect1d(first, second, assume_unique=True))
    p = _tail(both, postings.size, len(first), len(second), direction)
    weight = float(table.weights[entry])
    return Surprise(EVIDENCE, "evidence", term, value, weight, expected, both, direction, p, "")


def _tail(both: int, size: int, first: int, second: int, direction: int) -> float:
    """How likely so few (or so many) documents with both are, when the terms fall on documents independently."""
    from scipy.stats import hypergeom

    chance = hypergeom(size, first, second)
    return float(chance.cdf(both) if direction > 0 else chance.sf(both - 1))


def evidence_study(table: TermTable, postings: Postings, words: Words, surprise: Surprise) -> str:
    """The value among terms that are about as frequent and that the table weighs the other way."""
    asked = surprise.query_term
    weights = {entry.term: entry.weight for entry in table.answers(asked, None)}
    size = len(postings.docs[surprise.value])
    terms = [t for t in table.doc_terms if t in postings.docs and t not in (surprise.value, asked) and t.isalnum()]
    near = sorted(terms, key=lambda term: (abs(len(postings.docs[term]) - size), term))[:NEAREST]
    near.sort(key=lambda term: surprise.direction * weights.get(term, 0.0))
    values = "+".join(dict.fromkeys(words.of(term) for term in (surprise.value, *near[:COMPARED])))
    return str(Call("bias/substitution", None, {"values": values, "queries": "head", "head": words.of(asked)}))
