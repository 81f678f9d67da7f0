"""What the semantic axioms see of a view: vectors of terms, and of documents without the terms of the query.

Vectors of terms have length 1. They are trained on the documents of the collection in the analyzer's own terms
(`vectors="collection"`), or read from a file: then the vector of a term is the mean of those of its word forms, which
are the words of the documents that the analyzer turns into this one term; without any, that of the term itself.
Cosines of which one is larger by no more than 1e-9 count as equal: numbers so near differ by rounding alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numba import njit

from whyrank.core import Codes, Flags, Floats, Ints, WhyrankError, track
from whyrank.data import Collection
from whyrank.studies.axioms.axiom import Axiom
from whyrank.studies.axioms.view import View, Views, surface_form
from whyrank.text import Analyzer, plain_words
from whyrank.text.vectors import GloVe, Vectors, collection_vectors, open_vectors

SAME = 1e-9  # cosines that differ by no more are equal
_CELLS = 1 << 22  # of a table of cosines
_PAIRS = 1 << 14  # whose vectors are gathered at a time where such a table would be larger
_trained: WeakKeyDictionary[Collection, dict[tuple[Analyzer, int], Vectors]] = WeakKeyDictionary()
_forms: WeakKeyDictionary[Collection, dict[tuple[Analyzer, str], Ints]] = WeakKeyDictionary()


class TermVectors(NamedTuple):
    """Vectors of length 1 of the terms of some pools: term id `t` has `units[slot[t]]`, or none where that is -1."""

    slot: Codes
    units: Floats
    missing: int


class Nearness(NamedTuple):
    """Where the documents of a view point without the query's terms, and the cosine of each to the query.

    Not a number where there is no direction: no word has a vector, or all cancel out.
    """

    units: Floats
    cosine: Floats
    has_query: bool


@dataclass(frozen=True, kw_only=True)
class SemanticAxiom(Axiom):
    """An axiom that compares the meaning of words.

    Attributes:
        vectors: where word vectors come from: `collection` trains them on its documents; or a file of vectors, a
            folder or an installed package that has some.
        seed: of that sample, and of vectors that are trained.
    """

    vectors: str = "collection"

    needs_query: ClassVar[bool] = True  # whether the query must have a vector, too

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.vectors:
            raise WhyrankError("vectors must be 'collection' or a file of word vectors")

    def term_vectors(self, views: Views) -> TermVectors:
        """The vectors of all terms."""
        key = ("term vectors", self.vectors, self.seed)
        return views.once(key, lambda: vectors_of(views, self.vectors, self.seed))

    def nearness(self, view: View) -> Nearness:
        """The documents without the query's terms."""
        key = ("nearness", self.vectors, self.seed)
        return view.once(key, lambda: nearness_of(view, self.term_vectors(view.views)))

    def remarks(self, views: Views) -> Mapping[str, int]:
        """How many terms have no vector, and what could not be asked therefore."""
        counted = {"words without a vector": self.term_vectors(views).missing, **self.excluded_counts(views)}
        return {reason: count for reason, count in counted.items() if count}

    def excluded_counts(self, views: Views) -> Mapping[str, int]:
        """What could not be asked, by reason: texts and queries without a direction."""
        found = [self.nearness(view) for view in views]
        documents = sum(int(np.isnan(each.units).any(axis=1).sum()) for each in found)
        queries = sum(not each.has_query for each in found) if self.needs_query else 0
        return {
            "documents without a word vector outside the query": documents,
            "queries without a word vector": queries,
        }


def vectors_of(views: Views, spec: str, seed: int) -> TermVectors:
    """The vectors of all terms of the documents and queries: trained on the collection, or read from a file."""
    used = np.unique(np.concatenate([views.pools.tokens.ids, *(view.term_ids for view in views)]))
    vocabulary = views.pools.analyzer.vocabulary
    names = [vocabulary.terms[i] for i in used]
    if spec == "collection":
        known, key = _trained.setdefault(views.statistics, {}), (views.pools.analyzer, seed)
        if key not in known:  # trained once for each analyzer and seed, on the documents that statistics come from
            known[key] = collection_vectors(views.statistics.docs, views.pools.analyzer, GloVe(seed=seed))
        units = _look_up(known[key], known[key].rows(names))
    else:
        units = _mean_of_forms(views, open_vectors(spec), used, names)
    found = ~np.isnan(units).any(axis=1)
    slot = np.full(len(vocabulary), -1, np.int32)
    slot[used[found]] = np.arange(found.sum(), dtype=np.int32)
    return TermVectors(slot, units[found], int((~found).sum()))


def _mean_of_forms(views: Views, vectors: Vectors, used: Codes, names: list[str]) -> Floats:
    """For each term the direction of the mean of its word forms; of the term itself where it has none."""
    units = _look_up(vectors, _rows(vectors, [surface_form(name) for name in names]))
    forms = _forms_of(views, vectors)
    forms = forms[np.isin(forms[:, 0], used)]
    term, row = np.searchsorted(used, forms[:, 0]), forms[:, 1].astype(np.int32)
    starts = np.flatnonzero(np.diff(term, prepend=-1))
    if len(starts):
        units[term[starts]] = _directions(np.add.reduceat(vectors.units(row), starts, axis=0))
    return units


def _forms_of(views: Views, vectors: Vectors) -> Ints:
    """Each term id with the rows of its word forms, in the documents that statistics come from and in the pools."""
    analyzer, known = views.pools.analyzer, _forms.setdefault(views.statistics, {})
    key = (analyzer, vectors.digest)
    if key not in known:
        docs = views.statistics.docs
        known[key] = _forms_in(track(docs.values(), "reading words", len(docs)), analyzer, vectors)
    if views.statistics is views.pools.collection:
        return known[key]
    return np.unique(np.concatenate([known[key], _forms_in(views.pools.texts, analyzer, vectors)]), axis=0)


def _forms_in(texts: Iterable[str], analyzer: Analyzer, vectors: Vectors) -> Ints:
    words = sorted({word for text in texts for word in plain_words(text)})
    rows = _rows(vectors, words)
    tokens = analyzer.docs([word for word, row in zip(words, rows, strict=True) if row >= 0])
    one: Flags = np.diff(tokens.offsets) == 1
    pairs = np.column_stack([tokens.ids[tokens.offsets[:-1][one]], rows[rows >= 0][one]])
    return np.unique(pairs.astype(np.int64), axis=0)


def _rows(vectors: Vectors, words: list[str]) -> Codes:
    """The rows of words as they are written, else of their lower case."""
    found = vectors.rows(words)
    return np.where(found >= 0, found, vectors.rows(word.lower() for word in words)).astype(np.int32)


def _look_up(vectors: Vectors, rows: Codes) -> Floats:
    found = np.full((len(rows), vectors.dims), np.nan)
    found[rows >= 0] = _directions(vectors.units(rows[rows >= 0]))
    return found


def _directions(sums: Floats) -> Floats:
    """The rows, each of length 1; not numbers where a row has no direction."""
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.asarray(np.divide(sums, lengths, out=np.full_like(sums, np.nan), where=lengths > SAME))


def nearness_of(view: View, terms: TermVectors) -> Nearness:
    """The documents of a view without the query's terms."""
    tokens = view.pool.pools.tokens
    others = terms.slot.copy()
    others[view.term_ids] = -1
    slots = terms.slot[view.term_ids[view.query]]
    query = _directions(terms.units[slots[slots >= 0]].sum(axis=0, keepdims=True))[0]
    units = _directions(_add_up(tokens.ids, tokens.offsets, view.pool.rows, others, terms.units))
    return Nearness(units, units @ query, not np.isnan(query).any())


@njit(cache=True, nogil=True)
def _add_up(ids: Codes, offsets: Ints, rows: Codes, slot: Codes, units: Floats) -> Floats:
    """For each text the sum of the vectors of its tokens, each as often as it occurs."""
    sums = np.zeros((len(rows), units.shape[1]))
    for i in range(len(rows)):
        for at in range(offsets[rows[i]], offsets[rows[i] + 1]):
            unit = slot[ids[at]]
            if unit >= 0:
                for k in range(units.shape[1]):
                    sums[i, k] += units[unit, k]
    return sums


def pair_cosines(units: Floats, a: Codes, b: Codes) -> Floats:
    """The cosine of `units[a[i]]` and `units[b[i]]` for each i; as one matrix product where few rows are meant."""
    (rows, i), (columns, j) = _compact(a, len(units)), _compact(b, len(units))
    if len(rows) * len(columns) <= _CELLS:
        return np.asarray((units[rows] @ units[columns].T)[i, j])
    starts = range(0, len(a), _PAIRS)
    parts = [np.einsum("ik,ik->i", units[a[s : s + _PAIRS]], units[b[s : s + _PAIRS]]) for s in starts]
    return np.concatenate(parts)


def _compact(numbers: Codes, n: int) -> tuple[Ints, Ints]:
    """The distinct numbers, sorted, and the position of each number among them."""
    used = np.zeros(n, bool)
    used[numbers] = True
    return np.flatnonzero(used), np.asarray(np.cumsum(used)[numbers] - 1)
