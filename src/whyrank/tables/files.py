"""Term tables on disk: written as the name says, read as the content says, one clear line for what is neither."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import BadInput, Codes, WhyrankError, check_seal, replacing, seal_before_footer
from whyrank.data import write_parquet as write_parquet_file
from whyrank.tables.parts import ArrowTerms, arrow_terms, check_entries
from whyrank.tables.table import BUNDLED, TermTable

SUFFIXES = (".parquet", ".arrow", ".tsv", ".tsv.gz")
OURS = f"{' and '.join(BUNDLED)} come with whyrank"
AGAIN = "copy the table again, or make it again"


def write_table(table: TermTable, path: str | PathLike[str]) -> None:
    """Write a table in one step, in the format that its name ends in."""
    write = writer(str(path))
    with replacing(path) as beside:
        write(table, beside)


def read_table(path: str | PathLike[str], check: bool = False) -> TermTable:
    """Read a table: Parquet, Arrow (mapped; with `check` also read), or tab-separated text, plain or gzip.

    Whatever goes wrong becomes one line that names the file.
    """
    try:
        table = _reader(path)(Path(path))
        if check:
            check_entries(table)
    except BadInput:
        raise
    except WhyrankError as error:
        raise BadInput(path, str(error)) from None
    except FileNotFoundError:
        raise BadInput(path, "there is no such file", f"learn a table with 'whyrank tables learn'; {OURS}") from None
    except (OSError, ValueError, KeyError, TypeError, EOFError, NotImplementedError) as error:  # Arrow has these
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        remedy = "the file is damaged or of another kind; get it again"
        raise BadInput(path, f"cannot be read as a term table ({reason})", remedy) from None
    return table


def _reader(path: str | PathLike[str]) -> Callable[[Path], TermTable]:
    from whyrank.tables.tsv import read_tsv

    with open(path, "rb") as file:
        head = file.read(8)
    if not head:
        raise BadInput(path, "the file is empty", "a term table has at least a header or one line")
    return read_parquet if head.startswith(b"PAR1") else read_arrow if head.startswith(b"ARROW1") else read_tsv


def check_suffix(path: str | PathLike[str]) -> None:
    """Raise an error for a name that says no format."""
    if not str(path).endswith(SUFFIXES):
        raise WhyrankError(f"{path}: a term table is written as {', '.join(SUFFIXES)}; name the file so")


def facts_text(facts: Mapping[str, Any]) -> str:
    """Facts as JSON; an error for a value that it cannot hold."""
    try:
        return json.dumps(facts)
    except (TypeError, ValueError) as error:
        raise WhyrankError(f"the facts of a term table must be plain values ({error})") from None


def writer(path: str) -> Callable[[TermTable, Path], None]:
    """What writes a table in the format that a name ends in."""
    from whyrank.tables.tsv import write_tsv

    check_suffix(path)
    writers: list[Callable[[TermTable, Path], None]]
    writers = [write_parquet, write_arrow, write_tsv, partial(write_tsv, packed=True)]
    return next(write for suffix, write in zip(SUFFIXES, writers, strict=True) if path.endswith(suffix))


# Term tables as Arrow columns: three columns with a row per entry, or one row with a list per part.

COLUMNS = ("query_term", "document_term", "weight")


class Stored(NamedTuple):
    """What a file says beside its entries: vocabularies as Arrow arrays, or None; counts, facts and words."""

    query_terms: Any = None
    doc_terms: Any = None
    counts: Any = None
    facts: Mapping[str, Any] | None = None
    words: Mapping[str, str] | None = None


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
    about = stored.facts, stored.counts, stored.words
    return TermTable.from_codes(query_terms, doc_terms, rows, numbers, held, *about)


def check_columns(names: Sequence[str]) -> None:
    """Raise an error where a column is missing."""
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise WhyrankError(f"there is no column {missing[0]!r}; a term table has {', '.join(COLUMNS)}")


def lists_of(parts: Mapping[str, Any]) -> Any:
    """Arrow arrays of any lengths as a batch of one row, each a list; None becomes null."""
    import pyarrow as pa

    def one_list(part: Any) -> Any:
        return pa.LargeListArray.from_arrays(pa.array([0, len(part)], pa.int64()), part)

    arrays = [pa.array([None], pa.null()) if part is None else one_list(part) for part in parts.values()]
    return pa.record_batch(arrays, names=list(parts))


def parts_of(batch: Any) -> dict[str, Any]:
    """The Arrow arrays of a batch that `lists_of` made, without a copy."""
    named = zip(batch.schema.names, batch.columns, strict=True)
    return {name: None if column.null_count else column.values for name, column in named}


def _codes(column: Any, known: Any, side: str) -> tuple[Codes, list[str]]:
    """The number of each row's term, and the vocabulary: the known one, or else the column's own."""
    import pyarrow as pa
    import pyarrow.compute as pc

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
    positions = pc.index_in(own, value_set=known).fill_null(-1).to_numpy()
    strange = np.flatnonzero(positions < 0)
    if len(strange) and np.isin(strange, codes).any():
        raise WhyrankError(f"the {side} term {own[int(strange[0])].as_py()!r} is not in the vocabulary of the file")
    return positions.astype(np.int32)[codes], known.to_pylist()


# Term tables as Arrow files that are mapped into memory: opening one reads it once, for its checksum.

_FACTS = b"whyrank.term_table"
_KINDS = {
    "query_terms": "string",
    "doc_terms": "string",
    "indptr": "int64",
    "indices": "int32",
    "weights": "float",
    "counts": "int64",
    "stems": "string",
    "words": "string",
}


def write_arrow(table: TermTable, path: Path) -> None:
    """Write a table as an uncompressed Arrow file of one row, each part of the table a list."""
    import pyarrow as pa

    parts: dict[str, Any] = {name: arrow_terms(getattr(table, name)) for name in ("query_terms", "doc_terms")}
    parts |= {name: pa.array(getattr(table, name)) for name in ("indptr", "indices", "weights")}
    parts |= _parts_beside(table)
    batch = lists_of(parts).replace_schema_metadata({_FACTS: facts_text(table.facts)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    seal_before_footer(path)


def read_arrow(path: Path) -> TermTable:
    """Map a table that `write_arrow` wrote; read one of three columns that another tool wrote."""
    import pyarrow as pa

    check_seal(path, AGAIN)
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    facts = (reader.schema.metadata or {}).get(_FACTS)
    if facts is None:
        whole = reader.read_all()
        whole.validate(full=True)
        return table_of(whole, Stored())
    if reader.num_record_batches != 1:
        raise WhyrankError(f"the file has {reader.num_record_batches} parts instead of one")
    batch = reader.get_batch(0)
    batch.validate(full=True)  # reads the terms, not the entries; damaged offsets of terms would end the process
    parts = parts_of(batch)
    for name, kind in _KINDS.items():
        if parts.get(name) is not None and str(parts[name].type) != kind:
            raise WhyrankError(f"{name} are of type {parts[name].type} instead of {kind}")
    arrays = {name: parts[name].to_numpy() for name in ("indptr", "indices", "weights")}
    counts = None if parts["counts"] is None else parts["counts"].to_numpy()
    queries, docs = ArrowTerms(parts["query_terms"]), ArrowTerms(parts["doc_terms"])
    about = {"facts": json.loads(facts), "counts": counts, "words": _words_of(parts)}
    return TermTable(queries, docs, **arrays, **about, trusted=True)


def _parts_beside(table: TermTable) -> dict[str, Any]:
    """Counts and words as Arrow arrays."""
    import pyarrow as pa

    stems, words = (pa.array(list(side), pa.string()) for side in (table.words, table.words.values()))
    return {"counts": None if table.counts is None else pa.array(table.counts), "stems": stems, "words": words}


def _words_of(parts: Mapping[str, Any]) -> dict[str, str]:
    """The words of stems; files of 0.1 have none."""
    if "words" not in parts:
        return {}
    return dict(zip(parts["stems"].to_pylist(), parts["words"].to_pylist(), strict=True))


# Term tables as Parquet: three columns that any tool reads; vocabularies, counts and facts in the metadata.

_VOCABULARIES = b"whyrank.vocabularies"
_LARGE = 1 << 30
_TERMS = list(COLUMNS[:2])


def write_parquet(table: TermTable, path: Path) -> None:
    """Write a table as Parquet, with checksums."""
    metadata = {_FACTS: facts_text(table.facts), _VOCABULARIES: _pack(table)}
    options = {"use_dictionary": _TERMS, "dictionary_pagesize_limit": _LARGE, "store_schema": False}
    write_parquet_file(columns_of(table), path, metadata, row_group_size=1 << 24, compression_level=15, **options)


def read_parquet(path: Path) -> TermTable:
    """Read a table from Parquet; files of other tools need the three columns alone."""
    import pyarrow.parquet as pq

    check_seal(path, AGAIN)
    path = path.resolve()  # a relative path with a colon would be taken for a URI
    with pq.ParquetFile(path, thrift_string_size_limit=_LARGE) as file:
        about = file.metadata
        check_columns(file.schema_arrow.names)
    with pq.ParquetFile(path, metadata=about, read_dictionary=_TERMS, page_checksum_verification=True) as file:
        return table_of(file.read(columns=list(COLUMNS)), _read_stored(about.metadata or {}))


def _pack(table: TermTable) -> bytes:
    """Vocabularies, counts and words as text: those of a million terms fit the metadata well."""
    import pyarrow as pa

    terms = {"query_terms": arrow_terms(table.query_terms), "doc_terms": arrow_terms(table.doc_terms)}
    batch, sink = lists_of(terms | _parts_beside(table)), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    return base64.b64encode(sink.getvalue())


def _read_stored(metadata: dict[bytes, bytes]) -> Stored:
    import pyarrow as pa

    if _VOCABULARIES not in metadata:
        return Stored()
    try:
        with pa.ipc.open_stream(base64.b64decode(metadata[_VOCABULARIES])) as reader:
            batch = reader.read_next_batch()
        batch.validate(full=True)  # damaged offsets of terms would end the process
        parts: dict[str, Any] = parts_of(batch)
        facts = json.loads(metadata[_FACTS])
        return Stored(parts["query_terms"], parts["doc_terms"], parts["counts"], facts, _words_of(parts))
    except (ValueError, KeyError, OSError) as error:
        raise WhyrankError(f"the vocabularies in its metadata are damaged ({error})") from None
