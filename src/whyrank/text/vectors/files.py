"""Word vectors: words, one row of numbers for each, and the files that hold them.

    vectors = open_vectors("glove.6B.50d.txt")
    vectors.rows(["cat", "no-such-word"])  # [5450, -1]

What can be opened: text files of GloVe, word2vec or fastText (`.txt`, `.vec`, also gzip); a matrix `NAME.npy` with
its words beside it in `NAME.words.txt` (one a line), `NAME.parquet` or the only Parquet file of the folder; JSON with
`vectors: {word: [numbers]}`; a folder that holds one of these; the import name of an installed package that does.
Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from whyrank.core import (
    EMPTY,
    BadInput,
    Codes,
    Floats,
    Progress,
    cache_folder,
    check_seal,
    damage_error,
    lines_of,
    open_bytes,
    read_json,
    replacing,
    sealed_file,
)

Matrix = npt.NDArray[np.float32]
log = logging.getLogger(__name__)

_GET_AGAIN, _GET_BOTH = "get the file again, or mend or drop this word", "get both files again"
_NO_VECTORS = "give a file of word vectors"
_REMEDY = (
    "give a GloVe or word2vec text file, a .npy matrix with its words in NAME.words.txt, a JSON file with vectors, "
    "or a folder or installed package with one of these"
)
_INNER = ("", "data", "package")  # where packages put them
_TEXTS = ("*.vec", "*.vec.gz", "glove*.txt", "glove*.txt.gz")
_BATCH = 16_384  # words
_SAMPLE = 100  # lines that say how many numbers there are
_BLANKS = b" \t\r\n"


@dataclass(frozen=True, eq=False, repr=False)
class Vectors:
    """Words and their vectors: `words[i]` has row `i` of the matrix, and a word that occurs twice its first row."""

    name: str
    words: Sequence[str]
    matrix: Matrix

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"Vectors({self.name!r}, {len(self):,} words, {self.dims} dimensions)"

    @property
    def dims(self) -> int:
        """How many numbers each word has."""
        return int(self.matrix.shape[1])

    def rows(self, words: Iterable[str]) -> Codes:
        """The row of each word; -1 for a word that has none."""
        return np.array([self._rows.get(word, -1) for word in words], dtype=np.int32)

    def units(self, rows: Codes) -> Floats:
        """The vectors of these rows, each of length 1; all zero where the vector itself is."""
        found = self.matrix[rows].astype(np.float64)
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(np.divide(found, lengths, out=np.zeros_like(found), where=lengths > 0))

    @cached_property
    def digest(self) -> str:
        """SHA-256 (16 hex digits) over the words and their numbers, whatever file they came from."""
        found = hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogatepass"))
        found.update(np.ascontiguousarray(self.matrix, dtype="<f4").data)
        return found.hexdigest()[:16]

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {word: row for row, word in reversed(list(enumerate(self.words)))}


def open_vectors(spec: str) -> Vectors:
    """Read word vectors from a file, a folder or an installed package; text is parsed once and kept in the cache."""
    path = find_vectors(spec)
    stat = path.stat()
    return _open(spec, path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=2)
def _open(spec: str, path: Path, size: int, changed: int) -> Vectors:
    if path.suffix == ".npy":
        return replace(read_matrix(path), name=spec)
    read = read_json_vectors if path.name.removesuffix(".gz").endswith(".json") else read_text_vectors
    key = hashlib.sha256(f"1\x1f{path}\x1f{size}\x1f{changed}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return cached_vectors(spec, key, lambda: read(path))


def cached_vectors(name: str, key: str, make: Callable[[], Vectors]) -> Vectors:
    """The vectors that the cache has under a key, else those that `make` gives, which are kept there.

    Where the cache cannot be written, or what it has is damaged, they are made again.
    """
    path = cache_folder() / "vectors" / f"{key}.npy"
    try:
        found = read_matrix(path)
    except (OSError, BadInput):
        found = make()
        try:
            write_matrix(path, found)
        except (OSError, BadInput) as error:
            log.info("word vectors are not kept: %s", error)
    return replace(found, name=name)


def find_vectors(spec: str) -> Path:
    """The file that holds the vectors, with an absolute path."""
    path = Path(spec).expanduser()
    if not path.exists():
        package = find_spec(spec) if spec.isidentifier() else None  # its folder is looked at, it is not imported
        folders = list(package.submodule_search_locations or []) if package is not None else []
        if not folders:
            raise BadInput(spec, "no such file, folder or installed package of word vectors", _REMEDY)
        path = Path(folders[0])
    if not path.is_dir():
        return path.resolve()
    for inside in (path / inner for inner in _INNER):
        found = sorted(inside.glob("*.npy")) or _main_file(inside)
        if len(found) > 1:
            names = ", ".join(file.name for file in found)
            raise BadInput(inside, f"several files of word vectors ({names})", "name one of them")
        if found:
            return found[0].resolve()
    raise BadInput(path, "no word vectors in this folder", _REMEDY)


def _main_file(folder: Path) -> list[Path]:
    """What the package.json of an npm package calls its main file, else the text files of vectors."""
    try:
        main = folder / json.loads((folder / "package.json").read_bytes())["main"]
    except (OSError, ValueError, KeyError, TypeError):
        return sorted(path for pattern in _TEXTS for path in folder.glob(pattern))
    return [main] if main.is_file() else []


# Text: a word and its numbers a line.


def read_text_vectors(path: Path) -> Vectors:
    """Read a text file, a batch of lines at a time; a first line with the two counts is passed over."""
    words: list[str] = []
    parts: list[Matrix] = []
    with open_bytes(path) as file, Progress(f"reading {path.name}: bytes", path.stat().st_size) as progress:
        read = getattr(file, "fileobj", file)  # of gzip, the packed file
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
        remaining = chain(first, lines)
        while batch := list(islice(remaining, _BATCH)):
            entries = [_entry(path, number, text, dims) for number, text in batch]
            words += [word for word, _ in entries]
            parts.append(_numbers(path, batch[0][0], entries, dims))
            progress.step(read.tell() - progress.done)
    if len(words) < promised:
        what = f"{len(words):,} words where its first line promises {promised:,}"
        raise BadInput(path, what, "get the file again")
    whole, at = np.empty((len(words), dims), np.float32), 0
    parts.reverse()
    while parts:  # each part is given up when it is copied, so that memory is not needed twice
        part = parts.pop()
        whole[at : at + len(part)] = part
        at += len(part)
    return Vectors(path.name, words, whole)


def _usual_size(lines: Iterable[tuple[int, bytes]]) -> int:
    """The most usual count of numbers in a line, for a word may have blanks inside."""
    sizes = Counter(len(text.split()) - 1 for _, text in lines)
    return min(sizes, key=lambda size: (-sizes[size], size), default=0)


def _entry(path: Path, number: int, text: bytes, dims: int) -> tuple[str, bytes]:
    """A line taken apart: its last `dims` fields are the numbers, what stands before them is the word."""
    word, _, numbers = text.partition(b" ")
    if numbers.count(b" ") != dims - 1 or b"\t" in text:
        fields = text.rsplit(None, dims)
        if len(fields) <= dims:
            raise BadInput(path, f"{len(fields) - 1} numbers where {dims} are expected", _GET_AGAIN, number)
        word, numbers = fields[0], b" ".join(fields[1:])
    try:
        return word.decode("utf-8-sig" if number == 1 else "utf-8"), numbers
    except UnicodeDecodeError:
        raise BadInput(path, "the word in this line is not UTF-8", "save the file as UTF-8 text", number) from None


def _numbers(path: Path, line: int, entries: list[tuple[str, bytes]], dims: int) -> Matrix:
    """The numbers of many lines; Arrow reads them several times faster than numpy does."""
    import pyarrow as pa
    from pyarrow import csv

    lines = b"\n".join(numbers for _, numbers in entries)
    names = [str(i) for i in range(dims)]
    try:
        table = csv.read_csv(
            pa.BufferReader(lines),
            csv.ReadOptions(use_threads=False, column_names=names, block_size=max(len(lines) + 1, 1 << 16)),
            csv.ParseOptions(delimiter=" ", quote_char=False),
            csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float32()), null_values=[], check_utf8=False),
        )
    except pa.ArrowInvalid as error:
        what = f"one of the vectors from {entries[0][0]!r} to {entries[-1][0]!r} cannot be read ({error})"
        raise BadInput(path, what, "get the file again, or mend or drop that word", line) from None
    numbers = np.column_stack([table[name].to_numpy() for name in names])
    _check_finite(path, [word for word, _ in entries], numbers)
    return numbers


def _check_finite(path: Path, words: Sequence[str], matrix: Matrix) -> None:
    wrong = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(wrong):
        raise BadInput(path, f"the vector of {words[wrong[0]]!r} has a value that is not a finite number", _GET_AGAIN)


# JSON: an object with `vectors: {word: [numbers]}`.


def read_json_vectors(path: Path) -> Vectors:
    """Read a JSON file; of each vector the first `dimensions` numbers, where the file says how many there are."""
    content = read_json(path)
    vectors = content.get("vectors") if isinstance(content, dict) else None
    if not isinstance(vectors, dict) or not vectors:
        raise BadInput(path, "no JSON object with 'vectors' by word", _NO_VECTORS)
    try:
        with np.errstate(over="ignore"):
            matrix = np.array(list(vectors.values()), np.float64).astype(np.float32)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadInput(path, f"the vectors are not lists of equally many numbers ({error})", _GET_AGAIN) from None
    width = matrix.shape[1] if matrix.ndim == 2 else 0
    dims = content.get("dimensions", width)
    if not isinstance(dims, int) or not 1 <= dims <= width:
        raise BadInput(path, f"{width} numbers in each vector where {dims} are expected", _GET_AGAIN)
    _check_finite(path, list(vectors), matrix := np.ascontiguousarray(matrix[:, :dims]))
    return Vectors(path.name, list(vectors), matrix)


# A matrix of numpy, with its words in `NAME.words.txt`, in `NAME.parquet` or in the only Parquet file of the folder.


def read_matrix(path: Path) -> Vectors:
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
    if len(words) != len(matrix):
        raise BadInput(names, f"{len(words):,} words for {len(matrix):,} vectors in {path.name}", _GET_BOTH)
    for start in range(0, len(matrix), _BATCH):
        _check_finite(path, words[start : start + _BATCH], matrix[start : start + _BATCH])
    return Vectors(path.name, words, matrix)


def write_matrix(path: Path, vectors: Vectors) -> None:
    """Write a matrix and its words beside it; the digest of the words stands behind the matrix."""
    listed = "".join(f"{word}\n" for word in vectors.words).encode("utf-8", "surrogatepass")
    with replacing(_listing(path)) as beside:
        beside.write_bytes(listed)
    with sealed_file(path) as file:
        np.save(file, vectors.matrix, allow_pickle=False)
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
            raise damage_error(names, _GET_BOTH)


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
