"""Word vectors as a `.npy` matrix with a file of words beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from whyrank.core.checksums import EMPTY, check_seal, damaged, sealed_file
from whyrank.core.errors import BadInput
from whyrank.core.files import replacing
from whyrank.text.vector_numbers import Matrix, Parsed

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
