"""Word vectors from all layouts, and what is said about files that are none."""

from __future__ import annotations

import gzip
import importlib
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.core import BadInput, cache_folder
from whyrank.text.vectors import Vectors, files, open_vectors

WORDS = ["the", "café", "2020", ",", "x-y"]
MATRIX = np.array([[1, 2, 3], [0.5, -1e-3, 0], [-7, 8, 9], [0.1, 0.2, 0.3], [1e10, 0, -1]], np.float32)


def lines(words=WORDS, matrix=MATRIX, separator=" ", end="\n"):
    return "".join(
        f"{w}{separator}{separator.join(str(x) for x in row)}{end}" for w, row in zip(words, matrix, strict=True)
    )


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def check(spec, words=WORDS, matrix=MATRIX):
    found = open_vectors(spec)
    assert list(found.words) == list(words)
    assert found.matrix.dtype == np.float32
    assert np.array_equal(found.matrix, np.asarray(matrix, np.float32))
    assert (len(found), found.dims, found.name) == (len(words), np.shape(matrix)[1], spec)
    assert found.rows(words).tolist() == list(range(len(words)))
    return found


TEXTS = {
    "plain": lines(),
    "header": f"5 3\n{lines()}",
    "windows": lines(end="\r\n"),
    "mark": f"\ufeff{lines()}",
    "tabs": lines(separator="\t"),
    "no line end": lines().rstrip("\n"),
    "blank lines": lines(end="\n\n"),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("packed", [False, True])
def test_text_files(tmp_path, text, packed):
    content = gzip.compress(text.encode(), mtime=0) if packed else text
    check(write(tmp_path / ("v.vec.gz" if packed else "v.txt"), content))


def test_words_with_blanks_are_what_stands_before_the_numbers(tmp_path):
    words = ["the", ". . .", "at x@y.z", "1 2", "a", "\u00a0", "\x85"]
    matrix = np.arange(21).reshape(7, 3) / 8
    check(write(tmp_path / "v.txt", lines(words, matrix)), words, matrix)


def test_a_header_is_one_only_where_the_rest_agrees(tmp_path):
    check(write(tmp_path / "v.txt", "7 2\nthe 3\nof 4\n"), ["7", "the", "of"], [[2], [3], [4]])
    check(write(tmp_path / "w.txt", "2 1\nthe 3\nof 4\n"), ["the", "of"], [[3], [4]])


word = st.text(
    st.characters(exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc"), exclude_characters="\ufeff"),
    min_size=1,
    max_size=6,
)
number = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(word, st.lists(number, min_size=3, max_size=3)), min_size=1, max_size=8), st.data())
def test_what_is_written_is_read(tmp_path_factory, rows, data):
    words, matrix = [w for w, _ in rows], np.array([x for _, x in rows], np.float32)
    path = tmp_path_factory.mktemp("v") / data.draw(st.sampled_from(["v.txt", "v.json"]))
    content = json.dumps({"vectors": dict(rows)}) if path.suffix == ".json" else lines(words, matrix.tolist())
    found = open_vectors(write(path, content))
    last = {w: i for i, w in enumerate(words)} if path.suffix == ".json" else {}
    for w in words:
        assert np.array_equal(found.matrix[found.rows([w])[0]], matrix[last.get(w, words.index(w))])


def packaged(extra=True, **settings):
    """The layout of a JavaScript package: length and number stand behind each vector."""
    rows = {w: [*map(float, MATRIX[i]), *([4.5, i] if extra else [])] for i, w in enumerate(WORDS)}
    head = {"precision": 8, "dimensions": 3, "words": WORDS} if extra else {}
    return json.dumps({**head, "vectors": rows, "unkVector": [0, 0, 0, 0, -1]}, **settings)


@pytest.mark.parametrize(
    "text",
    [packaged(), packaged(indent=2), packaged(ensure_ascii=False), packaged(extra=False), "\ufeff" + packaged()],
)
def test_json_files(tmp_path, text):
    check(write(tmp_path / "v.json", text))
    check(write(tmp_path / "w.json.gz", gzip.compress(text.encode(), mtime=0)))


def save(path, words="words.txt", matrix=MATRIX, column="index"):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, matrix)
    if words == "words.txt":
        write(path.with_name(f"{path.stem}.words.txt"), "\n".join(WORDS))
    else:
        pq.write_table(pa.table({"rank": range(len(WORDS)), column: WORDS}), path.with_name(words))
    return str(path)


@pytest.mark.parametrize("words", ["words.txt", "v.parquet", "other.parquet"])
def test_matrices(tmp_path, words):
    found = check(save(tmp_path / "v.npy", words))
    assert isinstance(found.matrix, np.memmap)
    check(str(tmp_path))
    check(save(tmp_path / "double" / "v.npy", words, MATRIX.astype(np.float64)))


def test_folders_and_installed_packages(tmp_path, monkeypatch):
    save(tmp_path / "some_vectors_5w" / "data" / "m.npy", "index.parquet")
    check(str(tmp_path / "some_vectors_5w"))
    write(tmp_path / "some_vectors_5w" / "__init__.py", "raise RuntimeError('not to be imported')")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    monkeypatch.chdir(tmp_path / "some_vectors_5w")
    check("some_vectors_5w")
    write(tmp_path / "npm" / "package" / "package.json", '{"main": "./v.json"}')
    write(tmp_path / "npm" / "package" / "v.json", packaged())
    check(str(tmp_path / "npm"))
    write(tmp_path / "text" / "glove.6B.txt", lines())
    check(str(tmp_path / "text"))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("v.txt", "the 1 2\nof 3\nto 4 5\n", r"v\.txt:2: 1 numbers where 2 are expected"),
        ("v.txt", "the 1 2\nof 3 x4\n", r"v\.txt:1: .*'the' to 'of'.*x4"),
        ("v.txt", "the 1 2\nof nan 2\n", "'of'.*not a finite number"),
        ("v.txt", b"the 1 2\n\xff 1 2\n", r"v\.txt:2: .*UTF-8"),
        ("v.txt", "", "empty"),
        ("v.txt", "the\nof\n", r"v\.txt:1: a word and its numbers"),
        ("v.txt", "9 2\nthe 1 2\nof 1 2\n", "2 words where its first line promises 9"),
        ("v.txt.gz", gzip.compress(lines().encode(), mtime=0)[:-9], "gzip data is damaged"),
        ("v.json", '{"words": []}', "vectors"),
        ("v.json", packaged()[:200], "malformed JSON"),
        ("v.json", '{"vectors": {"a": [1, 2], "b": [1]}}', "equally many"),
        ("v.json", '{"dimensions": 3, "vectors": {"a": [1, 2]}}', "where 3 are expected"),
        ("v.json", '{"vectors": {"a": [1, 2], "b": [1, "x"]}}', "'x'"),
        ("v.json", '{"vectors": {"a": [1, 1e39]}}', "'a'.*not a finite number"),
        ("v.npy", "abc", r"v\.words\.txt"),
    ],
)
def test_bad_files(tmp_path, name, content, problem):
    with pytest.raises(BadInput, match=problem) as raised:
        open_vectors(write(tmp_path / name, content))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("matrix", "problem"),
    [
        (MATRIX[:4], r"v\.words\.txt: 5 words for 4 vectors in v\.npy"),
        (np.where(MATRIX == 8, np.nan, MATRIX), "'2020'.*not a finite number"),
        (MATRIX.astype(int), "floating-point"),
        (MATRIX.ravel(), "matrix"),
        (np.array([{}] * 5, dtype=object), "numpy"),  # pickled
    ],
)
def test_bad_matrices(tmp_path, matrix, problem):
    with pytest.raises(BadInput, match=problem):
        open_vectors(save(tmp_path / "v.npy", matrix=matrix))


def test_where_there_are_no_vectors_or_several(tmp_path):
    for spec in ("nowhere/v.txt", "no_such_package"):
        with pytest.raises(BadInput, match=f"{spec}: no such file, folder or installed package"):
            open_vectors(spec)
    with pytest.raises(BadInput, match="no word vectors in this folder"):
        open_vectors(str(tmp_path))
    for name in ("a.npy", "b.npy"):
        save(tmp_path / name)
    with pytest.raises(BadInput, match=r"several files of word vectors \(a\.npy, b\.npy\)"):
        open_vectors(str(tmp_path))


@pytest.fixture
def parsed(monkeypatch):
    """The files that were parsed; vectors in memory are forgotten when asked for."""
    done, real = [], files.read_text_vectors
    monkeypatch.setattr(files, "read_text_vectors", lambda path: done.append(path.name) or real(path))
    files._open.cache_clear()
    return done


def test_text_is_parsed_once(tmp_path, parsed):
    spec = write(tmp_path / "v.txt", lines())
    check(spec)
    assert open_vectors(spec) is open_vectors(spec)
    files._open.cache_clear()
    assert isinstance(check(spec).matrix, np.memmap)
    assert parsed == ["v.txt"]


def test_a_changed_file_is_parsed_again(tmp_path, parsed):
    spec = write(tmp_path / "v.txt", lines())
    check(spec)
    write(tmp_path / "v.txt", lines(words=WORDS[::-1]))  # of the same size
    os.utime(spec, ns=(1, 1))
    check(spec, words=WORDS[::-1])
    assert parsed == ["v.txt", "v.txt"]


@pytest.mark.parametrize("pattern", ["*.npy", "*.words.txt"])
@pytest.mark.parametrize("content", [None, b"", b"x\n"])
def test_a_damaged_cache_is_made_anew(tmp_path, parsed, pattern, content):
    spec = write(tmp_path / "v.txt", lines())
    check(spec)
    [kept] = cache_folder().glob(f"vectors/{pattern}")
    kept.unlink() if content is None else kept.write_bytes(content)
    for _ in range(2):
        files._open.cache_clear()
        check(spec)
    assert parsed == ["v.txt", "v.txt"]


def test_the_digest_is_that_of_the_content(tmp_path):
    one = open_vectors(write(tmp_path / "v.txt", lines()))
    two = open_vectors(save(tmp_path / "m.npy"))
    three = open_vectors(write(tmp_path / "w.json", packaged()))
    assert len(one.digest) == 16
    assert one.digest == two.digest == three.digest
    assert Vectors("v", WORDS[::-1], MATRIX).digest != one.digest
    assert Vectors("v", WORDS, MATRIX + 1).digest != one.digest
