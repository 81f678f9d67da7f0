"""Lines, documents and queries of files: encodings, compression, and messages that name the line."""

from __future__ import annotations

import gzip
import json
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import BadInput, WhyrankError, every_line, read_lines, write_lines
from whyrank.data.documents import full_text, read_corpus, read_queries

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1).filter(
    lambda text: not text.isspace() and not text.startswith("\ufeff")
)


def content(path) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in read_lines(path)]


@given(st.lists(texts, min_size=1), st.sampled_from(["a.txt", "a.txt.gz"]))
@settings(max_examples=50)
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


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"\xef\xbb\xbfone\r\ntwo\r\n", [(1, "one"), (2, "two")]),  # neither mark nor carriage return is text
        (b"\n  \none\n\n\t\ntwo", [(3, "one"), (6, "two")]),  # blank lines are skipped and counted
        ("one\u2028still one\x85and\x0cone\n".encode(), [(1, "one\u2028still one\x85and\x0cone")]),
    ],
)
def test_what_is_a_line(tmp_path, data, lines):
    (tmp_path / "a").write_bytes(data)
    assert content(tmp_path / "a") == lines


HEX = random.Random(0).randbytes(50_000).hex().encode()
CUT = gzip.compress(HEX, mtime=0)[:25_000]
FLIPPED = bytes(byte ^ (0xFF if i == 25_000 else 0) for i, byte in enumerate(gzip.compress(HEX, mtime=0)))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", r"a: the file is empty; put"),
        (gzip.compress(b"", mtime=0), r"a: the file is empty"),
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
        for _ in range(70):
            file.write(b"x" * 2**20)
    assert path.stat().st_size < 2**20
    what = r"bomb\.jsonl\.gz:2: this line has more than 67,108,864 bytes; cut it, or get the file again"
    tracemalloc.start()
    for read in (read_lines, every_line):
        with pytest.raises(BadInput, match=what):
            list(read(path))
    assert tracemalloc.get_traced_memory()[1] < 2**28
    tracemalloc.stop()


def test_a_lone_surrogate_cannot_be_written_and_leaves_no_file(tmp_path):
    with pytest.raises(WhyrankError, match="lone surrogate"):
        write_lines(tmp_path / "a", ["fine", "bad \ud800"])
    assert list(tmp_path.iterdir()) == []


# Documents and queries.


def jsonl(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("title", "text", "whole"),
    [
        ("", "text", "text"),
        ("Title", "text", "Title text"),
        ("Title", "", "Title"),
        ("Title", "Title: and more", "Title: and more"),
        ("Art", "Artificial light", "Art Artificial light"),
        ("title", "Title and more", "title Title and more"),
    ],
)
def test_title_stands_before_the_text_once(title, text, whole):
    assert full_text(title, text) == whole


@pytest.mark.parametrize("key", ["id", "_id", "docno", "doc_id"])
def test_ids_of_every_usual_name_and_titles_on_their_own(tmp_path, key):
    rows = [{key: "a", "title": "T", "text": "x"}, {key: "b", "title": " ", "text": "y"}, {key: "c", "text": "z"}]
    corpus = read_corpus(jsonl(tmp_path / "c", *rows, {key: "d", "text": "x", "title": None, "other": [1, {}]}))
    assert corpus.docs == {"a": "T x", "b": "y", "c": "z", "d": "x"}
    assert corpus.titles == {"a": "T"}


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"id": "b", "text": "x"', r"c:2: malformed JSON \(Expecting ',' delimiter, column 24\)"),
        ('["b", "x"]', r'c:2: expected a JSON object, found \["b", "x"\]'),
        ('{"text": "x"}', r"c:2: 'id' is missing"),
        ('{"id": "", "text": "x"}', r"c:2: 'id' is '', which cannot be an id"),
        ('{"id": "\\ud800", "text": "x"}', r"c:2: 'id' is .* which cannot be an id"),
        ('{"id": "b"}', r"c:2: 'text' is missing"),
        ('{"id": "b", "text": null}', r"c:2: 'text' is null, not a string"),
        ('{"id": "a", "text": "y"}', r"c:2: id 'a' was already used in line 1; give every text an id of its own"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, what):
    (tmp_path / "c").write_text('{"id": "a", "text": "x"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(BadInput, match=what):
        read_corpus(tmp_path / "c")


def test_empty_texts_are_kept_and_counted(tmp_path):
    rows = [{"id": f"d{i}", "text": " " * (i % 2)} for i in range(7)] + [{"id": "full", "text": "x"}]
    corpus = read_corpus(jsonl(tmp_path / "c.jsonl", *rows))
    assert len(corpus.docs) == 8
    assert corpus.docs["d1"] == " "
    assert corpus.notes == ["c.jsonl: documents with an empty text: 7 (d0, d1, d2, d3, d4, …)"]
    assert read_corpus(jsonl(tmp_path / "c", {"id": "a", "title": "T", "text": ""})).notes == [], "a title is a text"


def test_nul_stays_and_lone_surrogates_are_replaced(tmp_path):
    text = '{"id": "a", "title": "\\ud83d", "text": "\\u0000 \\ud83d\\ude00 \\udc00"}\n{"id": "b", "text": "x"}\n'
    (tmp_path / "c.jsonl").write_text(text, encoding="utf-8")
    corpus = read_corpus(tmp_path / "c.jsonl")
    assert corpus.docs["a"] == "\ufffd \x00 😀 \ufffd"
    assert corpus.titles["a"] == "\ufffd"
    assert corpus.notes == ["c.jsonl: documents with lone surrogates (each replaced by U+FFFD): 1 (a)"]


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("q.tsv", "1\tone\n2 no tab\n", r"q\.tsv:2: expected an id, a tab and a text"),
        ("q.tsv", "1\tone\n\tno id\n", r"q\.tsv:2: expected an id, a tab and a text"),
        ("q.tsv", "1\tone\n1\tagain\n", r"q\.tsv:2: query id '1' was already used in line 1"),
        ("q.jsonl", '{"_id": "1", "text": "a"}\n{"_id": "1", "text": "b"}', r"q\.jsonl:2: query id '1' was already"),
    ],
)
def test_a_bad_query_line_is_named(tmp_path, name, text, what):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=what):
        read_queries(tmp_path / name, [])
