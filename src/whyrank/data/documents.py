"""Documents and queries in JSON lines: one object a line with id, text and sometimes title."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from whyrank.core.errors import BadInput
from whyrank.data.lines import Line, read_lines
from whyrank.data.tallies import TextTallies, encodable, without_surrogates

_ID_KEYS = ("id", "_id", "docno", "doc_id")


class Document(NamedTuple):
    """One document as it streams by; the title, where there is one, is a prefix of the text."""

    id: str
    text: str
    title: str
    line: int
    size: int


def read_documents(path: Path, tallies: TextTallies) -> Iterator[Document]:
    """Stream the documents of a JSON lines file, checked; oddities go to the tallies."""
    for line in read_lines(path):
        fields = _fields(path, line)
        doc_id, title = _id(path, line, fields), _string(path, line, fields, "title", "")
        text = tallies.mend(doc_id, full_text(title, _string(path, line, fields, "text")), path, line.number)
        yield Document(doc_id, text, without_surrogates(title) if title.strip() else "", line.number, line.size)


def full_text(title: str, text: str) -> str:
    """Title, blank, text (the field's convention), unless the text already begins with the title.

    A text begins with a title only where the title ends with a word: `Art` does not begin `Artificial`.
    """
    if not title.strip():
        return text
    if not text.strip():
        return title
    repeated = text.startswith(title) and not text[len(title) : len(title) + 1].isalnum()
    return text if repeated else f"{title} {text}"


def duplicate(path: Path, doc_id: str) -> BadInput:
    """The error for an id that occurs twice; it finds both lines by reading the file again."""
    both = (line.number for line in read_lines(path) if _id(path, line, _fields(path, line)) == doc_id)
    first, second = next(both, None), next(both, None)
    return BadInput(
        path, f"id {doc_id!r} was already used in line {first}", "give every text an id of its own", second
    )


def _fields(path: Path, line: Line) -> dict[str, Any]:
    try:
        fields = json.loads(line.text)
    except json.JSONDecodeError as error:
        raise BadInput(path, f"malformed JSON ({error.msg}, column {error.colno})", _REMEDY, line.number) from None
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"malformed JSON ({error})", _REMEDY, line.number) from None
    if not isinstance(fields, dict):
        raise BadInput(path, f"expected a JSON object, found {_shown(fields)}", _REMEDY, line.number)
    return fields


def _id(path: Path, line: Line, fields: dict[str, Any]) -> str:
    key = next((key for key in _ID_KEYS if key in fields), "id")
    found = _string(path, line, fields, key)
    if not found or not encodable(found):
        raise BadInput(path, f"{key!r} is {found!r}, which cannot be an id", _REMEDY, line.number)
    return found


def _string(path: Path, line: Line, fields: dict[str, Any], key: str, default: str | None = None) -> str:
    value = fields.get(key)
    if value is None and default is not None:
        return default
    if key not in fields:
        raise BadInput(path, f"{key!r} is missing", _REMEDY, line.number)
    if not isinstance(value, str):
        raise BadInput(path, f"{key!r} is {_shown(value)}, not a string", _REMEDY, line.number)
    return value


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:40] + "…"


_REMEDY = 'write one object a line such as {"id": "d1", "text": "..."}'
