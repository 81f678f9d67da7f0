"""Axioms on semantic matching: words that are not in the query, but near to it in meaning.

The vector of a text without the query's terms, V(D - Q), is the mean of the vectors of its other tokens, each as
often as it occurs; V(Q) is the mean over the tokens of the query. Tokens without a vector are left out. Where a mean
is undefined, nothing follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numba import njit

from whyrank.core import (
    Codes,
    Flags,
    Floats,
    Ints,
    UnknownName,
    WhyrankError,
    check_number,
    check_text,
    tolerance_of,
    track,
)
from whyrank.data import Collection
from whyrank.studies.axioms.axiom import Axiom, LongQuery, Precondition, SimilarLength, same_total
from whyrank.studies.axioms.view import View, Views, spelled
from whyrank.text import Analyzer, plain_words
from whyrank.text.vectors import GloVe, Vectors, collection_vectors, open_vectors

# What the semantic axioms see of a view: vectors of terms, and of documents without the terms of the query.
#
# Vectors of terms have length 1. They are trained on the documents of the collection in the analyzer's own terms
# (`vectors="collection"`), or read from a file: then the vector of a term is the mean of those of its word forms,
# which
# are the words of the documents that the analyzer turns into this one term; without any, that of the term itself.
# Cosines of which one is larger by no more than 1e-9 count as equal: numbers so near differ by rounding alone.

SAME = 1e-9
"""Cosines that differ by no more are equal."""

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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_text("vectors", self.vectors)
        if not self.vectors:
            raise WhyrankError("vectors must be 'collection' or a file of word vectors")

    def term_vectors(self, views: Views) -> TermVectors:
        """The vectors of all terms."""
        key = ("term vectors", self.vectors, self.seed)
        return views.once(key, lambda: _term_vectors(views, self.vectors, self.seed))

    def nearness(self, view: View) -> Nearness:
        """The documents without the query's terms."""
        key = ("nearness", self.vectors, self.seed)
        return view.once(key, lambda: _nearness(view, self.term_vectors(view.views)))

    def similarities(self, view: View) -> Floats:
        """The cosine of each query term to each other one, [terms, terms]; not a number where one has no vector."""
        slot, units, _ = self.term_vectors(view.views)
        found = np.full((len(view.terms), units.shape[1]), np.nan)
        rows = slot[view.term_ids]
        found[rows >= 0] = units[rows[rows >= 0]]
        return np.asarray(found @ found.T)

    def remarks(self, views: Views) -> Mapping[str, int]:
        """How many terms have no vector, and what could not be asked therefore."""
        counted = {"words without a vector": self.term_vectors(views).missing, **self.unasked(views)}
        return {reason: count for reason, count in counted.items() if count}

    def unasked(self, views: Views) -> Mapping[str, int]:
        """What could not be asked, by reason; zeros are left out later."""
        return {}


def pair_cosines(units: Floats, a: Codes, b: Codes) -> Floats:
    """The cosine of `units[a[i]]` and `units[b[i]]` for each i; as one matrix product where few rows are meant."""
    (rows, i), (columns, j) = _compact(a, len(units)), _compact(b, len(units))
    if len(rows) * len(columns) <= _CELLS:
        return np.asarray((units[rows] @ units[columns].T)[i, j])
    starts = range(0, len(a), _PAIRS)
    parts = [np.einsum("ik,ik->i", units[a[s : s + _PAIRS]], units[b[s : s + _PAIRS]]) for s in starts]
    return np.concatenate(parts)


def _compact(numbers: Codes, n: int) -> tuple[Ints, Ints]:
    """The distinct numbers, sorted, and the place of each number among them."""
    used = np.zeros(n, bool)
    used[numbers] = True
    return np.flatnonzero(used), np.asarray(np.cumsum(used)[numbers] - 1)


def _nearness(view: View, terms: TermVectors) -> Nearness:
    tokens = view.pool.pools.tokens
    others = terms.slot.copy()
    others[view.term_ids] = -1
    sums = np.zeros((len(view), terms.units.shape[1]))
    _add_up(tokens.ids, tokens.offsets, view.pool.rows, others, terms.units, sums)
    asked = terms.slot[view.term_ids[view.query]]
    query = directions(terms.units[asked[asked >= 0]].sum(axis=0, keepdims=True))[0]
    units = directions(sums)
    return Nearness(units, units @ query, not np.isnan(query).any())


def directions(sums: Floats) -> Floats:
    """The rows, each of length 1; not numbers where a row has no direction."""
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.asarray(np.divide(sums, lengths, out=np.full_like(sums, np.nan), where=lengths > SAME))


@njit(cache=True, nogil=True)
def _add_up(ids: Codes, offsets: Ints, rows: Codes, slot: Codes, units: Floats, sums: Floats) -> None:
    """For each text the sum of the vectors of its tokens, each as often as it occurs."""
    for i in range(len(rows)):
        for place in range(offsets[rows[i]], offsets[rows[i] + 1]):
            at = slot[ids[place]]
            if at >= 0:
                for k in range(units.shape[1]):
                    sums[i, k] += units[at, k]


def _term_vectors(views: Views, spec: str, seed: int) -> TermVectors:
    queries = [view.term_ids for view in views]
    used = np.unique(np.concatenate([views.pools.tokens.ids, *queries]))
    vocabulary = views.pools.analyzer.vocabulary
    names = [vocabulary.terms[i] for i in used]
    units = _of_collection(views, names, seed) if spec == "collection" else _of_file(views, used, names, spec)
    found = ~np.isnan(units).any(axis=1)
    slot = np.full(len(vocabulary), -1, np.int32)
    slot[used[found]] = np.arange(found.sum(), dtype=np.int32)
    return TermVectors(slot, units[found], int((~found).sum()))


def _of_collection(views: Views, names: list[str], seed: int) -> Floats:
    known, key = _trained.setdefault(views.statistics, {}), (views.pools.analyzer, seed)
    if key not in known:
        known[key] = collection_vectors(views.statistics.docs, views.pools.analyzer, GloVe(seed=seed))
    return _looked_up(known[key], known[key].rows(names))


def _of_file(views: Views, used: Codes, names: list[str], spec: str) -> Floats:
    vectors = open_vectors(spec)
    units = _looked_up(vectors, _rows(vectors, [spelled(name) for name in names]))
    pairs = _pairs(views, vectors)
    pairs = pairs[np.isin(pairs[:, 0], used)]
    term, row = np.searchsorted(used, pairs[:, 0]), pairs[:, 1].astype(np.int32)
    starts = np.flatnonzero(np.diff(term, prepend=-1))
    if len(starts):
        units[term[starts]] = directions(np.add.reduceat(vectors.units(row), starts, axis=0))
    return units


def _looked_up(vectors: Vectors, rows: Codes) -> Floats:
    found = np.full((len(rows), vectors.dims), np.nan)
    found[rows >= 0] = directions(vectors.units(rows[rows >= 0]))
    return found


def _rows(vectors: Vectors, words: list[str]) -> Codes:
    """The rows of words as they are written, else of their lower case."""
    found = vectors.rows(words)
    return np.where(found >= 0, found, vectors.rows(word.lower() for word in words)).astype(np.int32)


def _pairs(views: Views, vectors: Vectors) -> Ints:
    """Each term id with the rows of its word forms, in the documents that statistics come from and in the pools."""
    analyzer, known = views.pools.analyzer, _forms.setdefault(views.statistics, {})
    key = (analyzer, vectors.digest)
    if key not in known:
        docs = views.statistics.docs
        known[key] = _pairs_of(track(docs.values(), "reading words", len(docs)), analyzer, vectors)
    if views.statistics is views.pools.collection:
        return known[key]
    return np.unique(np.concatenate([known[key], _pairs_of(views.pools.texts, analyzer, vectors)]), axis=0)


def _pairs_of(texts: Iterable[str], analyzer: Analyzer, vectors: Vectors) -> Ints:
    forms = sorted({word for text in texts for word in plain_words(text)})
    rows = _rows(vectors, forms)
    tokens = analyzer.docs([form for form, row in zip(forms, rows, strict=True) if row >= 0])
    one: Flags = np.diff(tokens.offsets) == 1
    pairs = np.column_stack([tokens.ids[tokens.offsets[:-1][one]], rows[rows >= 0][one]])
    return np.unique(pairs.astype(np.int64), axis=0)


COVERAGE = ("distinct", "occurrences")


@dataclass(frozen=True, kw_only=True)
class STMC1(SemanticAxiom):
    """Of two texts with as many query terms, the one whose other words are nearer to the query wins.

    Original: for a query of one term q and two texts of one other term each, d1 and d2, s(q, d1) > s(q, d2) implies
    S(Q, D1) > S(Q, D2), where s is the similarity of two terms.
    Adapted: for any texts with equally many distinct query terms (`coverage`; or as many occurrences); s is the
    cosine of the mean vectors of the query and of the text without query terms. In print the similarity is called
    cosine distance.
    Formula: |D1 ∩ Q| = |D2 ∩ Q|, cos(V(D1 - Q), V(Q)) > cos(V(D2 - Q), V(Q)).
    Conclusion: S(Q, D1) > S(Q, D2).
    Compat: query terms are counted as often as they occur, and the cosine distance takes the place of the
    similarity, so the text whose other words are further from the query must win.
    Paper: Fang and Zhai, "Semantic term matching in axiomatic approaches to information retrieval", SIGIR 2006;
    adapted in Câmara and Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020.
    """

    coverage: str = "distinct"

    name: ClassVar[str] = "STMC1"
    favours: ClassVar[str] = "the text whose other words are nearer to the query in meaning"
    compat_favours: ClassVar[str] = "the text whose other words are further from the query in meaning"
    not_filled: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coverage not in COVERAGE:
            raise UnknownName("coverage", str(self.coverage), COVERAGE)

    def preconditions(self) -> tuple[Precondition, ...]:
        """As many query terms in both."""
        return (same_total if self.compat or self.coverage == "occurrences" else same_distinct,)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The other words of `a` are nearer to the query; under `compat` those of `b`."""
        near = self.nearness(view).cosine
        return np.asarray(near[b] - near[a] > SAME if self.compat else near[a] - near[b] > SAME)

    def unasked(self, views: Views) -> Mapping[str, int]:
        """Texts and queries without a direction."""
        return without_direction(self, views)


@dataclass(frozen=True, kw_only=True)
class STMC2(SemanticAxiom):
    """Of two texts whose other words mean about the same, the one with more query terms does not lose.

    Original: a text that is one query term scores no lower than a text of k copies of another term, however similar
    to the query: to match the term itself is at least as good.
    Adapted: for any texts without whose query terms the cosine distance is at most `distance` (0.2). The printed
    condition compares the other words of D2 with the query terms of D1; query terms of both are compared.
    Formula: 1 - cos(V(D1 - Q), V(D2 - Q)) <= 0.2, sum_q c(q, D1) > sum_q c(q, D2).
    Conclusion: S(Q, D1) >= S(Q, D2).
    Compat: the same.
    Paper: Fang and Zhai, "Semantic term matching in axiomatic approaches to information retrieval", SIGIR 2006;
    adapted in Câmara and Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020.
    """

    distance: float = 0.2

    name: ClassVar[str] = "STMC2"
    favours: ClassVar[str] = "the text with more query terms, other words being alike in meaning"
    strict: ClassVar[bool] = False
    not_filled: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("distance", self.distance, 0, 2)

    def preconditions(self) -> tuple[Precondition, ...]:
        """Other words that mean about the same."""
        return (self._alike,)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """`a` has more query terms."""
        return np.asarray(view.total[a] > view.total[b])

    def unasked(self, views: Views) -> Mapping[str, int]:
        """Texts without a direction."""
        return {DOCUMENTS: _lost_documents(self, views)}

    def _alike(self, view: View, a: Codes, b: Codes) -> Flags:
        return np.asarray(1 - pair_cosines(self.nearness(view).units, a, b) <= self.distance + SAME)


@dataclass(frozen=True, kw_only=True)
class STMC3(SemanticAxiom):
    """Of two texts with the same query terms, one with fewer of them but nearer other words does not lose.

    Original: for a query of two terms and texts of equal length, D2 of nothing but the first term does not beat D1,
    where one occurrence of it is replaced by a term that is similar to the second.
    Adapted: for any texts with equally many distinct query terms whose lengths differ by less than `length` tokens
    (10); D2 has more query-term occurrences, and the other words of D1 are nearer to the query. The conclusion that
    is printed for this condition contradicts the original, which is used.
    Formula: | |D1| - |D2| | < 10, |D1 ∩ Q| = |D2 ∩ Q|, sum_q c(q, D1) < sum_q c(q, D2),
    cos(V(D1 - Q), V(Q)) > cos(V(D2 - Q), V(Q)).
    Conclusion: S(Q, D1) >= S(Q, D2).
    Compat: D2 has more tokens outside the query, in place of more query terms, and the cosine distance takes the
    place of the similarity, so the other words of D1 are further from the query.
    Paper: Fang and Zhai, "Semantic term matching in axiomatic approaches to information retrieval", SIGIR 2006;
    adapted in Câmara and Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020.
    """

    length: float | str = 10

    name: ClassVar[str] = "STMC3"
    favours: ClassVar[str] = "the text with nearer other words over one with more query terms"
    compat_favours: ClassVar[str] = "the text with further other words over one with more of them"
    strict: ClassVar[bool] = False
    not_filled: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        tolerance_of("length", self.length)

    def preconditions(self) -> tuple[Precondition, ...]:
        """Lengths that differ by less than the tolerance, and as many distinct query terms."""
        return self._near_length, same_distinct

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """`b` has more query terms (under `compat`: other tokens), but `a` is nearer (further)."""
        near, more = self.nearness(view).cosine, view.total
        if self.compat:
            near, more = -near, view.lengths - view.total
        return np.asarray((more[b] > more[a]) & (near[a] - near[b] > SAME))

    def unasked(self, views: Views) -> Mapping[str, int]:
        """Texts and queries without a direction."""
        return without_direction(self, views)

    def _near_length(self, view: View, a: Codes, b: Codes) -> Flags:
        absolute, relative = tolerance_of("length", self.length)
        one, two = view.lengths[a], view.lengths[b]
        room = absolute + relative * np.maximum(one, two)
        return np.asarray(np.abs(one - two) < room * (1 - SAME))  # 7% of 100 is a little above 7 in floating point


DOCUMENTS = "documents without a word vector outside the query"


def same_distinct(view: View, a: Codes, b: Codes) -> Flags:
    """Both documents have equally many distinct query terms."""
    return np.asarray(view.distinct[a] == view.distinct[b])


def without_direction(axiom: SemanticAxiom, views: Views) -> Mapping[str, int]:
    """How many documents and queries have no direction."""
    lost = sum(not axiom.nearness(view).has_query for view in views)
    return {DOCUMENTS: _lost_documents(axiom, views), "queries without a word vector": lost}


def _lost_documents(axiom: SemanticAxiom, views: Views) -> int:
    return sum(int(np.isnan(axiom.nearness(view).units).any(axis=1).sum()) for view in views)


# Axioms on query aspects: which of the query's terms a text should have more of, by how the terms are related.


@dataclass(frozen=True, kw_only=True)
class REG(SemanticAxiom):
    """Of two texts with as many query terms, the one with more of the term least like the others wins.

    Original: related terms of a query are one aspect of it, and a text that covers more aspects beats one that
    repeats terms of the same aspect.
    Adapted: the term t* with the smallest mean cosine to the other query terms stands for the aspect that is easily
    left out. It must be the only one, among three or more terms with vectors. The texts have equally many query-term
    occurrences, and lengths differ by at most `length` tokens (10).
    Formula: | |D1| - |D2| | <= 10, sum_q c(q, D1) = sum_q c(q, D2), t* = argmin_t mean_{u in Q, u != t} cos(t, u),
    c(t*, D1) > c(t*, D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Wu and Fang, "Relation based term weighting regularization", ECIR 2012, after Zheng and Fang, "Query aspect
    based term weighting regularization in information retrieval", ECIR 2010.
    """

    length: float | str = 10

    name: ClassVar[str] = "REG"
    favours: ClassVar[str] = "the text with more of the query term that is least like the others"
    sign: ClassVar[int] = -1

    def __post_init__(self) -> None:
        super().__post_init__()
        tolerance_of("length", self.length)

    def preconditions(self) -> tuple[Precondition, ...]:
        """Three query terms, similar length, and equally many query terms in both."""
        return LongQuery(3), SimilarLength(self.length), same_total

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """`a` has more of the term that stands out."""
        term = self.outstanding(view)
        if term is None:
            return np.zeros(len(a), bool)
        return np.asarray(view.counts[a, term] > view.counts[b, term])

    def outstanding(self, view: View) -> int | None:
        """The number of the query term whose mean cosine to the others stands out; None where there is none."""
        likeness, terms = self._likeness(view)
        if len(terms) < 3:
            return None
        first, second = np.argsort(-self.sign * likeness)[:2]
        return int(terms[first]) if abs(likeness[first] - likeness[second]) > SAME else None

    def unasked(self, views: Views) -> Mapping[str, int]:
        """Queries without a term that stands out."""
        short = sum(len(self._likeness(view)[1]) < 3 for view in views)
        lost = sum(self.outstanding(view) is None for view in views)
        return {
            "queries of fewer than three terms with a vector": short,
            f"queries without a single term {self._which} the others": lost - short,
        }

    @property
    def _which(self) -> str:
        return "least like" if self.sign < 0 else "most like"

    def _likeness(self, view: View) -> tuple[Floats, Ints]:
        """The mean cosine to the others of each query term that has a vector, and the numbers of these terms."""
        cosines = self.similarities(view)
        terms = np.flatnonzero(~np.isnan(np.diag(cosines)))
        among = cosines[np.ix_(terms, terms)]
        return np.asarray((among.sum(axis=1) - np.diag(among)) / max(len(terms) - 1, 1)), terms


@dataclass(frozen=True, kw_only=True)
class ANTI_REG(REG):  # noqa: N801
    """Of two texts with as many query terms, the one with more of the term most like the others wins.

    Original: the reverse of REG: what most of the query is about counts most.
    Adapted: as REG, with the query term t* that has the largest mean cosine to the others.
    Formula: | |D1| - |D2| | <= 10, sum_q c(q, D1) = sum_q c(q, D2), t* = argmax_t mean_{u in Q, u != t} cos(t, u),
    c(t*, D1) > c(t*, D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Hagen, Völske, Göring and Stein, "Axiomatic result re-ranking", CIKM 2016, after Zheng and Fang, "Query
    aspect based term weighting regularization in information retrieval", ECIR 2010.
    """

    name: ClassVar[str] = "ANTI-REG"
    favours: ClassVar[str] = "the text with more of the query term that is most like the others"
    sign: ClassVar[int] = 1
