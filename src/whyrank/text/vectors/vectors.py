"""Word vectors: words, one row of numbers for each, and where they can be read from.

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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from whyrank.core import EMPTY, BadInput, Codes, Floats, cache_folder, check_seal, damaged, replacing, sealed_file
from whyrank.text.vectors.files import Matrix, Parsed, json_entries, parse, text_entries

log = logging.getLogger(__name__)


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
    return _opened(spec, path, stat.st_size, stat.st_mtime_ns)


def load_kept(name: str, key: str) -> Vectors | None:
    """Vectors that were kept in the cache under a key; None where there are none, or damaged ones."""
    try:
        return Vectors(name, *read_matrix(_kept(key)))
    except (OSError, BadInput):
        return None


def keep(vectors: Vectors, key: str) -> None:
    """Keep vectors in the cache; where that cannot be written, the next run works them out again."""
    try:
        write_matrix(_kept(key), vectors.words, vectors.matrix)
    except (OSError, BadInput) as error:
        log.info("word vectors are not kept: %s", error)


@lru_cache(maxsize=2)
def _opened(spec: str, path: Path, size: int, changed: int) -> Vectors:
    if path.suffix == ".npy":
        return Vectors(spec, *read_matrix(path))
    key = hashlib.sha256(f"1\x1f{path}\x1f{size}\x1f{changed}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    if (kept := load_kept(spec, key)) is not None:
        return kept
    is_json = path.name.removesuffix(".gz").endswith(".json")
    parsed = Vectors(spec, *parse(path, size, json_entries if is_json else text_entries))
    keep(parsed, key)
    return parsed


def _kept(key: str) -> Path:
    return cache_folder() / "vectors" / f"{key}.npy"


# Word vectors as a `.npy` matrix with a file of words beside it.

_ROWS = 100_000
_AGAIN = "get both files again"


def read_matrix(path: Path) -> Parsed:
    """Read a matrix and its words; the matrix stays on the disk where it has the right type."""
    names = _words_beside(path)
    _check(path, names)
    words = _table_words(names) if names.suffix == ".parquet" else _listed_words(names)
    matrix = _matrix(path)
    if len(words) != len(matrix):
        what = f"{len(words):,} words for {len(matrix):,} vectors in {path.name}"
        raise BadInput(names, what, _AGAIN)
    return Parsed(words, matrix)


def write_matrix(path: Path, words: Sequence[str], matrix: Matrix) -> None:
    """Write a matrix and its words beside it."""
    listed = "".join(f"{word}\n" for word in words).encode("utf-8", "surrogatepass")
    with replacing(_listing(path)) as beside:
        beside.write_bytes(listed)
    with sealed_file(path) as file:
        np.save(file, matrix, allow_pickle=False)
        file.write(hashlib.sha256(listed).hexdigest().encode())


def _check(path: Path, names: Path) -> None:
    """Raise an error where a matrix that `write_matrix` wrote, or the file of its words, has changed since."""
    check_seal(path, _AGAIN)
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - len(EMPTY) - 64))
        tail = file.read()
    if tail[64:].startswith(b"whyrank-sha256:"):
        words = hashlib.sha256(names.read_bytes()).hexdigest()
        if tail[:64] != words.encode():
            raise damaged(names, _AGAIN)


def _listing(path: Path) -> Path:
    return path.with_name(f"{path.stem}.words.txt")


def _words_beside(path: Path) -> Path:
    named = [_listing(path), path.with_suffix(".parquet")]
    tables = sorted(path.parent.glob("*.parquet"))
    found = [file for file in named if file.is_file()] or (tables if len(tables) == 1 else [])
    if not found:
        raise BadInput(path, "the words of this matrix are missing", f"put {named[0].name} beside it, a word a line")
    return found[0]


def _matrix(path: Path) -> Matrix:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise BadInput(path, f"not a matrix that numpy can read ({error})", "write it with numpy.save") from None
    if found.ndim != 2 or not found.shape[1] or found.dtype.kind != "f":
        what = f"{found.dtype} of shape {found.shape} where a matrix of floating-point numbers is expected"
        raise BadInput(path, what, "write a row for each word with numpy.save")
    return _finite(path, found if found.dtype == np.float32 else found.astype(np.float32))


def _finite(path: Path, matrix: Matrix) -> Matrix:
    for start in range(0, len(matrix), _ROWS):
        bad = np.flatnonzero(~np.isfinite(matrix[start : start + _ROWS]).all(axis=1))
        if len(bad):
            what = f"row {start + bad[0]} has a value that is not a finite number"
            raise BadInput(path, what, "drop the word and its row")
    return matrix


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


# Where word vectors are: a file, a folder that holds them, or an installed package.

_REMEDY = (
    "give a GloVe or word2vec text file, a .npy matrix with its words in NAME.words.txt, a JSON file with vectors, "
    "or a folder or installed package with one of these"
)
_INNER = ("", "data", "package")  # where packages put them
_TEXTS = ("*.vec", "*.vec.gz", "glove*.txt", "glove*.txt.gz")


def find_vectors(spec: str) -> Path:
    """The file that holds the vectors, with an absolute path."""
    given = Path(spec).expanduser()
    found = given if given.exists() else _package(spec)
    if found is None:
        raise BadInput(spec, "no such file, folder or installed package of word vectors", _REMEDY)
    return (_in_folder(found) if found.is_dir() else found).resolve()


def _package(name: str) -> Path | None:
    """The folder of an installed package, which is not imported."""
    found = find_spec(name) if name.isidentifier() else None
    places = list(found.submodule_search_locations or []) if found is not None else []
    return Path(places[0]) if places else None


def _in_folder(folder: Path) -> Path:
    for place in (folder / inner for inner in _INNER):
        found = sorted(place.glob("*.npy")) or _main_file(place)
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise BadInput(place, f"several files of word vectors ({names})", "name one of them")
        if found:
            return found[0]
    raise BadInput(folder, "no word vectors in this folder", _REMEDY)


def _main_file(folder: Path) -> list[Path]:
    """What the package.json of an npm package calls its main file, else the text files of vectors."""
    try:
        main = folder / json.loads((folder / "package.json").read_bytes())["main"]
    except (OSError, ValueError, KeyError, TypeError):
        return sorted(path for pattern in _TEXTS for path in folder.glob(pattern))
    return [main] if main.is_file() else []
