"""Term tables from triples, from numbers, and turned round; whole columns at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from whyrank.core.errors import WhyrankError
from whyrank.core.protocols import Codes, Ints
from whyrank.data.term_table import Rows, TermTable
from whyrank.data.term_table_checks import check_numbers, check_terms


def from_triples(
    query_terms: Sequence[str], doc_terms: Sequence[str], weights: npt.ArrayLike, facts: Mapping[str, Any]
) -> TermTable:
    """A table of aligned sequences; vocabularies are in the order in which terms first appear."""
    rows, queries = _encoded(query_terms, "query")
    columns, docs = _encoded(doc_terms, "document")
    return from_codes(queries, docs, rows, columns, np.asarray(weights), facts)


def from_codes(
    query_terms: Sequence[str], doc_terms: Sequence[str], rows: npt.ArrayLike, columns: npt.ArrayLike,
    weights: npt.ArrayLike, facts: Mapping[str, Any] | None = None, counts: npt.ArrayLike | None = None,
) -> TermTable:  # fmt: skip
    """A table of entries in any order; a pair that comes twice is an error."""
    q, d, w = np.asarray(rows), np.asarray(columns), np.asarray(weights)
    if not q.shape == d.shape == w.shape:
        raise WhyrankError(f"{len(q):,} query terms, {len(d):,} document terms and {len(w):,} weights do not align")
    check_numbers(q, len(query_terms), "query")
    check_numbers(d, len(doc_terms), "document")
    keys = entry_keys(q, d, len(doc_terms))
    if np.any(keys[1:] <= keys[:-1]):
        order = np.argsort(keys, kind="stable")
        keys, q, d, w = keys[order], q[order], d[order], w[order]
        _check_single(keys, query_terms, doc_terms)
    indptr = row_starts(q, len(query_terms))
    held = None if counts is None else np.asarray(counts, dtype=np.int64)
    return TermTable(query_terms, doc_terms, indptr, d, w, facts or {}, held)


def entry_keys(rows: npt.NDArray[Any], columns: npt.NDArray[Any], width: int) -> Ints:
    """One number per entry that orders entries by row, then by column."""
    keys: Ints = rows.astype(np.int64) * max(width, 1) + columns
    return keys


def row_starts(rows: npt.NDArray[Any], size: int) -> Ints:
    """Where each row begins among entries that are in the order of rows."""
    starts = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=size), out=starts[1:])
    return starts


def transposed(rows: Rows, width: int) -> Rows:
    """The same entries with a row for each of the `width` columns."""
    from scipy.sparse import csr_array

    shape = (len(rows.indptr) - 1, width)
    turned = csr_array((rows.weights, rows.indices, rows.indptr), shape=shape).tocsc()
    parts = Rows(turned.indptr.astype(np.int64), turned.indices.astype(np.int32, copy=False), turned.data)
    for part in parts:
        part.flags.writeable = False
    return parts


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


def _check_single(keys: Ints, query_terms: Sequence[str], doc_terms: Sequence[str]) -> None:
    same = np.flatnonzero(keys[1:] == keys[:-1])
    if len(same):
        q, d = divmod(int(keys[same[0]]), len(doc_terms))
        more = f" ({len(same):,} such entries)" if len(same) > 1 else ""
        raise WhyrankError(
            f"the pair {query_terms[q]!r}, {doc_terms[d]!r} comes twice{more}; keep one weight per pair"
        )
