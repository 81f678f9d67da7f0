"""Term tables as Arrow files that are mapped into memory: opening one reads it once, for its checksum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from whyrank.core.checksums import check_seal, seal_before_footer
from whyrank.core.errors import WhyrankError
from whyrank.data.term_table import TermTable
from whyrank.data.term_table_columns import Stored, lists_of, parts_of, table_of
from whyrank.data.term_table_files import AGAIN, facts_text
from whyrank.data.terms import ArrowTerms, arrow_terms

_FACTS = b"whyrank.term_table"
_KINDS = {
    "query_terms": "string",
    "doc_terms": "string",
    "indptr": "int64",
    "indices": "int32",
    "weights": "float",
    "counts": "int64",
}


def write_arrow(table: TermTable, path: Path) -> None:
    """Write a table as an uncompressed Arrow file of one row, each part of the table a list."""
    import pyarrow as pa

    parts: dict[str, Any] = {name: arrow_terms(getattr(table, name)) for name in ("query_terms", "doc_terms")}
    parts |= {name: pa.array(getattr(table, name)) for name in ("indptr", "indices", "weights")}
    parts["counts"] = None if table.counts is None else pa.array(table.counts)
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
    return _mapped(parts_of(batch), json.loads(facts))


def _mapped(parts: dict[str, Any], facts: dict[str, Any]) -> TermTable:
    for name, kind in _KINDS.items():
        found = parts[name]
        if found is not None and str(found.type) != kind:
            raise WhyrankError(f"{name} are of type {found.type} instead of {kind}")
    arrays = {name: parts[name].to_numpy() for name in ("indptr", "indices", "weights")}
    counts = None if parts["counts"] is None else parts["counts"].to_numpy()
    queries, docs = ArrowTerms(parts["query_terms"]), ArrowTerms(parts["doc_terms"])
    return TermTable(queries, docs, **arrays, facts=facts, counts=counts, trusted=True)
