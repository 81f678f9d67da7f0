"""Contrasts on disk: Parquet or JSON lines, one row per contrast, the favoured text first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from whyrank.core import WhyrankError, replacing
from whyrank.data import write_parquet
from whyrank.studies.contrasts import Categories, Contrasts, Labels


def save(
    contrasts: Contrasts, path: str | PathLike[str], more: Mapping[str, Labels] | None = None, study: str = ""
) -> None:
    """Write contrasts, with further columns such as scores, to a `.parquet` or `.jsonl` file."""
    suffix = Path(path).suffix
    if suffix not in (".parquet", ".jsonl"):
        raise WhyrankError(f"{path}: contrasts are written as .parquet or .jsonl; name the file so")
    table = to_table(contrasts, more or {}, study)
    with replacing(path) as beside:
        if suffix == ".parquet":
            # Texts repeat in many rows: a dictionary page large enough for all of them keeps the file small.
            write_parquet(table, beside, dictionary_pagesize_limit=1 << 28, row_group_size=1 << 22)
            return
        with open(beside, "w", encoding="utf-8") as file:
            for batch in table.to_batches(max_chunksize=10_000):
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())


def to_table(contrasts: Contrasts, more: Mapping[str, Labels], study: str = "") -> Any:
    """An Arrow table with query_id and doc_ids (where known), query, docs, labels and further columns."""
    import pyarrow as pa

    texts: dict[str, Labels] = {
        "query": Categories(contrasts.query, contrasts.queries),
        "docs": Categories(contrasts.doc, contrasts.docs),
    }
    ids = {name: contrasts.labels[name] for name in ("query_id", "doc_ids") if name in contrasts.labels}
    arrays = {name: arrow(column) for name, column in {**ids, **texts, **contrasts.labels, **more}.items()}
    facts = {"study": study, "fingerprint": contrasts.fingerprint, "size": contrasts.size}
    return pa.table(arrays).replace_schema_metadata({"whyrank.contrasts": json.dumps(facts)})


def arrow(column: Labels) -> Any:
    """A label column as an Arrow array: strings as dictionary codes, one value per text as fixed-size lists."""
    import pyarrow as pa

    codes = column.codes if isinstance(column, Categories) else column
    flat = pa.array(np.ascontiguousarray(codes).ravel(), from_pandas=True)
    if isinstance(column, Categories):
        flat = pa.DictionaryArray.from_arrays(flat.cast(pa.int32()), pa.array(list(column.names), pa.string()))
    return pa.FixedSizeListArray.from_arrays(flat, codes.shape[1]) if codes.ndim == 2 else flat


def labels_of(table: Any) -> dict[str, Labels]:
    """The columns of an Arrow table that `arrow` made."""
    return {name: _column(table[name]) for name in table.column_names}


def _column(array: Any) -> Labels:
    import pyarrow as pa

    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_list(array.type) or pa.types.is_fixed_size_list(array.type):
        flat = _column(array.flatten())
        size = len(array.flatten()) // max(len(array), 1) or 2
        if isinstance(flat, Categories):
            return flat._replace(codes=flat.codes.reshape(-1, size))
        return flat.reshape(-1, size)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        array = array.dictionary_encode()
    if pa.types.is_dictionary(array.type):
        return Categories(array.indices.to_numpy(zero_copy_only=False).astype(np.int32), array.dictionary.to_pylist())
    return np.asarray(array.to_numpy(zero_copy_only=False))
