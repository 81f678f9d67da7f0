"""Files of word vectors: text (GloVe, word2vec, fastText), JSON, and a `.npy` matrix with its words beside it."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import EMPTY, BadInput, Progress, check_seal, damaged, lines_of, replacing, sealed_file

Matrix = npt.NDArray[np.float32]

_GET_AGAIN, _GET_BOTH = "get the file again, or mend or drop this word", "get both files again"
_NO_VECTORS = "give a file of word vectors"
_LARGEST = float(np.finfo(np.float32).max)
_BATCH = 16_384  # words
_SAMPLE = 100  # lines that say how many numbers there are
_BLANKS = b" \t\r\n"
_GZIP = b"\x1f\x8b"


class Parsed(NamedTuple):
    """Words and the matrix of their vectors, a row each."""

    words: Sequence[str]
    matrix: Matrix


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


# Text: a word and its numbers a line.


class _Entry(NamedTuple):
    """A word with its numbers as they are written, and the line it stands in."""

    word: str
    numbers: bytes
    line: int


def read_text(path: Path) -> Parsed:
    """Read a text file, a batch of lines at a time; a first line with the two counts is passed over."""
    words: list[str] = []
    parts: list[Matrix] = []
    with _reading(path) as (file, raw), Progress(f"reading {path.name}: bytes", path.stat().st_size) as progress:
        lines = ((number, text) for number, line in lines_of(path, file) if (text := line.strip(_BLANKS)))
        first = list(islice(lines, _SAMPLE))
        if not first:
            raise BadInput(path, "the file is empty", _NO_VECTORS)
        counts, dims, promised = first[0][1].split(), _usual_size(first[1:]), 0
        if len(counts) == 2 and all(count.isdigit() for count in counts) and int(counts[1]) == dims:
            promised, first = int(counts[0]), first[1:]
        else:
            dims = _usual_size(first)
        if dims < 1:
            raise BadInput(path, "a word and its numbers were expected here", _NO_VECTORS, 1)
        entries = (_entry(path, number, text, dims) for number, text in chain(first, lines))
        while batch := list(islice(entries, _BATCH)):
            words += [entry.word for entry in batch]
            parts.append(_numbers(path, batch, dims))
            progress.step(raw.tell() - progress.done)
    if len(words) < promised:
        what = f"{len(words):,} words where its first line promises {promised:,}"
        raise BadInput(path, what, "get the file again")
    whole, at = np.empty((len(words), dims), np.float32), 0
    parts.reverse()
    while parts:  # each part is given up when it is copied, so that memory is not needed twice
        part = parts.pop()
        whole[at : at + len(part)] = part
        at += len(part)
    return Parsed(words, whole)


def _usual_size(lines: Iterable[tuple[int, bytes]]) -> int:
    """The most usual count of numbers in a line, for a word may have blanks inside."""
    sizes = Counter(len(text.split()) - 1 for _, text in lines)
    return min(sizes, key=lambda size: (-sizes[size], size), default=0)


def _entry(path: Path, number: int, text: bytes, dims: int) -> _Entry:
    """A line taken apart: its last `dims` fields are the numbers, what stands before them is the word."""
    word, _, numbers = text.partition(b" ")
    if numbers.count(b" ") != dims - 1 or b"\t" in text:
        fields = text.rsplit(None, dims)
        if len(fields) <= dims:
            raise BadInput(path, f"{len(fields) - 1} numbers where {dims} are expected", _GET_AGAIN, number)
        word, numbers = fields[0], b" ".join(fields[1:])
    try:
        return _Entry(word.decode("utf-8-sig" if number == 1 else "utf-8"), numbers, number)
    except UnicodeDecodeError:
        raise BadInput(path, "the word in this line is not UTF-8", "save the file as UTF-8 text", number) from None


def _numbers(path: Path, batch: list[_Entry], dims: int) -> Matrix:
    """The numbers of many lines; Arrow reads them several times faster than numpy does."""
    import pyarrow as pa
    from pyarrow import csv

    lines = b"\n".join(entry.numbers for entry in batch)
    names = [str(i) for i in range(dims)]
    try:
        table = csv.read_csv(
            pa.BufferReader(lines),
            csv.ReadOptions(use_threads=False, column_names=names, block_size=max(len(lines) + 1, 1 << 16)),
            csv.ParseOptions(delimiter=" ", quote_char=False),
            csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float32()), null_values=[], check_utf8=False),
        )
        numbers = np.column_stack([table[name].to_numpy() for name in names])
        if len(numbers) == len(batch) and np.isfinite(numbers).all():
            return numbers
    except pa.ArrowInvalid:
        pass
    for entry in batch:
        for field in entry.numbers.split(b" "):
            if not _is_number(field):
                shown = field.decode("utf-8", "replace")
                what = f"the vector of {entry.word!r} has {shown!r} where a number is expected"
                raise BadInput(path, what, _GET_AGAIN, entry.line)
    raise BadInput(path, f"the vectors from {batch[0].word!r} on cannot be read", _GET_AGAIN, batch[0].line)


def _is_number(field: bytes) -> bool:
    try:
        return abs(float(field)) <= _LARGEST and b"_" not in field
    except ValueError:
        return False


# JSON: an object with `vectors: {word: [numbers]}`.


def read_json(path: Path) -> Parsed:
    """Read a JSON file; of each vector the first `dimensions` numbers, where the file says how many there are."""
    with _reading(path) as (file, _):
        try:
            content = json.load(file)
        except UnicodeDecodeError as error:
            raise BadInput(path, f"not UTF-8 ({error.reason})", "save the file as UTF-8 text") from None
        except ValueError as error:
            raise BadInput(path, f"malformed JSON ({error})", "get the file again") from None
    vectors = content.get("vectors") if isinstance(content, dict) else None
    if not isinstance(vectors, dict) or not vectors:
        raise BadInput(path, "no JSON object with 'vectors' by word", _NO_VECTORS)
    width = None
    for word, numbers in vectors.items():
        if not isinstance(numbers, list):
            raise BadInput(path, f"the vector of {word!r} is no list of numbers", _GET_AGAIN)
        width = len(numbers) if width is None else width
        if len(numbers) != width:
            what = f"the vector of {word!r} has {len(numbers)} numbers where {width} are expected"
            raise BadInput(path, what, _GET_AGAIN)
    dims = content.get("dimensions", width)
    if not isinstance(dims, int) or not 1 <= dims <= (width or 0):
        raise BadInput(path, f"{width} numbers where {dims} are expected", _GET_AGAIN)
    try:
        with np.errstate(over="ignore"):
            matrix = np.array([numbers[:dims] for numbers in vectors.values()], np.float64).astype(np.float32)
    except (ValueError, TypeError, OverflowError):
        matrix = np.full((1, 1), np.nan, np.float32)
    if not np.isfinite(matrix).all():
        wrong = ((word, number) for word, row in vectors.items() for number in row if not _is_finite(number))
        word, number = next(wrong)
        what = f"the vector of {word!r} has {json.dumps(number)!r} where a number is expected"
        raise BadInput(path, what, _GET_AGAIN)
    return Parsed(list(vectors), matrix)


def _is_finite(number: object) -> bool:
    return isinstance(number, int | float) and abs(number) <= _LARGEST


# A matrix of numpy, with its words in `NAME.words.txt`, in `NAME.parquet` or in the only Parquet file of the folder.


def read_matrix(path: Path) -> Parsed:
    """Read a matrix and its words; the matrix stays on the disk where it has the right type."""
    named = [_listing(path), path.with_suffix(".parquet")]
    tables = sorted(path.parent.glob("*.parquet"))
    found = [file for file in named if file.is_file()] or (tables if len(tables) == 1 else [])
    if not found:
        raise BadInput(path, "the words of this matrix are missing", f"put {named[0].name} beside it, a word a line")
    names = found[0]
    _check(path, names)
    words = _table_words(names) if names.suffix == ".parquet" else _listed_words(names)
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise BadInput(path, f"not a matrix that numpy can read ({error})", "write it with numpy.save") from None
    if matrix.ndim != 2 or not matrix.shape[1] or matrix.dtype.kind != "f":
        what = f"{matrix.dtype} of shape {matrix.shape} where a matrix of floating-point numbers is expected"
        raise BadInput(path, what, "write a row for each word with numpy.save")
    if matrix.dtype != np.float32:
        matrix = matrix.astype(np.float32)
    for start in range(0, len(matrix), _BATCH):
        bad = np.flatnonzero(~np.isfinite(matrix[start : start + _BATCH]).all(axis=1))
        if len(bad):
            what = f"row {start + bad[0]} has a value that is not a finite number"
            raise BadInput(path, what, "drop the word and its row")
    if len(words) != len(matrix):
        raise BadInput(names, f"{len(words):,} words for {len(matrix):,} vectors in {path.name}", _GET_BOTH)
    return Parsed(words, matrix)


def write_matrix(path: Path, words: Sequence[str], matrix: Matrix) -> None:
    """Write a matrix and its words beside it; the digest of the words stands behind the matrix."""
    listed = "".join(f"{word}\n" for word in words).encode("utf-8", "surrogatepass")
    with replacing(_listing(path)) as beside:
        beside.write_bytes(listed)
    with sealed_file(path) as file:
        np.save(file, matrix, allow_pickle=False)
        file.write(hashlib.sha256(listed).hexdigest().encode())


def _listing(path: Path) -> Path:
    return path.with_name(f"{path.stem}.words.txt")


def _check(path: Path, names: Path) -> None:
    """Raise an error where a matrix that `write_matrix` wrote, or the file of its words, has changed since."""
    check_seal(path, _GET_BOTH)
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - len(EMPTY) - 64))
        tail = file.read()
    if tail[64:].startswith(b"whyrank-sha256:"):
        words = hashlib.sha256(names.read_bytes()).hexdigest()
        if tail[:64] != words.encode():
            raise damaged(names, _GET_BOTH)


def _listed_words(path: Path) -> list[str]:
    try:
        lines = path.read_bytes().decode("utf-8", "surrogatepass").split("\n")
    except UnicodeDecodeError as error:
        raise BadInput(path, f"not UTF-8 ({error.reason})", "save the file as UTF-8 text") from None
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def _table_words(path: Path) -> list[str]:
    """The first column of a Parquet table that holds text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise BadInput(path, f"not a Parquet file ({error})", "get the file again") from None
    texts = [f.name for f in table.schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    if not texts:
        raise BadInput(path, "no column of words", "write the words as a column of text")
    words: list[str] = table[texts[0]].fill_null("").to_pylist()
    return words
