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

from whyrank.core import BadInput, Codes, Floats, cache_folder
from whyrank.text.vectors.files import Matrix, read_json, read_matrix, read_text, write_matrix

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
    parsed = Vectors(spec, *(read_json(path) if is_json else read_text(path)))
    keep(parsed, key)
    return parsed


def _kept(key: str) -> Path:
    return cache_folder() / "vectors" / f"{key}.npy"


# Where word vectors are: a file, a folder that holds them, or an installed package.

_REMEDY = (
    "give a GloVe or word2vec text file, a .npy matrix with its words in NAME.words.txt, a JSON file with vectors, "
    "or a folder or installed package with one of these"
)
_INNER = ("", "data", "package")  # where packages put them
_TEXTS = ("*.vec", "*.vec.gz", "glove*.txt", "glove*.txt.gz")


def find_vectors(spec: str) -> Path:
    """The file that holds the vectors, with an absolute path."""
    path = Path(spec).expanduser()
    if not path.exists():
        package = find_spec(spec) if spec.isidentifier() else None  # its folder is looked at, it is not imported
        folders = list(package.submodule_search_locations or []) if package is not None else []
        if not folders:
            raise BadInput(spec, "no such file, folder or installed package of word vectors", _REMEDY)
        path = Path(folders[0])
    return (_in_folder(path) if path.is_dir() else path).resolve()


def _in_folder(folder: Path) -> Path:
    for inside in (folder / inner for inner in _INNER):
        found = sorted(inside.glob("*.npy")) or _main_file(inside)
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise BadInput(inside, f"several files of word vectors ({names})", "name one of them")
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
