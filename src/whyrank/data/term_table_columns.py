"""Term tables as Arrow columns: three columns with a row per entry, or one row with a list per part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from whyrank.core.errors import WhyrankError
from whyrank.core.protocols import Codes
from whyrank.data.term_table import TermTable
from whyrank.data.term_table_building import from_codes
from whyrank.data.terms import arrow_terms

COLUMNS = ("query_term", "document_term", "weight")


class Stored(NamedTuple):
    """What a file says beside its entries: vocabularies as Arrow arrays, or None, and counts and facts."""

    query_terms: Any = None
    doc_terms: Any = None
    counts: Any = None
    facts: Mapping[str, Any] | None = None


def columns_of(table: TermTable) -> Any:
    """Query term, document term and weight, with a row per entry; terms as dictionary codes."""
    import pyarrow as pa

    arrays = [
        pa.DictionaryArray.from_arrays(pa.array(table.row_numbers()), arrow_terms(table.query_terms)),
        pa.DictionaryArray.from_arrays(pa.array(table.indices), arrow_terms(table.doc_terms)),
        pa.array(table.weights),
    ]
    return pa.table(arrays, names=list(COLUMNS))


def table_of(columns: Any, stored: Stored) -> TermTable:
    """The table of three columns; without stored vocabularies, terms are numbered as the columns do."""
    check_columns(columns.column_names)
    rows, query_terms = _codes(columns["query_term"], stored.query_terms, "query")
    numbers, doc_terms = _codes(columns["document_term"], stored.doc_terms, "document")
    weights = columns["weight"].combine_chunks()
    if weights.null_count:
        raise WhyrankError(f"{weights.null_count:,} weights are missing")
    held = weights.to_numpy(zero_copy_only=False)
    return from_codes(query_terms, doc_terms, rows, numbers, held, stored.facts, stored.counts)


def check_columns(names: Sequence[str]) -> None:
    """Raise an error where a column is missing."""
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise WhyrankError(f"there is no column {missing[0]!r}; a term table has {', '.join(COLUMNS)}")


def lists_of(parts: Mapping[str, Any]) -> Any:
    """Arrow arrays of any lengths as a batch of one row, each a list; None becomes null."""
    import pyarrow as pa

    arrays = [pa.array([None], pa.null()) if part is None else _one_list(part) for part in parts.values()]
    return pa.record_batch(arrays, names=list(parts))


def parts_of(batch: Any) -> dict[str, Any]:
    """The Arrow arrays of a batch that `lists_of` made, without a copy."""
    named = zip(batch.schema.names, batch.columns, strict=True)
    return {name: None if column.null_count else column.values for name, column in named}


def _one_list(part: Any) -> Any:
    import pyarrow as pa

    return pa.LargeListArray.from_arrays(pa.array([0, len(part)], pa.int64()), part)


def _codes(column: Any, known: Any, side: str) -> tuple[Codes, list[str]]:
    """The number of each row's term, and the vocabulary."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    kind = column.type.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise WhyrankError(f"{side} terms are of type {kind} instead of text")
    column = column.unify_dictionaries().combine_chunks()
    column = column if isinstance(column, pa.DictionaryArray) else column.chunk(0)
    if column.null_count:
        raise WhyrankError(f"{column.null_count:,} {side} terms are missing")
    own = column.dictionary.cast(pa.string())
    codes = column.indices.to_numpy().astype(np.int32, copy=False)
    if known is None or own.equals(known):
        return codes, own.to_pylist()
    return _renumbered(codes, own, known, side), known.to_pylist()


def _renumbered(codes: Codes, own: Any, known: Any, side: str) -> Codes:
    """The same terms under the numbers of a known vocabulary."""
    import pyarrow.compute as pc

    places = pc.index_in(own, value_set=known).fill_null(-1).to_numpy()
    strange = np.flatnonzero(places < 0)
    if len(strange) and np.isin(strange, codes).any():
        raise WhyrankError(f"the {side} term {own[int(strange[0])].as_py()!r} is not in the vocabulary of the file")
    found: Codes = places.astype(np.int32)[codes]
    return found
