"""Documents and queries from JSON lines and tab-separated lines."""

from __future__ import annotations

import json

import pytest

from whyrank.core import BadInput
from whyrank.data.documents import full_text, read_corpus, read_json_queries, read_queries


def jsonl(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("title", "text", "whole"),
    [
        ("", "text", "text"),
        ("  ", "text", "text"),
        ("Title", "text", "Title text"),
        ("Title", "", "Title"),
        ("Title", "Title: and more", "Title: and more"),
        ("Title", "Title", "Title"),
        ("Art", "Artificial light", "Art Artificial light"),
        ("title", "Title and more", "title Title and more"),
    ],
)
def test_title_stands_before_the_text_once(title, text, whole):
    assert full_text(title, text) == whole


@pytest.mark.parametrize("key", ["id", "_id", "docno", "doc_id"])
def test_every_usual_name_of_the_id_is_read(tmp_path, key):
    corpus = read_corpus(jsonl(tmp_path / "c", {key: "d1", "text": "x", "title": None, "other": [1, {}]}))
    assert corpus.docs == {"d1": "x"}
    assert corpus.titles == {}


def test_titles_are_kept_on_their_own(tmp_path):
    rows = [{"id": "a", "title": "T", "text": "x"}, {"id": "b", "title": " ", "text": "y"}, {"id": "c", "text": "z"}]
    corpus = read_corpus(jsonl(tmp_path / "c", *rows))
    assert corpus.docs == {"a": "T x", "b": "y", "c": "z"}
    assert corpus.titles == {"a": "T"}


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"id": "b", "text": "x"', r"c:2: malformed JSON \(Expecting ',' delimiter, column 24\); write one object"),
        ("b\tx", r"c:2: malformed JSON"),
        ("[" * 100_000, r"c:2: malformed JSON"),
        ('["b", "x"]', r'c:2: expected a JSON object, found \["b", "x"\]'),
        ('{"text": "x"}', r"c:2: 'id' is missing"),
        ('{"id": 7, "text": "x"}', r"c:2: 'id' is 7, not a string"),
        ('{"id": "", "text": "x"}', r"c:2: 'id' is '', which cannot be an id"),
        ('{"id": "\\ud800", "text": "x"}', r"c:2: 'id' is .* which cannot be an id"),
        ('{"id": "b"}', r"c:2: 'text' is missing"),
        ('{"id": "b", "text": null}', r"c:2: 'text' is null, not a string"),
        ('{"id": "b", "text": ["x"]}', r"c:2: 'text' is \[\"x\"\], not a string"),
        ('{"id": "b", "text": "x", "title": 3}', r"c:2: 'title' is 3, not a string"),
        ('{"id": "a", "text": "y"}', r"c:2: id 'a' was already used in line 1; give every text an id of its own"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, what):
    (tmp_path / "c").write_text('{"id": "a", "text": "x"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(BadInput, match=what):
        read_corpus(tmp_path / "c")


def test_lines_of_duplicates_count_blank_lines(tmp_path):
    (tmp_path / "c").write_text('\n{"id": "a", "text": "x"}\n\n{"id": "a", "text": "x"}\n', encoding="utf-8")
    with pytest.raises(BadInput, match=r"c:4: id 'a' was already used in line 2"):
        read_corpus(tmp_path / "c")


def test_empty_texts_are_kept_and_counted(tmp_path):
    rows = [{"id": f"d{i}", "text": " " * (i % 2)} for i in range(7)] + [{"id": "full", "text": "x"}]
    corpus = read_corpus(jsonl(tmp_path / "c.jsonl", *rows))
    assert len(corpus.docs) == 8
    assert corpus.docs["d1"] == " "
    assert corpus.notes == ["c.jsonl: documents with an empty text: 7 (d0, d1, d2, d3, d4, …)"]


def test_a_title_alone_is_not_an_empty_text(tmp_path):
    assert read_corpus(jsonl(tmp_path / "c", {"id": "a", "title": "T", "text": ""})).notes == []


def test_nul_stays_and_lone_surrogates_are_replaced(tmp_path):
    text = '{"id": "a", "title": "\\ud83d", "text": "\\u0000 \\ud83d\\ude00 \\udc00"}\n{"id": "b", "text": "x"}\n'
    (tmp_path / "c.jsonl").write_text(text, encoding="utf-8")
    corpus = read_corpus(tmp_path / "c.jsonl")
    assert corpus.docs["a"] == "\ufffd \x00 😀 \ufffd"
    assert corpus.titles["a"] == "\ufffd"
    assert corpus.notes == ["c.jsonl: documents with lone surrogates (each replaced by U+FFFD): 1 (a)"]


def test_a_line_of_two_megabytes(tmp_path):
    text = "wörd " * 400_000
    corpus = read_corpus(jsonl(tmp_path / "c", {"id": "a", "text": text}, {"id": "b", "text": "short"}))
    assert corpus.docs["a"] == text
    assert corpus.docs["b"] == "short"


def test_queries_are_tab_separated_and_further_columns_ignored(tmp_path):
    (tmp_path / "q.tsv").write_text("1\twhat is this?\tkind\tmore\n2\t\n", encoding="utf-8")
    notes: list[str] = []
    assert read_queries(tmp_path / "q.tsv", notes) == {"1": "what is this?", "2": ""}
    assert notes == ["q.tsv: queries with an empty text: 1 (2)"]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("2 no tab", r"q:2: expected an id, a tab and a text, found '2 no tab'; separate the columns by a tab"),
        ("\tno id", r"q:2: expected an id, a tab and a text"),
        ("1\tagain", r"q:2: query id '1' was already used in line 1; give every query an id of its own"),
    ],
)
def test_a_bad_query_line_is_named(tmp_path, line, what):
    (tmp_path / "q").write_text(f"1\tone\n{line}\n", encoding="utf-8")
    with pytest.raises(BadInput, match=what):
        read_queries(tmp_path / "q", [])


def test_json_queries(tmp_path):
    path = jsonl(tmp_path / "q", {"_id": "1", "text": "one", "metadata": {}}, {"_id": "2", "text": "two"})
    assert read_json_queries(path, []) == {"1": "one", "2": "two"}
    jsonl(path, {"_id": "1", "text": "one"}, {"_id": "1", "text": "two"})
    with pytest.raises(BadInput, match=r"q:2: query id '1' was already used in line 1"):
        read_json_queries(path, [])
