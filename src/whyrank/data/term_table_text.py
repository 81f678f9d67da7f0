r"""Terms and columns as tab-separated text: a backslash, tab or line break in a term is `\\ \t \n \r`.

In front of a term, a `#`, which would begin a comment, and a byte order mark, which readers skip, have one too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_PLAIN = {written[1]: meant for meant, written in _ESCAPES.items()} | {"#": "#", "\ufeff": "\ufeff"}
_ODD = re.compile(r"^[#\ufeff]|[\\\t\n\r]")


def escaped(term: str) -> str:
    """A term as it stands in a field."""
    if not _ODD.search(term):
        return term
    text = "".join(_ESCAPES.get(each, each) for each in term)
    return "\\" + text if text.startswith(("#", "\ufeff")) else text


def unescaped(text: str) -> str:
    """The term that a field stands for; a `KeyError` for a backslash before anything else."""
    return re.sub(r"\\(.?)", lambda found: _PLAIN[found[1]], text, flags=re.DOTALL) if "\\" in text else text


def escaped_terms(terms: Iterable[str]) -> Any:
    """A column of terms as they stand in fields."""
    import pyarrow as pa

    return pa.array([escaped(term) for term in terms], pa.large_string())


def lines_of(*columns: Any) -> bytes:
    """Lines with a field for each of these Arrow columns; null is an empty field."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(columns[0]):
        return b""
    tab, end, nothing = (pa.scalar(text, pa.large_string()) for text in ("\t", "\n", ""))
    fields = [pc.cast(column, pa.large_string()) for column in columns]
    fields[-1] = pc.binary_join_element_wise(fields[-1], nothing, end, null_handling="replace")
    lines = pc.binary_join_element_wise(*fields, tab, null_handling="replace")
    return bytes(memoryview(lines.buffers()[2]))  # the text of a column of lines is the text of the file
