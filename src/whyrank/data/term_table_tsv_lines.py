"""The first line of a tab-separated term table that is wrong, read slowly, once it is known that one is."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyrank.core.errors import BadInput
from whyrank.data.raw import every_line
from whyrank.data.term_table_columns import COLUMNS


class Problem(NamedTuple):
    """What is wrong, and in which line."""

    what: str
    line: int


def first_problem(path: Path) -> Problem | None:
    """The first line that is no entry, or None."""
    begun = False
    try:
        for number, text, _ in every_line(path):
            if not text or (not begun and _is_heading(text)):
                continue
            begun = True
            what = _wrong(text.split("\t"))
            if what:
                return Problem(what, number)
    except BadInput as error:
        return Problem(error.what, error.line or 1)
    return None


def _is_heading(text: str) -> bool:
    return (text.startswith("#") and text.count("\t") != 2) or tuple(text.lower().split("\t")) == COLUMNS


def _wrong(fields: list[str]) -> str | None:
    if len(fields) != 3:
        return f"the line has {len(fields)} field{'s' * (len(fields) != 1)} instead of 3"
    if not (fields[0] and fields[1]):
        return "a term is empty"
    try:
        with np.errstate(over="ignore"):
            weight = np.float32(fields[2])
    except ValueError:
        return f"the weight {fields[2][:40]!r} is no number"
    return None if 0 <= weight < np.inf else f"the weight {fields[2]} is no finite number, zero or more"
