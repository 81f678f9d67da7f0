"""Term tables as Parquet: three columns that any tool reads; vocabularies, counts and facts in the metadata."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from whyrank.core.checksums import check_seal
from whyrank.core.errors import WhyrankError
from whyrank.data import parquet
from whyrank.data.term_table import TermTable
from whyrank.data.term_table_columns import COLUMNS, Stored, check_columns, columns_of, lists_of, parts_of, table_of
from whyrank.data.term_table_files import AGAIN, facts_text
from whyrank.data.terms import arrow_terms

_FACTS, _VOCABULARIES = b"whyrank.term_table", b"whyrank.vocabularies"
_LARGE = 1 << 30
_TERMS = list(COLUMNS[:2])


def write_parquet(table: TermTable, path: Path) -> None:
    """Write a table as Parquet, with checksums."""
    told = {_FACTS: facts_text(table.facts), _VOCABULARIES: _packed(table)}
    options = {"use_dictionary": _TERMS, "dictionary_pagesize_limit": _LARGE, "store_schema": False}
    parquet.write_parquet(columns_of(table), path, told, row_group_size=1 << 24, **options)


def read_parquet(path: Path) -> TermTable:
    """Read a table from Parquet; files of other tools need the three columns alone."""
    import pyarrow.parquet as pq

    check_seal(path, AGAIN)
    path = path.resolve()  # a relative path with a colon would be taken for a URI
    with pq.ParquetFile(path, thrift_string_size_limit=_LARGE) as file:
        about = file.metadata
        check_columns(file.schema_arrow.names)
    with pq.ParquetFile(path, metadata=about, read_dictionary=_TERMS, page_checksum_verification=True) as file:
        return table_of(file.read(columns=list(COLUMNS)), _stored(about.metadata or {}))


def _packed(table: TermTable) -> bytes:
    """Vocabularies and counts as text: those of a million terms fit the metadata well."""
    import pyarrow as pa

    counts = None if table.counts is None else pa.array(table.counts)
    parts = {
        "query_terms": arrow_terms(table.query_terms),
        "doc_terms": arrow_terms(table.doc_terms),
        "counts": counts,
    }
    batch, sink = lists_of(parts), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    return base64.b64encode(sink.getvalue())


def _stored(metadata: dict[bytes, bytes]) -> Stored:
    import pyarrow as pa

    if _VOCABULARIES not in metadata:
        return Stored()
    try:
        with pa.ipc.open_stream(base64.b64decode(metadata[_VOCABULARIES])) as reader:
            batch = reader.read_next_batch()
        batch.validate(full=True)  # damaged offsets of terms would end the process
        parts: dict[str, Any] = parts_of(batch)
        facts = json.loads(metadata[_FACTS])
        return Stored(parts["query_terms"], parts["doc_terms"], parts["counts"], facts)
    except (ValueError, KeyError, OSError) as error:
        raise WhyrankError(f"the vocabularies in its metadata are damaged ({error})") from None
