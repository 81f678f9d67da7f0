"""Word vectors as JSON: an object with `vectors: {word: [numbers]}`, read as it streams by."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO

from whyrank.core.errors import BadInput
from whyrank.text.vector_numbers import GET_AGAIN, Entries, Entry

_PIECE = 1 << 22
_LONGEST = 1 << 24  # what has no member in so many characters is no file of vectors
_OPENING = re.compile(r'"vectors"\s*:\s*\{')
_MEMBER = re.compile(r'\s*,?\s*("(?:[^"\\]|\\.)*")\s*:\s*\[([^\]]*)\]')
_DIMS = re.compile(r'"dimensions"\s*:\s*(\d+)')


def json_entries(path: Path, file: IO[bytes]) -> Entries:
    """The members of `vectors`; of each the first `dimensions` numbers, where the file says how many there are."""
    pieces = _pieces(path, file)
    head, rest = _head(path, pieces)
    members = _members(path, chain([rest], pieces))
    first = next(members, None)
    width = _width(first) if first else 1
    said = _DIMS.search(head)
    dims = int(said[1]) if said else width
    if not 1 <= dims <= width:
        raise BadInput(path, f"{width} numbers where {dims} are expected", GET_AGAIN)
    entries = (_checked(path, entry, width) for entry in chain([first] if first else [], members))
    return Entries(dims, width, ",", entries)


def _head(path: Path, pieces: Iterator[str]) -> tuple[str, str]:
    """What stands before the first word, and what was read beyond it."""
    head = ""
    for piece in pieces:
        start, head = max(len(head) - 1000, 0), head + piece
        if found := _OPENING.search(head, start):
            return head[: found.start()], head[found.end() :]
    raise BadInput(path, "no JSON object with 'vectors' by word", "give a file of word vectors")


def _members(path: Path, pieces: Iterator[str]) -> Iterator[Entry]:
    rest = ""
    for piece in pieces:
        rest, at = rest + piece, 0
        while found := _MEMBER.match(rest, at):
            at = found.end()
            yield Entry(json.loads(found[1], strict=False), _written(found[2]), None)
        rest = rest[at:].lstrip()
        if rest.startswith("}"):
            return
        if len(rest) > _LONGEST:
            break
    raise BadInput(path, f"malformed JSON at {rest[:40]!r}", "get the file again")


def _written(numbers: str) -> bytes:
    return numbers.encode("ascii", "replace").translate(None, b" \t\r\n")


def _width(entry: Entry) -> int:
    return entry.numbers.count(b",") + 1


def _checked(path: Path, entry: Entry, width: int) -> Entry:
    if _width(entry) != width:
        what = f"the vector of {entry.word!r} has {_width(entry)} numbers where {width} are expected"
        raise BadInput(path, what, GET_AGAIN)
    return entry


def _pieces(path: Path, file: IO[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        while raw := file.read(_PIECE):
            yield decoder.decode(raw)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise BadInput(path, f"not UTF-8 ({error.reason})", "save the file as UTF-8 text") from None
