"""Word vectors as text: a word and its numbers a line, as GloVe, word2vec and fastText write them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO, NamedTuple

from whyrank.core.errors import BadInput
from whyrank.core.files import lines_of
from whyrank.text.vector_numbers import GET_AGAIN, Entries, Entry

_SAMPLE = 100  # lines that say how many numbers there are
_BLANKS = b" \t\r\n"


class _Line(NamedTuple):
    number: int
    text: bytes


def text_entries(path: Path, file: IO[bytes]) -> Entries:
    """The words of a file; a first line with the two counts is passed over."""
    lines = (line for n, raw in lines_of(path, file) if (line := _Line(n, raw.strip(_BLANKS))).text)
    first = list(islice(lines, _SAMPLE))
    if not first:
        raise BadInput(path, "the file is empty", "give a file of word vectors")
    promised = _promised(first)
    rest = first if promised is None else first[1:]
    dims = _usual_size(rest)
    if dims < 1:
        raise BadInput(path, "a word and its numbers were expected here", "give a file of word vectors", 1)
    entries = (_entry(path, line, dims) for line in chain(rest, lines))
    return Entries(dims, dims, " ", _counted(path, entries, promised or 0))


def _promised(first: list[_Line]) -> int | None:
    """How many words the header promises; None without a header."""
    fields = first[0].text.split()
    is_header = len(fields) == 2 and all(field.isdigit() for field in fields)
    return int(fields[0]) if is_header and int(fields[1]) == _usual_size(first[1:]) else None


def _usual_size(lines: Iterable[_Line]) -> int:
    """The most usual count of numbers in a line, for a word may have blanks inside."""
    sizes = Counter(len(line.text.split()) - 1 for line in lines)
    return min(sizes, key=lambda size: (-sizes[size], size), default=0)


def _entry(path: Path, line: _Line, dims: int) -> Entry:
    """A line taken apart: its last `dims` fields are the numbers, what stands before them is the word."""
    word, _, numbers = line.text.partition(b" ")
    if numbers.count(b" ") != dims - 1 or b"\t" in line.text:
        fields = line.text.rsplit(None, dims)
        if len(fields) <= dims:
            what = f"{len(fields) - 1} numbers where {dims} are expected"
            raise BadInput(path, what, GET_AGAIN, line.number)
        word, numbers = fields[0], b" ".join(fields[1:])
    return Entry(_decoded(path, line.number, word), numbers, line.number)


def _decoded(path: Path, number: int, word: bytes) -> str:
    try:
        return word.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        raise BadInput(path, "the word in this line is not UTF-8", "save the file as UTF-8 text", number) from None


def _counted(path: Path, entries: Iterator[Entry], promised: int) -> Iterator[Entry]:
    found = 0
    for entry in entries:
        found += 1
        yield entry
    if found < promised:
        raise BadInput(path, f"{found:,} words where its first line promises {promised:,}", "get the file again")
