"""The term table: a sparse matrix (query term, document term) -> weight, with look-up in both directions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import Codes, Flags, Ints, NonNegative, Share, Whole, WhyrankError, check
from whyrank.tables.parts import ArrowTerms, check_entries, check_numbers, check_shapes, check_terms
from whyrank.text import analyzers
from whyrank.text.steps import lower

if TYPE_CHECKING:
    from whyrank.tables.difference import TableDifference

Weights = npt.NDArray[np.float32]
BUNDLED = ("bundled", "bundled-minilm")
_KINDS = {"indptr": np.int64, "indices": np.int32, "weights": np.float32}


class Rows(NamedTuple):
    """A matrix by rows: row i has the columns `indices[indptr[i]:indptr[i + 1]]`, ascending, and their weights."""

    indptr: Ints
    indices: Codes
    weights: Weights


class Entry(NamedTuple):
    """One association of a table."""

    query_term: str
    document_term: str
    weight: float


class Weighted(NamedTuple):
    """A term and the weight that ties it to the requested one."""

    term: str
    weight: float


class Neighbours(NamedTuple):
    """What a term is tied to: as a query term to document terms, as a document term to query terms."""

    doc_terms: list[Weighted]
    query_terms: list[Weighted]


@dataclass(frozen=True, eq=False)
class TermTable:
    """Weights of (query term, document term) pairs, stored by query term; a pair without an entry weighs zero.

    Attributes:
        query_terms: the query vocabulary, no term twice.
        doc_terms: the document vocabulary, no term twice.
        indptr: where the entries of each query term begin, and where the last ones end.
        indices: the number of each entry's document term, ascending within a query term.
        weights: finite, zero or more.
        facts: how the table was learned; anything that JSON can hold.
        counts: how often each document term occurs in the text that the table was learned from, where that is known.
        words: of terms that are stems, the word that texts write most often, where that is known.
        trusted: leave out the checks that read every entry.

    Example:
        >>> table = TermTable.from_triples(["car", "car"], ["vehicle", "auto"], [0.25, 0.5])
        >>> [(entry.term, entry.weight) for entry in table["car"]]
        [('auto', 0.5), ('vehicle', 0.25)]
    """

    query_terms: Sequence[str]
    doc_terms: Sequence[str]
    indptr: Ints
    indices: Codes
    weights: Weights
    facts: Mapping[str, Any] = field(default_factory=dict)
    counts: Ints | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    trusted: InitVar[bool] = False

    def __post_init__(self, trusted: bool) -> None:
        check_shapes(self)
        if not trusted:
            check_entries(self)
        # arrays of one kind that cannot be written to, and vocabularies that stay
        parts: dict[str, Any] = {name: _freeze(getattr(self, name), kind) for name, kind in _KINDS.items()}
        parts["counts"] = None if self.counts is None else _freeze(self.counts, np.int64)
        for name in ("query_terms", "doc_terms"):
            terms = getattr(self, name)
            parts[name] = terms if isinstance(terms, ArrowTerms | tuple) else tuple(terms)
        for name, value in (parts | {"facts": dict(self.facts)}).items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_triples(
        cls, query_terms: Sequence[str], doc_terms: Sequence[str], weights: npt.ArrayLike, **facts: Any
    ) -> TermTable:
        """A table of aligned sequences; vocabularies are in the order in which terms first appear."""
        rows, queries = _encode(query_terms, "query")
        columns, docs = _encode(doc_terms, "document")
        return cls.from_codes(queries, docs, rows, columns, weights, facts)

    @classmethod
    def from_codes(
        cls, query_terms: Sequence[str], doc_terms: Sequence[str], rows: npt.ArrayLike, columns: npt.ArrayLike,
        weights: npt.ArrayLike, facts: Mapping[str, Any] | None = None, counts: npt.ArrayLike | None = None,
        words: Mapping[str, str] | None = None,
    ) -> TermTable:  # fmt: skip
        """A table of two vocabularies and entries in any order, given by numbers of query and document terms.

        A pair that comes twice is an error.
        """
        q, d, w = np.asarray(rows), np.asarray(columns), np.asarray(weights)
        if not q.shape == d.shape == w.shape:
            what = f"{len(q):,} query terms, {len(d):,} document terms and {len(w):,} weights do not align"
            raise WhyrankError(what)
        check_numbers(q, len(query_terms), "query")
        check_numbers(d, len(doc_terms), "document")
        keys = entry_keys(q, d, len(doc_terms))
        if np.any(keys[1:] <= keys[:-1]):
            order = np.argsort(keys, kind="stable")
            keys, q, d, w = keys[order], q[order], d[order], w[order]
            twice = np.flatnonzero(keys[1:] == keys[:-1])
            if len(twice):
                pair = f"{query_terms[q[twice[0]]]!r}, {doc_terms[d[twice[0]]]!r}"
                more = f" ({len(twice):,} such entries)" if len(twice) > 1 else ""
                raise WhyrankError(f"the pair {pair} comes twice{more}; keep one weight per pair")
        held = None if counts is None else np.asarray(counts, dtype=np.int64)
        return cls(query_terms, doc_terms, row_starts(q, len(query_terms)), d, w, facts or {}, held, words or {})

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, query_term: str) -> list[Weighted]:
        """All document terms of a query term, the best first."""
        return self.doc_terms_for(query_term, None)

    def __repr__(self) -> str:
        return f"TermTable({len(self.query_terms)} x {len(self.doc_terms)} terms, {len(self)} entries)"

    @cached_property
    def query_numbers(self) -> dict[str, int]:
        """The number of each query term."""
        return {term: i for i, term in enumerate(self.query_terms)}

    @cached_property
    def doc_numbers(self) -> dict[str, int]:
        """The number of each document term."""
        return {term: i for i, term in enumerate(self.doc_terms)}

    @property
    def by_query(self) -> Rows:
        """The table as it is stored: a row per query term."""
        return Rows(self.indptr, self.indices, self.weights)

    @cached_property
    def by_doc(self) -> Rows:
        """The table with a row per document term; columns are the numbers of query terms."""
        from scipy.sparse import csr_array

        shape = len(self.query_terms), len(self.doc_terms)
        turned = csr_array((self.weights, self.indices, self.indptr), shape=shape).tocsc()
        kinds = zip((turned.indptr, turned.indices, turned.data), _KINDS.values(), strict=True)
        return Rows(*(_freeze(part, kind) for part, kind in kinds))

    @cached_property
    def digest(self) -> str:
        """First 16 hex digits of a SHA-256 of vocabularies, entries and counts; facts do not count."""
        total = hashlib.sha256()
        for terms in (self.query_terms, self.doc_terms):
            total.update(json.dumps(list(terms)).encode())
        total.update(b"plain" if self.counts is None else b"counted")
        arrays: list[npt.NDArray[Any]] = [self.indptr, self.indices, self.weights]
        for array in arrays if self.counts is None else [*arrays, self.counts]:
            total.update(array.astype(array.dtype.newbyteorder("<"), copy=False).data)
        return total.hexdigest()[:16]

    def word(self, term: str) -> str:
        """The word that texts write for a term; the term itself where that is not known."""
        return self.words.get(term, term)

    def term(self, text: str) -> str | None:
        """The term for a word, if the table has it: as it is, in lower case, or as the table's analyzer writes it."""
        forms = [text, lower(text)]
        if analyzer := self.facts.get("analyzer"):
            with suppress(WhyrankError):  # an analyzer that is not installed
                made = analyzers.create(str(analyzer)).terms(text)
                forms += made if len(made) == 1 else []  # several words are no term
        known = (each for each in forms if each in self.query_numbers or each in self.doc_numbers)
        return next(known, None)

    def row_numbers(self) -> Codes:
        """The number of each entry's query term."""
        return np.repeat(np.arange(len(self.query_terms), dtype=np.int32), np.diff(self.indptr))

    def own_numbers(self) -> Codes:
        """The number of each query term as a document term; -1 where it is none."""
        return np.array([self.doc_numbers.get(term, -1) for term in self.query_terms], dtype=np.int32)

    def rows(self) -> Iterator[Entry]:
        """Every entry, by query term."""
        for q, term in enumerate(self.query_terms):
            here = slice(self.indptr[q], self.indptr[q + 1])
            for d, weight in zip(self.indices[here].tolist(), self.weights[here].tolist(), strict=True):
                yield Entry(term, self.doc_terms[d], weight)

    def weight(self, query_term: str, doc_term: str) -> float:
        """The weight of a pair; zero where there is no entry."""
        entry = self._entry(query_term, doc_term)
        return 0.0 if entry is None else float(self.weights[entry])

    def has(self, query_term: str, doc_term: str) -> bool:
        """Whether there is an entry for a pair; its weight may be zero."""
        return self._entry(query_term, doc_term) is not None

    def _entry(self, query_term: str, doc_term: str) -> int | None:
        q, d = self.query_numbers.get(query_term), self.doc_numbers.get(doc_term)
        if q is None or d is None:
            return None
        columns = self.indices[self.indptr[q] : self.indptr[q + 1]]
        position = int(np.searchsorted(columns, d))
        return int(self.indptr[q]) + position if position < len(columns) and columns[position] == d else None

    def doc_terms_for(self, query_term: str, n: int | None = 10) -> list[Weighted]:
        """The document terms of the largest weights for a query term; of equal ones the first in the vocabulary."""
        return _best_of_row(self.by_query, self.query_numbers.get(query_term), self.doc_terms, n)

    def query_terms_for(self, doc_term: str, n: int | None = 10) -> list[Weighted]:
        """The query terms of the largest weights for a document term; of equal ones the first in the vocabulary."""
        return _best_of_row(self.by_doc, self.doc_numbers.get(doc_term), self.query_terms, n)

    def neighbours(self, term: str, n: int | None = 10) -> Neighbours:
        """Both directions of one term."""
        return Neighbours(self.doc_terms_for(term, n), self.query_terms_for(term, n))

    def prune(
        self, threshold: float | None = None, top_query: int | None = None, top_doc: int | None = None,
        vocabulary: Collection[str] | None = None,
    ) -> TermTable:  # fmt: skip
        """Without weak entries; vocabularies and counts stay, and the facts have the limits that hold now.

        Entries stay whose weight is at least `threshold` and whose terms are both in `vocabulary`. Of these, one
        stays when it is among the best `top_query` of its query term and the best `top_doc` of its document term.
        """
        rows, keep, facts = self.row_numbers(), np.ones(len(self), dtype=np.bool_), dict(self.facts)
        if vocabulary is not None:
            known = vocabulary if isinstance(vocabulary, set | frozenset | dict) else set(vocabulary)
            queries, docs = (
                np.fromiter((term in known for term in terms), np.bool_, len(terms))
                for terms in (self.query_terms, self.doc_terms)
            )
            keep &= queries[rows] & docs[self.indices]
        if threshold is not None:
            check("threshold", threshold, NonNegative)
            keep &= self.weights >= np.float32(threshold)
            before = facts.get("threshold")
            facts["threshold"] = max(float(threshold), before if isinstance(before, int | float) else 0.0)
        passed = keep
        for name, most, groups in (("top_query", top_query, rows), ("top_doc", top_doc, self.indices)):
            if most is not None:
                check(name, most, Whole)
                passed = passed & best_of_groups(self.weights, groups, most, keep)
                before = facts.get(name)
                facts[name] = min(int(most), before) if isinstance(before, int) else int(most)
        return replace(self.select(passed), facts=facts, trusted=True)

    def select(self, keep: Flags) -> TermTable:
        """With the marked entries alone; vocabularies and counts stay."""
        indptr = row_starts(self.row_numbers()[keep], len(self.query_terms))
        return replace(self, indptr=indptr, indices=self.indices[keep], weights=self.weights[keep], trusted=True)

    def compact(self) -> TermTable:
        """Without terms that have no entry, and without their counts."""
        q = np.flatnonzero(np.diff(self.indptr))
        d = np.flatnonzero(np.bincount(self.indices, minlength=len(self.doc_terms)))
        number = np.zeros(len(self.doc_terms), dtype=np.int32)
        number[d] = np.arange(len(d), dtype=np.int32)
        indptr = np.append(self.indptr[q], self.indptr[-1:])
        counts = None if self.counts is None else self.counts[d]
        queries, docs = [self.query_terms[i] for i in q.tolist()], [self.doc_terms[i] for i in d.tolist()]
        parts = indptr, number[self.indices], self.weights, self.facts, counts, self.words
        return TermTable(queries, docs, *parts, trusted=True)

    def renormalise(self, by: str = "doc") -> TermTable:
        """With weights that add up to 1 for each document term ("doc") or for each query term ("query").

        A term whose weights are all zero keeps them.
        """
        groups = {"doc": self.indices, "query": self.row_numbers()}
        if by not in groups:
            raise WhyrankError(f'renormalised by {by!r}: say "doc" or "query"')
        sums = np.bincount(groups[by], weights=self.weights)
        weights = self.weights / np.where(sums > 0, sums, 1)[groups[by]]
        facts = {**self.facts, "renormalised": by}
        return replace(self, weights=weights.astype(np.float32), facts=facts, trusted=True)

    def with_self(self, p_self: float, keep: str = "add") -> TermTable:
        """Every term of either side translates to itself: T'(t'|t) = (1 - p_self) T(t'|t) + p_self [t' = t].

        With `keep="add"` a weight T(t|t) of the table stays on top of p_self; with "replace" T'(t|t) is p_self alone.
        Both vocabularies get the terms of the other side; zero weights are left out.
        """
        check("p_self", p_self, Share)
        if keep not in ("add", "replace"):
            raise WhyrankError(f'keep={keep!r}: say "add" or "replace"')
        queries = (*self.query_terms, *(term for term in self.doc_terms if term not in self.query_numbers))
        docs = (*self.doc_terms, *(term for term in self.query_terms if term not in self.doc_numbers))
        counts = self.counts
        if counts is not None:
            counts = np.append(counts, np.zeros(len(docs) - len(self.doc_terms), dtype=np.int64))
        number = {term: i for i, term in enumerate(docs)}
        rows, numbers = self.row_numbers(), np.array([number[term] for term in queries], dtype=np.int32)
        weights, own = self.weights.astype(np.float64) * (1 - p_self), self.indices == numbers[rows]
        selves = np.full(len(queries), float(p_self))
        if keep == "add":
            selves[rows[own]] += weights[own]
        q = np.concatenate([rows[~own], np.arange(len(selves), dtype=np.int32)])
        d = np.concatenate([self.indices[~own], numbers])
        w = np.concatenate([weights[~own], selves]).astype(np.float32)
        some, facts = w > 0, {**self.facts, "p_self": float(p_self)}
        return TermTable.from_codes(queries, docs, q[some], d[some], w[some], facts, counts, self.words)

    def difference(self, other: TermTable, tolerance: float = 1e-6) -> TableDifference:
        """The entries of both tables side by side; weights that differ by at most `tolerance` count as the same."""
        from whyrank.tables.difference import difference

        return difference(self, other, tolerance)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table; the name ends in `.parquet`, `.arrow`, `.tsv` or `.tsv.gz`."""
        from whyrank.tables.files import write_table

        write_table(self, path)


def open_table(path: str | PathLike[str], check: bool = False) -> TermTable:
    """Read a table in any of the formats, which is seen from the content; `bundled` and `bundled-minilm` are ours.

    A file of one of these names is written `./bundled`. An Arrow file is mapped and not read; with `check` its
    entries are read and checked like those of other files.

    Example:
        >>> import tempfile
        >>> file = tempfile.NamedTemporaryFile(suffix=".tsv")
        >>> _ = file.write(b"car\\tauto\\t0.5\\n"), file.flush()
        >>> open_table(file.name)["car"]
        [Weighted(term='auto', weight=0.5)]
    """
    from whyrank.tables.files import read_table

    return read_table(Path(__file__).parent / "bundled" / f"{path}.parquet" if path in BUNDLED else path, check)


def _best_of_row(rows: Rows, number: int | None, terms: Sequence[str], n: int | None) -> list[Weighted]:
    if number is None:
        return []
    here = slice(rows.indptr[number], rows.indptr[number + 1])
    weights = rows.weights[here]
    order = np.argsort(-weights, kind="stable")[:n]
    return [Weighted(terms[int(rows.indices[here][i])], float(weights[i])) for i in order]


def best_of_groups(weights: Weights, groups: Codes, most: int, keep: Flags) -> Flags:
    """Which of the entries to keep are among the best `most` of their group; of equal ones the first."""
    sizes = np.bincount(groups[keep], minlength=int(groups.max(initial=-1)) + 1)
    crowded = (sizes > most)[groups]
    best: Flags = keep & ~crowded
    positions = np.flatnonzero(keep & crowded)
    # one number per entry orders them by group, then from large to small weights: the bits of floats from zero up are
    # in order (plus zero, because -0.0 has other bits), and one sort of integers takes a third of the time of lexsort
    descending = np.uint32(0xFFFFFFFF) - (weights[positions] + np.float32(0)).view(np.uint32)
    keys = (groups[positions].astype(np.uint64) << np.uint64(32)) | descending
    positions = positions[np.argsort(keys, kind="stable")]
    sizes = np.where(sizes > most, sizes, 0)
    ranks = np.arange(len(positions)) - (np.cumsum(sizes) - sizes)[groups[positions]]
    best[positions[ranks < most]] = True
    return best


def _freeze(given: npt.ArrayLike, kind: Any) -> npt.NDArray[Any]:
    array = np.ascontiguousarray(given, dtype=kind).view()
    array.flags.writeable = False
    return array


def entry_keys(rows: npt.NDArray[Any], columns: npt.NDArray[Any], width: int) -> Ints:
    """One number per entry that orders entries by row, then by column."""
    keys: Ints = rows.astype(np.int64) * max(width, 1) + columns
    return keys


def row_starts(rows: npt.NDArray[Any], size: int) -> Ints:
    """Where each row begins among entries that are in the order of rows."""
    starts = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=size), out=starts[1:])
    return starts


def _encode(terms: Sequence[str], side: str) -> tuple[Codes, list[str]]:
    """The number of each term, and the distinct terms in the order of their first appearance."""
    import pyarrow as pa

    try:
        found = pa.array(terms, pa.string()).dictionary_encode()
    except (pa.ArrowException, UnicodeEncodeError, TypeError):
        check_terms(terms, side)
        raise
    if found.null_count:
        raise WhyrankError(f"a {side} term is missing")
    return found.indices.to_numpy(), found.dictionary.to_pylist()
