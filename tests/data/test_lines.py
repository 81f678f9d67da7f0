"""Checked line reading: encodings, compression, and messages that name the line."""

from __future__ import annotations

import gzip
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import BadInput, WhyrankError
from whyrank.data import every_line, read_lines
from whyrank.data.lines import find_file, write_lines

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1).filter(
    lambda text: not text.isspace() and not text.startswith("\ufeff")
)


def content(path) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in read_lines(path)]


@given(st.lists(texts, min_size=1), st.sampled_from(["a.txt", "a.txt.gz"]))
@settings(deadline=None)
def test_what_is_written_is_read_back(tmp_path_factory, lines, name):
    path = tmp_path_factory.mktemp("lines") / name
    write_lines(path, lines)
    assert content(path) == list(enumerate(lines, 1))


def test_gzip_is_seen_from_the_content_not_the_name(tmp_path):
    (tmp_path / "named.gz").write_bytes(b"one\ntwo\n")
    (tmp_path / "unnamed").write_bytes(gzip.compress(b"one\ntwo\n", mtime=0))
    assert content(tmp_path / "named.gz") == content(tmp_path / "unnamed") == [(1, "one"), (2, "two")]


def test_compressed_bytes_depend_on_the_lines_alone(tmp_path):
    write_lines(tmp_path / "a.gz", ["one"])
    write_lines(tmp_path / "b.gz", ["one"])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"one\n"


def test_byte_order_mark_and_carriage_returns_are_no_text(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert content(tmp_path / "a") == [(1, "one"), (2, "two")]


def test_blank_lines_are_skipped_and_counted(tmp_path):
    (tmp_path / "a").write_bytes(b"\n  \none\n\n\t\ntwo")
    assert content(tmp_path / "a") == [(3, "one"), (6, "two")]


def test_other_separators_of_unicode_do_not_end_a_line(tmp_path):
    (tmp_path / "a").write_text("one\u2028still one\x85and\x0cone\n", encoding="utf-8")
    assert content(tmp_path / "a") == [(1, "one\u2028still one\x85and\x0cone")]


def test_size_counts_bytes_of_the_unpacked_line(tmp_path):
    (tmp_path / "a").write_bytes(gzip.compress("né\nx\n".encode(), mtime=0))
    assert [len(line.raw) for line in read_lines(tmp_path / "a")] == [4, 2]


HEX = random.Random(0).randbytes(50_000).hex().encode()
CUT = gzip.compress(HEX)[:25_000]
FLIPPED = bytes(byte ^ (0xFF if i == 25_000 else 0) for i, byte in enumerate(gzip.compress(HEX)))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", r"a: the file is empty; put"),
        (b"\n\n", r"a: the file is empty"),
        (gzip.compress(b"", mtime=0), r"a: the file is empty"),
        (b"\xef\xbb\xbf", r"a: the file is empty"),
        (b"fine\nna\xefve\n", r"a:2: byte 3 of this line \(0xef\) is not UTF-8; save the file as UTF-8"),
        (CUT, r"a: the gzip data is damaged .*; get the file again"),
        (FLIPPED, r"the gzip data is damaged|is not UTF-8"),
        (None, r"a: cannot be read \(No such file or directory\)"),
    ],
)
def test_what_cannot_be_read_is_one_clear_line(tmp_path, data, what):
    if data is not None:
        (tmp_path / "a").write_bytes(data)
    for read in (read_lines, every_line):
        with pytest.raises(BadInput, match=what) as caught:
            list(read(tmp_path / "a"))
        assert "\n" not in str(caught.value)
    with pytest.raises(BadInput, match="cannot be read"):
        content(tmp_path)


def test_a_small_gzip_file_with_a_huge_line_is_refused(tmp_path):
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb") as file:
        file.write(b'{"id": "a", "text": "x"}\n')
        for _ in range(300):
            file.write(b"x" * 2**20)
    assert path.stat().st_size < 2**20
    what = r"bomb\.jsonl\.gz:2: this line has more than 67,108,864 bytes; cut it, or get the file again"
    tracemalloc.start()
    for read in (read_lines, every_line):
        with pytest.raises(BadInput, match=what):
            list(read(path))
    assert tracemalloc.get_traced_memory()[1] < 2**28
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["long.txt", "long.txt.gz"])
def test_a_line_of_two_megabytes_is_fine(tmp_path, name):
    write_lines(tmp_path / name, ["ä" * 2**20, "b"])
    assert [len(line.text) for line in read_lines(tmp_path / name)] == [2**20, 1]


def test_a_lone_surrogate_cannot_be_written_and_leaves_no_file(tmp_path):
    with pytest.raises(WhyrankError, match="lone surrogate"):
        write_lines(tmp_path / "a", ["fine", "bad \ud800"])
    assert list(tmp_path.iterdir()) == []


def test_find_file_prefers_earlier_names_and_plain_files(tmp_path):
    for name in ("b", "b.gz", "c.gz"):
        (tmp_path / name).touch()
    assert find_file(tmp_path, "a", "b") == tmp_path / "b"
    assert find_file(tmp_path, "c", "b") == tmp_path / "c.gz"
    assert find_file(tmp_path, "a") is None
