"""Word vectors as text: a word and its numbers a line, as GloVe, word2vec and fastText write them."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import BadInput, Progress, lines_of

# From words with their numbers as text to a matrix, a batch at a time.

Matrix = npt.NDArray[np.float32]

GET_AGAIN = "get the file again, or mend or drop this word"
_BATCH = 16_384
_GZIP = b"\x1f\x8b"


class Parsed(NamedTuple):
    """Words and the matrix of their vectors, a row each."""

    words: Sequence[str]
    matrix: Matrix


class Entry(NamedTuple):
    """A word with its numbers as they are written, and the line it stands in (None where lines mean nothing)."""

    word: str
    numbers: bytes
    line: int | None


class Entries(NamedTuple):
    """Words as they stream by, each with `width` numbers of which the first `dims` are its vector."""

    dims: int
    width: int
    separator: str
    entries: Iterator[Entry]


def parse(path: Path, size: int, take_apart: Callable[[Path, IO[bytes]], Entries]) -> Parsed:
    """Read a file of so many bytes whose layout `take_apart` knows."""
    words: list[str] = []
    parts: list[Matrix] = []
    with _reading(path) as (file, raw), Progress(f"reading {path.name}: bytes", size) as progress:
        found = take_apart(path, file)
        while batch := list(islice(found.entries, _BATCH)):
            words += [entry.word for entry in batch]
            parts.append(_numbers(path, batch, found))
            progress.step(raw.tell() - progress.done)
    if not words:
        raise BadInput(path, "no word with its vector was found", "give a file of word vectors")
    return Parsed(words, _stacked(parts, len(words), found.dims))


def _numbers(path: Path, batch: list[Entry], found: Entries) -> Matrix:
    import pyarrow as pa

    try:
        numbers = _converted(b"\n".join(entry.numbers for entry in batch), found)
    except pa.ArrowInvalid:
        numbers = np.full((len(batch), found.dims), np.nan, np.float32)
    if len(numbers) != len(batch) or not np.isfinite(numbers).all():
        raise next((_problem(path, entry, found) for entry in batch if _bad(entry, found)), _unclear(path, batch))
    return numbers


def _converted(lines: bytes, found: Entries) -> Matrix:
    """The numbers of many lines; Arrow reads them several times faster than numpy does."""
    import pyarrow as pa
    from pyarrow import csv

    names = [str(i) for i in range(found.width)]
    table = csv.read_csv(
        pa.BufferReader(lines),
        csv.ReadOptions(use_threads=False, column_names=names, block_size=max(len(lines) + 1, 1 << 16)),
        csv.ParseOptions(delimiter=found.separator, quote_char=False),
        csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float32()), null_values=[], check_utf8=False),
    )
    return np.column_stack([table[name].to_numpy() for name in names[: found.dims]])


def _bad(entry: Entry, found: Entries) -> bool:
    return len(entry.numbers.split(found.separator.encode())) != found.width or bool(_wrong(entry, found))


def _wrong(entry: Entry, found: Entries) -> list[bytes]:
    return [field for field in entry.numbers.split(found.separator.encode()) if not _is_number(field)]


def _is_number(field: bytes) -> bool:
    try:
        return abs(float(field)) <= float(np.finfo(np.float32).max) and b"_" not in field
    except ValueError:
        return False


def _problem(path: Path, entry: Entry, found: Entries) -> BadInput:
    wrong = _wrong(entry, found)
    shown = wrong[0].decode("utf-8", "replace") if wrong else ""
    what = f"the vector of {entry.word!r} has {shown!r} where a number is expected"
    return BadInput(path, what, GET_AGAIN, entry.line)


def _unclear(path: Path, batch: list[Entry]) -> BadInput:
    return BadInput(path, f"the vectors from {batch[0].word!r} on cannot be read", GET_AGAIN, batch[0].line)


def _stacked(parts: list[Matrix], n: int, dims: int) -> Matrix:
    """The parts in one matrix; each is given up when it is copied, so that memory is not needed twice."""
    whole, at = np.empty((n, dims), np.float32), 0
    parts.reverse()
    while parts:
        part = parts.pop()
        whole[at : at + len(part)] = part
        at += len(part)
    return whole


@contextmanager
def _reading(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The content of a file, unpacked where it is gzip, and the file itself, which knows how far we are."""
    try:
        with open(path, "rb") as raw:
            packed = raw.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
            yield (gzip.GzipFile(fileobj=raw) if packed else raw), raw  # type: ignore[misc]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(path, f"the gzip data is damaged ({error})", "get the file again") from None
    except OSError as error:
        raise BadInput(path, f"cannot be read ({error.strerror or error})") from None


# Word vectors as JSON: an object with `vectors: {word: [numbers]}`, read as it streams by.

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
