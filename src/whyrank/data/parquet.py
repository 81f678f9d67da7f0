"""Parquet files with checksums: of every page, as the format has them, and of the file as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from whyrank.core import check_seal, seal_before_footer


def write_parquet(
    table: Any, path: str | PathLike[str], metadata: Mapping[Any, Any] | None = None,
    row_group_size: int | None = None, **options: Any,
) -> None:  # fmt: skip
    """Write an Arrow table; `metadata` joins that of its schema, `options` are those of `pyarrow.parquet`."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, table.schema, compression="zstd", write_page_checksum=True, **options) as writer:
        writer.write_table(table, row_group_size=row_group_size)
        writer.add_key_value_metadata(dict(metadata or {}))
    seal_before_footer(path)


def read_parquet(path: str | PathLike[str], remedy: str, **options: Any) -> Any:
    """Read an Arrow table, whoever wrote the file; an error where it does not match its checksum."""
    import pyarrow.parquet as pq

    check_seal(path, remedy)
    whole = Path(path).resolve()  # a relative path with a colon would be taken for a URI
    return pq.read_table(whole, page_checksum_verification=True, **options)
