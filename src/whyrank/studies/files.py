"""Contrasts on disk, one row per contrast, the favoured text first: Parquet, JSON lines, or a folder with a card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import whyrank
from whyrank.core import BadInput, check_writable, replacing, write_text
from whyrank.data import write_parquet
from whyrank.studies.contrasts import Categories, Contrasts, Labels

_DATA, _CARD = "contrasts.parquet", "README.md"
_COLUMNS = {
    "query_id": "id of the query",
    "doc_ids": "ids of the documents that the texts are, or were made from",
    "query": "the query",
    "docs": "the texts, the one that the study favours first",
    "scores": "the scores of the texts",
    "diff": "score of the first text less that of the second",
    "effect": "1 where the first text wins by more than delta, -1 where the second does, else 0",
}


def check_target(path: str | PathLike[str]) -> None:
    """Raise an error unless contrasts can be written: to a `.parquet` or `.jsonl` file, or a folder of their own."""
    given = Path(path)
    if given.suffix not in ("", ".parquet", ".jsonl"):
        raise BadInput(path, "contrasts cannot be written so", "end the name in .jsonl or .parquet, or name a folder")
    if not given.suffix and given.is_dir() and any(given.iterdir()) and not (given / _DATA).exists():
        raise BadInput(path, f"is not empty and has no {_DATA}", "name a new or an empty folder")
    check_writable(given if given.suffix else given / _DATA)


def save(
    contrasts: Contrasts, path: str | PathLike[str], more: Mapping[str, Labels] | None = None, study: str = "",
    about: str = "",
) -> None:  # fmt: skip
    """Write contrasts, with further columns such as scores, to a `.parquet` or `.jsonl` file, or to a folder.

    A name without an ending is a folder that `datasets.load_dataset` reads, with a card in which `about` says more.
    """
    check_target(path)
    table = to_table(contrasts, more or {}, study)
    suffix = Path(path).suffix
    if not suffix:
        write_text(Path(path) / _CARD, _card(contrasts, table, study, about))
        path, suffix = Path(path) / _DATA, ".parquet"
    with replacing(path) as beside:
        if suffix == ".parquet":
            # Texts repeat in many rows: a dictionary page large enough for all of them keeps the file small.
            write_parquet(table, beside, dictionary_pagesize_limit=1 << 28, row_group_size=1 << 22)
            return
        with open(beside, "w", encoding="utf-8") as file:
            for batch in table.to_batches(max_chunksize=10_000):
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())


def _card(contrasts: Contrasts, table: Any, study: str, about: str) -> str:
    """A dataset card: front matter that `datasets` and its hub read, what the rows are, and every column."""
    import yaml

    title = f"Contrasts of {study}" if study else "Contrasts"
    facts = {
        "pretty_name": title,
        "task_categories": ["text-ranking"],
        "tags": ["information-retrieval", "whyrank"],
        "configs": [{"config_name": "default", "data_files": _DATA}],
    }
    kinds = {name: _COLUMNS.get(name.rpartition(" ")[2], "label of the contrast") for name in table.column_names}
    dropped = [f"- left out, {reason}: {count:,}" for reason, count in sorted(contrasts.dropped.items()) if count]
    columns = [f"| `{name.replace('|', chr(92) + '|')}` | {meaning} |" for name, meaning in kinds.items()]
    return "\n".join(
        [
            "---",
            yaml.safe_dump(facts, sort_keys=False).rstrip(),
            "---",
            "",
            f"# {title}",
            "",
            f"{len(contrasts):,} questions to a ranker: a query and {contrasts.size} texts that differ in one thing.",
            *([about] if about else []),
            f"Made by whyrank {whyrank.__version__}.",
            "",
            f"- queries: {len(contrasts.queries):,}; texts: {len(contrasts.docs):,}",
            f"- fingerprint: `{contrasts.fingerprint}`",
            *dropped,
            "",
            "| column | what it is |",
            "| --- | --- |",
            *columns,
            "",
            "The texts are those of the collection: its licence holds for them.",
            "",
        ]
    )


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
