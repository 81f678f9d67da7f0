"""Term tables on disk: written as the name says, read as the content says, one clear line for what is neither."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from whyrank.core.errors import BadInput, WhyrankError
from whyrank.core.files import replacing
from whyrank.data.term_table import TermTable
from whyrank.data.term_table_checks import check_entries

SUFFIXES = (".parquet", ".arrow", ".tsv", ".tsv.gz")
AGAIN = "copy the table again, or make it again"


def write_table(table: TermTable, path: str | PathLike[str]) -> None:
    """Write a table in one step, in the format that its name ends in."""
    write = writer(str(path))
    with replacing(path) as beside:
        write(table, beside)


def read_table(path: str | PathLike[str], check: bool = False) -> TermTable:
    """Read a table: Parquet, Arrow (mapped; with `check` also read), or tab-separated text, plain or gzip."""
    with problems_of(path):
        with open(path, "rb") as file:
            head = file.read(8)
        if not head:
            raise BadInput(path, "the file is empty", "a term table has at least a header or one line")
        table = _reader(head)(Path(path))
        if check:
            check_entries(table)
        return table


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


@contextmanager
def problems_of(path: str | PathLike[str]) -> Iterator[None]:
    """Turn whatever goes wrong in reading a file into one line that names it."""
    try:
        yield
    except BadInput:
        raise
    except WhyrankError as error:
        raise BadInput(path, str(error)) from None
    except FileNotFoundError:
        raise BadInput(path, "there is no such file", "learn a table with 'whyrank tables learn'") from None
    except (OSError, ValueError, KeyError, TypeError, EOFError, NotImplementedError) as error:  # Arrow has these
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise BadInput(
            path, f"cannot be read as a term table ({reason})", "the file is damaged or of another kind; get it again"
        ) from None


def writer(path: str) -> Callable[[TermTable, Path], None]:
    """What writes a table in the format that a name ends in."""
    from whyrank.data.term_table_arrow import write_arrow
    from whyrank.data.term_table_parquet import write_parquet
    from whyrank.data.term_table_tsv import write_gzip, write_tsv

    check_suffix(path)
    writers = dict(zip(SUFFIXES, (write_parquet, write_arrow, write_tsv, write_gzip), strict=True))
    return next(write for suffix, write in writers.items() if path.endswith(suffix))


def _reader(head: bytes) -> Callable[[Path], TermTable]:
    from whyrank.data.term_table_arrow import read_arrow
    from whyrank.data.term_table_parquet import read_parquet
    from whyrank.data.term_table_tsv import read_tsv

    readers = {b"PAR1": read_parquet, b"ARROW1": read_arrow}
    return next((read for magic, read in readers.items() if head.startswith(magic)), read_tsv)
