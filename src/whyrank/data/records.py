"""Rows of files as records: JSON lines, CSV, TSV, Parquet and Arrow, one file or a folder of them, streamed."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from whyrank.core import BadInput, Record, every_line, json_records
from whyrank.core.lines import MOST_BYTES

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow")


def suffix_of(path: Path) -> str:
    """The ending of a name in small letters, `.gz` apart."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def read_records(path: Path) -> Iterator[Record]:
    """Stream the rows of a file, or of several; the ending of a name, `.gz` apart, says what a file is."""
    if not path.is_file():
        return chain.from_iterable(map(read_records, shards(path)))
    suffix = suffix_of(path)
    if suffix in (".jsonl", ".ndjson"):
        return json_records(path)
    if suffix == ".tsv":
        return tsv_records(path)
    if suffix == ".csv":
        return _under_header(path, _csv_cells(path))
    if suffix in (".parquet", ".arrow"):
        return _arrow_records(path, suffix)
    remedy = f"name it {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
    raise BadInput(path, "the ending of the name does not say what the file is", remedy)


def shards(folder: Path) -> list[Path]:
    """The files with rows of a folder, or those that a path with `*` in its name matches, by name; or a file itself.

    Folders of the Hugging Face hub and of `datasets.save_to_disk` are such.
    """
    if not folder.is_dir():
        matched = sorted(each for each in folder.parent.glob(folder.name) if each.is_file() or each.is_dir())
        return [folder] if folder.is_file() else matched
    found = sorted(file for file in folder.iterdir() if suffix_of(file) in SUFFIXES and not file.name.startswith("."))
    if not found:
        below = ", ".join(sorted(each.name for each in folder.iterdir() if each.is_dir()))
        remedy = f"name one of its folders: {below}" if below else "name the folder that holds them"
        raise BadInput(folder, f"the folder has no files with rows ({', '.join(SUFFIXES)})", remedy)
    return found


def tsv_records(path: Path, header: bool = True) -> Iterator[Record]:
    """Stream tab-separated lines; no quoting, so that a quotation mark is only itself.

    The first line names the columns; without a `header` these are called 1, 2, ...
    """
    return _under_header(path, tsv_cells(path), header)


def tsv_cells(path: Path) -> Iterator[tuple[list[str], int]]:
    """Stream the cells of tab-separated lines and the number of each line; blank lines without a tab are skipped."""
    for line in every_line(path):
        if "\t" in line.text or not line.blank:
            yield line.text.split("\t"), line.number


def _csv_cells(path: Path) -> Iterator[tuple[list[str], int]]:
    """Stream the cells of comma-separated rows, quoted as RFC 4180 says; texts may have line breaks.

    Where the first line has semicolons and no comma, semicolons separate: some spreadsheets write such files.
    """
    csv.field_size_limit(MOST_BYTES)  # the default of 128 KB is less than a long article
    lines = every_line(path)
    first = next(lines)
    delimiter = ";" if ";" in first.text and "," not in first.text else ","
    texts = (line.text + line.end for line in chain([first], lines))
    reader = csv.reader(texts, strict=True, delimiter=delimiter)
    begin = 1
    try:
        for cells in reader:
            if cells:
                yield cells, begin
            begin = reader.line_num + 1
    except csv.Error as error:
        raise BadInput(path, f"malformed CSV ({error})", "quote texts that have commas or quotes", begin) from None


def _under_header(path: Path, rows: Iterable[tuple[list[str], int]], header: bool = True) -> Iterator[Record]:
    names: list[str] | None = None
    for cells, line in rows:
        if names is None:
            names = cells if header else [str(number) for number, _ in enumerate(cells, 1)]
            if "" in names:
                what = f"column {names.index('') + 1} has no name"
                raise BadInput(path, what, "the first row names the columns", line)
            if twice := next((name for name in names if names.count(name) > 1), None):
                what = f"two columns are named {twice!r}"
                raise BadInput(path, what, "give every column a name of its own", line)
            if header:
                continue
        if len(cells) != len(names):
            what = f"expected {len(names)} columns as in the first row, found {len(cells)}"
            raise BadInput(path, what, "check tabs, commas and quotes in this row", line)
        yield Record(path, line, dict(zip(names, cells, strict=True)), sum(map(len, cells)))


def _arrow_records(path: Path, suffix: str) -> Iterator[Record]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if suffix == ".parquet":
            with pq.ParquetFile(path.resolve()) as file:  # a relative path with a colon would be taken for a URI
                yield from batch_records(path, file.iter_batches(1000))
        else:
            with pa.memory_map(str(path)) as mapped:
                yield from batch_records(path, pa.ipc.open_stream(mapped))
    except (pa.ArrowException, OSError) as error:
        problem = str(error).strip().splitlines()[0][:200]
        raise BadInput(path, f"cannot be read as {suffix[1:]} ({problem})", "get the file again") from None


def batch_records(path: Path, batches: Iterable[Any]) -> Iterator[Record]:
    """The rows of Arrow batches, numbered from 1; `path` names them in errors."""
    for number, fields in enumerate((row for batch in batches for row in batch.to_pylist()), 1):
        yield Record(path, number, fields, sum(len(each) for each in fields.values() if isinstance(each, str)))
