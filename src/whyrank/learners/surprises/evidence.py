"""Corpus evidence: strong entries of a table whose terms avoid each other, weak ones whose terms seek each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import hypergeom

from whyrank.core import Call, Ints, WhyrankError
from whyrank.data import Collection
from whyrank.learners.surprises.classes import Words
from whyrank.learners.surprises.surprise import EVIDENCE, Surprise, Tested, Unjudged
from whyrank.tables import TermTable, self_entries
from whyrank.text import analyzers

SHARE, MOST = 0.05, 2_000  # of the entries, the strongest and the weakest
LEAST = 4.0  # expected documents with both terms, below which absence says nothing
NEAREST, COMPARED = 200, 5  # terms that are as frequent, and those of them in the study


class Postings(NamedTuple):
    """For every term of a collection that a table has, the documents that it is in; and how many there are."""

    docs: dict[str, Ints]
    size: int


def postings_of(collection: Collection, table: TermTable) -> Postings:
    """Analyse every text as the table's analyzer does."""
    learned = str(table.facts.get("analyzer") or "lucene")
    try:
        analyzer = analyzers.create(learned)
    except WhyrankError as error:
        raise WhyrankError(f"the table was learned with {learned}: {error}; leave out the collection") from None
    tokens = analyzer.docs(list(collection.docs.values()))
    doc = np.repeat(np.arange(len(tokens.offsets) - 1), np.diff(tokens.offsets))
    ids, docs = np.unique(np.stack([tokens.ids.astype(np.int64), doc]), axis=1)
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    terms = [analyzer.vocabulary.terms[i] for i in ids[starts].tolist()]
    wanted = {*table.query_terms, *table.doc_terms}
    found = zip(terms, np.split(docs, starts[1:]), strict=True)
    return Postings({term: own for term, own in found if term in wanted}, len(collection.docs))


def evidence_surprises(table: TermTable, postings: Postings) -> Tested:
    """Strong entries that are together in too few documents, and weak ones of whole rows that are in too many."""
    order = np.argsort(-table.weights, kind="stable")
    order = order[~self_entries(table)[order]]
    whole = np.diff(table.indptr) >= 0.9 * len(table.doc_terms)
    ascending = order[whole[table.row_numbers()[order]]][::-1]
    strong, weak = order[: _tested(len(order))], ascending[: _tested(len(ascending))]
    above, below = _tests(table, postings, strong, 1), _tests(table, postings, weak, -1)
    unjudged = []
    if len(above) < len(strong):
        rare = f"{len(strong) - len(above):,} of {len(strong):,} strong entries have terms that are too rare"
        unjudged.append(Unjudged("evidence", rare))
    if not len(weak):
        why = "no query term has an entry for every document term, so nothing shows which weights are too small"
        unjudged.append(Unjudged("evidence", why))
    return Tested([*above, *below], unjudged)


def _tested(entries: int) -> int:
    """How many of so many entries are strong, or weak."""
    return min(entries, MOST, max(1, int(SHARE * entries)))


def _tests(table: TermTable, postings: Postings, entries: Ints, direction: int) -> list[Surprise]:
    """How likely so few (or so many) documents with both terms are, when terms fall on documents independently.

    Entries are left out whose terms chance alone would hardly bring together.
    """
    found, rows = [], table.row_numbers()
    for entry in entries.tolist():
        term, value = table.query_terms[rows[entry]], table.doc_terms[table.indices[entry]]
        first, second = postings.docs.get(term), postings.docs.get(value)
        if first is None or second is None:
            continue
        expected = len(first) * len(second) / postings.size
        if direction > 0 and expected < LEAST:
            continue
        both = len(np.intersect1d(first, second, assume_unique=True))
        chance = hypergeom(postings.size, len(first), len(second))
        p = float(chance.cdf(both) if direction > 0 else chance.sf(both - 1))
        weight = float(table.weights[entry])
        found.append(Surprise(EVIDENCE, "evidence", term, value, weight, expected, both, direction, p, ""))
    return found


def evidence_study(table: TermTable, postings: Postings, words: Words, surprise: Surprise) -> str:
    """The value among terms that are about as frequent and that the table weighs the other way."""
    query_term = surprise.query_term
    weights = {entry.term: entry.weight for entry in table.doc_terms_for(query_term, None)}
    size = len(postings.docs[surprise.value])
    others = (set(table.doc_terms) & postings.docs.keys()) - {surprise.value, query_term}
    terms = [term for term in others if term.isalnum()]
    near = sorted(terms, key=lambda term: (abs(len(postings.docs[term]) - size), term))[:NEAREST]
    near.sort(key=lambda term: surprise.direction * weights.get(term, 0.0))
    values = "+".join(dict.fromkeys(words.of(term) for term in (surprise.value, *near[:COMPARED])))
    return str(Call("bias/substitution", None, {"values": values, "queries": "head", "head": words.of(query_term)}))
