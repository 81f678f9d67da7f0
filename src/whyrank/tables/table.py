"""The term table: a sparse matrix (query term, document term) -> weight, with look-up in both directions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from whyrank.core import Codes, Ints, WhyrankError
from whyrank.tables.checks import check_entries, check_numbers, check_shapes, check_terms

if TYPE_CHECKING:
    from whyrank.tables.difference import TableDifference

# Terms that stay where they lie: a sequence of strings over an Arrow array, such as one in a mapped file.

_CHUNK = 1 << 16


class ArrowTerms(Sequence[str]):
    """The strings of an Arrow array; each becomes a Python string only when it is used."""

    def __init__(self, array: Any) -> None:
        """Take an Arrow array of strings without nulls."""
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        found = self.array[index]
        texts: str | list[str] = found.to_pylist() if isinstance(index, slice) else found.as_py()
        return texts

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _CHUNK):
            yield from self.array.slice(start, _CHUNK).to_pylist()


def arrow_terms(terms: Sequence[str]) -> Any:
    """The Arrow array of a sequence of terms, without a copy where it is over one already."""
    import pyarrow as pa

    return terms.array if isinstance(terms, ArrowTerms) else pa.array(terms, pa.string())


Weights = npt.NDArray[np.float32]
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
        trusted: leave out the checks that read every entry.
    """

    query_terms: Sequence[str]
    doc_terms: Sequence[str]
    indptr: Ints
    indices: Codes
    weights: Weights
    facts: Mapping[str, Any] = field(default_factory=dict)
    counts: Ints | None = None
    trusted: InitVar[bool] = False

    def __post_init__(self, trusted: bool) -> None:
        check_shapes(self)
        if not trusted:
            check_entries(self)
        # arrays of one kind that cannot be written to, and vocabularies that stay
        parts: dict[str, Any] = {name: _fixed(getattr(self, name), kind) for name, kind in _KINDS.items()}
        parts["counts"] = None if self.counts is None else _fixed(self.counts, np.int64)
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
        rows, queries = _encoded(query_terms, "query")
        columns, docs = _encoded(doc_terms, "document")
        return cls.from_codes(queries, docs, rows, columns, weights, facts)

    @classmethod
    def from_codes(
        cls, query_terms: Sequence[str], doc_terms: Sequence[str], rows: npt.ArrayLike, columns: npt.ArrayLike,
        weights: npt.ArrayLike, facts: Mapping[str, Any] | None = None, counts: npt.ArrayLike | None = None,
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
        return cls(query_terms, doc_terms, row_starts(q, len(query_terms)), d, w, facts or {}, held)

    def __len__(self) -> int:
        return len(self.indices)

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
        """The same entries with a row per document term; columns are the numbers of query terms."""
        from scipy.sparse import csr_array

        shape = len(self.query_terms), len(self.doc_terms)
        turned = csr_array((self.weights, self.indices, self.indptr), shape=shape).tocsc()
        kinds = zip((turned.indptr, turned.indices, turned.data), _KINDS.values(), strict=True)
        return Rows(*(_fixed(part, kind) for part, kind in kinds))

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
        return _best(self.by_query, self.query_numbers.get(query_term), self.doc_terms, n)

    def query_terms_for(self, doc_term: str, n: int | None = 10) -> list[Weighted]:
        """The query terms of the largest weights for a document term; of equal ones the first in the vocabulary."""
        return _best(self.by_doc, self.doc_numbers.get(doc_term), self.query_terms, n)

    def neighbours(self, term: str, n: int | None = 10) -> Neighbours:
        """Both directions of one term."""
        return Neighbours(self.doc_terms_for(term, n), self.query_terms_for(term, n))

    def pruned(
        self, threshold: float | None = None, top_query: int | None = None, top_doc: int | None = None,
        vocabulary: Collection[str] | None = None,
    ) -> TermTable:  # fmt: skip
        """Without weak entries; vocabularies and counts stay.

        An entry stays when its weight is at least `threshold`, both its terms are in `vocabulary`, and, among the
        entries that pass these two, it is one of the best `top_query` of its query term and of the best `top_doc` of
        its document term.
        """
        from whyrank.tables.algebra import pruned

        return pruned(self, threshold, top_query, top_doc, vocabulary)

    def compacted(self) -> TermTable:
        """Without terms that have no entry, and without their counts."""
        from whyrank.tables.algebra import compacted

        return compacted(self)

    def renormalised(self, by: str = "doc") -> TermTable:
        """With weights that add up to 1 for each document term ("doc") or for each query term ("query")."""
        from whyrank.tables.algebra import renormalised

        return renormalised(self, by)

    def with_self(self, p_self: float, keep: str = "add") -> TermTable:
        """Every term of either side translates to itself: T'(t'|t) = (1 - p_self) T(t'|t) + p_self [t' = t].

        With `keep="add"` a weight T(t|t) of the table stays on top of p_self; with "replace" T'(t|t) is p_self alone.
        """
        from whyrank.tables.algebra import with_self

        return with_self(self, p_self, keep)

    def difference(self, other: TermTable, tolerance: float = 1e-6) -> TableDifference:
        """The entries of both tables side by side; weights that differ by at most `tolerance` count as the same."""
        from whyrank.tables.difference import difference

        return difference(self, other, tolerance)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table; the name ends in `.parquet`, `.arrow`, `.tsv` or `.tsv.gz`."""
        from whyrank.tables.files import write_table

        write_table(self, path)


def open_table(path: str | PathLike[str], check: bool = False) -> TermTable:
    """Read a table in any of the formats, which is seen from the content.

    An Arrow file is mapped and not read; with `check` its entries are read and checked like those of other files.
    """
    from whyrank.tables.files import read_table

    return read_table(path, check)


def _best(rows: Rows, number: int | None, terms: Sequence[str], n: int | None) -> list[Weighted]:
    if number is None:
        return []
    here = slice(rows.indptr[number], rows.indptr[number + 1])
    weights = rows.weights[here]
    order = np.argsort(-weights, kind="stable")[:n]
    return [Weighted(terms[int(rows.indices[here][i])], float(weights[i])) for i in order]


def _fixed(given: npt.ArrayLike, kind: Any) -> npt.NDArray[Any]:
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


def _encoded(terms: Sequence[str], side: str) -> tuple[Codes, list[str]]:
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
