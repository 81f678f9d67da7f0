"""Pair sets: the type, the files that any of them can be read from, and what a user may write for one."""

from __future__ import annotations

import csv
import gzip
import io
import json
import pickle
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import BadInput, UnknownName, WhyrankError
from whyrank.data.pairs import PairSet, TextPair, open_pairs, pair_layouts
from whyrank.data.pairs.sets import KINDS

any_text = st.text(st.characters(exclude_categories=["Cs"]))
one_line = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\r\n"))
role_names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\r\n\ufeff"), min_size=1).filter(
    lambda name: name != "id" and not name.isspace()
)


def tables(texts):
    """Roles, and rows with a text for each."""
    roles = st.lists(role_names, min_size=2, max_size=4, unique=True)
    return roles.flatmap(
        lambda names: st.tuples(
            st.just(names), st.lists(st.lists(texts, min_size=len(names), max_size=len(names)), min_size=1)
        )
    )


def rows(found):
    return [(pair.id, dict(pair.texts)) for pair in found]


def written(tmp_path, name, data):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def expected(names, texts):
    return [(str(number), dict(zip(names, row, strict=True))) for number, row in enumerate(texts, 1)]


@given(tables(any_text), st.booleans())
@settings(deadline=None, max_examples=60)
def test_json_lines_come_back_as_they_were(tmp_path_factory, table, packed):
    names, texts = table
    data = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in texts).encode()
    path = written(tmp_path_factory.mktemp("pairs"), "p.jsonl", gzip.compress(data, mtime=0) if packed else data)
    assert rows(open_pairs(str(path))) == expected(names, texts)


@given(tables(any_text))
@settings(deadline=None, max_examples=60)
def test_csv_comes_back_as_it_was_line_breaks_included(tmp_path_factory, table):
    names, texts = table
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([names, *texts])
    path = written(tmp_path_factory.mktemp("pairs"), "p.csv", out.getvalue())
    assert rows(open_pairs(str(path))) == expected(names, texts)


@given(tables(one_line))
@settings(deadline=None, max_examples=60)
def test_tsv_comes_back_as_it_was_quotes_included(tmp_path_factory, table):
    names, texts = table
    data = "".join("\t".join(row) + "\n" for row in [names, *texts])
    path = written(tmp_path_factory.mktemp("pairs"), "p.tsv", data)
    assert rows(open_pairs(str(path))) == expected(names, texts)


@given(st.lists(st.tuples(any_text.filter(bool), any_text, any_text), min_size=1, unique_by=lambda row: row[0]))
@settings(deadline=None, max_examples=60)
def test_packed_rows_are_a_sequence_of_the_pairs_given(given_rows):
    pairs = [TextPair(row_id, {"b": b, "a": a}) for row_id, a, b in given_rows]
    found = PairSet.of(iter(pairs), "mine")
    assert list(found) == list(found.rows) == list(found) == pairs
    assert len(found) == len(pairs)
    assert [found.rows[i] for i in range(-len(pairs), len(pairs))] == pairs + pairs
    assert found.rows[1:] == pairs[1:]
    assert found.rows[::-2] == pairs[::-2]
    assert list(pickle.loads(pickle.dumps(found))) == pairs
    with pytest.raises(IndexError):
        found.rows[len(pairs)]


def test_the_digest_depends_on_the_content_alone(tmp_path):
    lines = '{"id": "x", "a": "one", "b": "two"}\n'
    plain, packed = (
        written(tmp_path, "p.jsonl", lines),
        written(tmp_path, "q.jsonl.gz", gzip.compress(lines.encode(), mtime=0)),
    )
    table = written(tmp_path, "r.tsv", "b\tid\ta\ntwo\tx\tone\n")
    assert len({open_pairs(str(path)).digest for path in (plain, packed, table)}) == 1
    variants = [
        ("x", "one", "two"),
        ("x", "onet", "wo"),
        ("xo", "ne", "two"),
        ("x", "two", "one"),
        ("", "xone", "two"),
    ]
    sets = [PairSet.of([TextPair(i, {"a": a, "b": b})]) for i, a, b in variants]
    sets += [PairSet.of([TextPair("x", {"a": "one", "c": "two"})]), PairSet.of([*sets[0], *sets[0]])]
    assert len({each.digest for each in sets}) == len(sets)
    assert sets[0].digest == open_pairs(str(plain)).digest


def test_a_large_set_takes_little_more_than_its_texts(tmp_path):
    n, texts = 20_000, 0
    with open(tmp_path / "p.jsonl", "w", encoding="utf-8") as file:
        for i in range(n):
            row = {"id": f"pair-{i}", "a": f"{i} " * 20, "b": f"{i + 1} " * 20}
            texts += sum(map(len, row.values()))
            file.write(json.dumps(row) + "\n")
    tracemalloc.start()
    found = open_pairs(str(tmp_path / "p.jsonl"))
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == n
    assert held < 1.3 * texts
    assert peak < 1.8 * texts


def test_need_names_what_is_missing_and_what_is_there():
    found = PairSet.of([TextPair("1", {"source": "x", "fluent": "y"})], "mine", "mine.tsv")
    found.need("source", "fluent")
    found.need()
    with pytest.raises(
        WhyrankError, match=r"mine\.tsv: the roles title, simple are missing; it has fluent, source; name"
    ):
        found.need("source", "title", "simple")


def test_a_set_says_what_it_is():
    found = PairSet.of([TextPair("1", {"source": "x", "fluent": "y"})], "mine")
    assert repr(found) == "PairSet('mine', 1 pairs of fluent, source)"
    assert repr(found.rows) == "PackedPairs(fluent, source; 1 pairs)"
    assert found == PairSet.of(list(found), "mine")
    assert {found: 1}[PairSet.of(found, "mine")] == 1
    assert found.digest == PairSet.of(found, "other").digest
    assert found != PairSet.of(found, "other")


def test_pairs_must_agree_on_their_roles():
    with pytest.raises(WhyrankError, match=r"mine: pair '2' has the roles a, the first one a, b"):
        PairSet.of([TextPair("1", {"a": "x", "b": "y"}), TextPair("2", {"a": "x"})], "mine")
    with pytest.raises(WhyrankError, match="there are no pairs in it"):
        PairSet.of([])
    with pytest.raises(WhyrankError, match="'1' has no texts"):
        PairSet.of([TextPair("1", {})])


def test_ids_are_read_and_numbers_will_do(tmp_path):
    path = written(tmp_path, "p.jsonl", '{"id": 7, "a": "x", "n": 3, "refs": ["y"]}\n\n{"id": "z", "a": ""}\n')
    found = open_pairs(str(path))
    assert rows(found) == [("7", {"a": "x"}), ("z", {"a": ""})]
    assert found.name == "p"
    assert found.source == str(path)


def test_empty_texts_are_kept_everywhere(tmp_path):
    tsv = written(tmp_path, "p.tsv", "a\tb\n\t\n\nx\t\n")
    assert rows(open_pairs(str(tsv))) == [("1", {"a": "", "b": ""}), ("2", {"a": "x", "b": ""})]
    table = written(tmp_path, "p.csv", 'a,b\r\n"",""\r\n\r\n,x\r\n')
    assert rows(open_pairs(str(table))) == [("1", {"a": "", "b": ""}), ("2", {"a": "", "b": "x"})]


def test_a_very_long_text_fits_into_csv(tmp_path):
    long = "word " * 100_000
    assert next(iter(open_pairs(str(written(tmp_path, "p.csv", f"a,b\n{long},y\n"))))).texts["a"] == long


def test_lone_surrogates_are_mended_and_noted(tmp_path):
    found = open_pairs(str(written(tmp_path, "p.jsonl", '{"id": "k", "a": "x\\ud800", "b": "y"}\n')))
    assert rows(found) == [("k", {"a": "x\ufffd", "b": "y"})]
    assert len(found.notes) == 1
    assert "lone surrogates" in found.notes[0]
    assert "(k)" in found.notes[0]


def test_columns_of_other_names_become_roles(tmp_path):
    path = written(tmp_path, "p.tsv", "key\tsentence1\tsentence2\ttitle\nk\tx\ty\tt\n")
    found = open_pairs(f"{path}(a=sentence1,b=sentence2,id=key)", "paraphrase")
    assert rows(found) == [("k", {"a": "x", "b": "y", "title": "t"})]
    assert found.source == f"{path}(a=sentence1,b=sentence2,id=key)"
    assert open_pairs(found.source) == found
    assert rows(open_pairs(f"{path}(title=sentence1)"))[0][1] == {"key": "k", "title": "x", "sentence2": "y"}
    spaced = written(tmp_path, "my (own) pairs.csv", "First text,2\nx,y\n")
    assert rows(open_pairs(f"{spaced}(a='First text',b=2)")) == [("1", {"a": "x", "b": "y"})]
    assert open_pairs(str(spaced)).roles == {"First text", "2"}
    bracketed = written(tmp_path / "copy (1)", "p.csv", "a,b\nx,y\n").rename(tmp_path / "pairs.csv(1)")
    with pytest.raises(BadInput, match=r"pairs\.csv\(1\): the ending of the name"):
        open_pairs(str(bracketed))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("(a=sentense1)", r"p\.tsv: there is no column 'sentense1'; did you mean 'sentence1' or 'sentence2'\?"),
        ("(a=None)", r"a=None names no column; write ROLE=COLUMN"),
        ("(sentence1)", "expected key=value"),
    ],
)
def test_wrong_columns(tmp_path, spec, message):
    path = written(tmp_path, "p.tsv", "sentence1\tsentence2\nx\ty\n")
    with pytest.raises(WhyrankError, match=message):
        open_pairs(f"{path}{spec}")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("p.jsonl", "", r"p\.jsonl: the file is empty"),
        ("p.tsv", "\n \n", r"p\.tsv: the file is empty"),
        ("p.csv", gzip.compress(b"", mtime=0), r"p\.csv: the file is empty"),
        ("p.tsv", "a\tb\n", r"p\.tsv: there are no pairs in it"),
        ("p.jsonl", '{"a": "x"}\n\n{"a": \n', r"p\.jsonl:3: malformed JSON \(Expecting value, column"),
        ("p.jsonl", "[" * 100_000, r"p\.jsonl:1: malformed JSON"),
        ("p.jsonl", '["a"]', r'p\.jsonl:1: expected a JSON object, found \["a"\]'),
        ("p.jsonl", '{"a": "x", "b": "y"}\n{"a": "x"}', r"p\.jsonl:2: 'b' is missing; there are: a"),
        ("p.jsonl", '{"a": "x", "b": "y"}\n{"a": "x", "b": null}', r"p\.jsonl:2: 'b' is null, not a string"),
        ("p.jsonl", '{"a": "x"}\n{"a": "x", "c": "y"}', r"p\.jsonl:2: the first row has no 'c'; give every row"),
        ("p.jsonl", '{"id": 1, "a": "x"}\n{"a": "y"}', r"p\.jsonl:2: 'id' is missing"),
        ("p.jsonl", '{"id": true, "a": "x"}', r"p\.jsonl:1: 'id' is true, not a string"),
        ("p.jsonl", '{"id": "", "a": "x"}', r"p\.jsonl:1: 'id' is empty, which cannot be an id"),
        ("p.jsonl", '{"id": "1", "n": 2}', r"p\.jsonl:1: there are no texts in this row"),
        ("p.jsonl", '{"id": 1, "a": "x"}\n\n{"id": "1", "a": "y"}', r"p\.jsonl:3: id '1' was already used in line 1"),
        ("p.csv", 'id,a\n1,"x\ny"\n2,z\n1,z\n', r"p\.csv:5: id '1' was already used in line 2"),
        ("p.tsv", "a\tb\nx\ty\nx\n", r"p\.tsv:3: expected 2 columns as in the first row, found 1"),
        ("p.csv", 'a,b\n"x\nx",y\nx\n', r"p\.csv:4: expected 2 columns as in the first row, found 1"),
        ("p.csv", 'a,b\nx,y\n"x"x,y\n', r"p\.csv:3: malformed CSV"),
        ("p.csv", 'a,b\nx,y\n"x,y\n', r"p\.csv:3: malformed CSV \(unexpected end"),
        ("p.tsv", "a\t\nx\ty\n", r"p\.tsv:1: column 2 has no name"),
        ("p.csv", "a,a\nx,y\n", r"p\.csv:1: two columns are named 'a'"),
        ("p.tsv", b"a\tb\nx\tna\xefve\n", r"p\.tsv:2: byte 5 of this line \(0xef\) is not UTF-8"),
        ("p.csv", b"a,b\nx,na\xefve\n", r"p\.csv:2: byte 5 of this line \(0xef\) is not UTF-8"),
        ("p.jsonl", b'{"a": "na\xefve"}', r"p\.jsonl:1: byte 10 of this line \(0xef\) is not UTF-8"),
        ("p.csv.gz", gzip.compress(b"a,b\nx,y\n" * 5000, mtime=0)[:40], r"p\.csv\.gz: the gzip data is damaged"),
        ("p.txt", "a\tb\nx\ty\n", r"p\.txt: the ending of the name does not say what the file is; name it \.jsonl"),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path, name, data, message):
    path = written(tmp_path, name, data)
    with pytest.raises(WhyrankError, match=message) as caught:
        open_pairs(str(path))
    assert "\n" not in str(caught.value)


def test_byte_order_mark_and_carriage_returns_are_no_text(tmp_path):
    for name, mark in (("p.tsv", "\t"), ("p.csv", ",")):
        path = written(tmp_path, name, f"a{mark}b\r\nx{mark}y\r\n".encode("utf-8-sig"))
        assert rows(open_pairs(str(path))) == [("1", {"a": "x", "b": "y"})]


def test_a_kind_needs_its_roles(tmp_path):
    path = written(tmp_path, "p.jsonl", '{"formal": "x", "informal": "y"}')
    assert open_pairs(str(path), "formality").roles == {"formal", "informal"}
    with pytest.raises(WhyrankError, match=r"the roles simple, source are missing; it has formal, informal"):
        open_pairs(str(path), "simplicity")
    with pytest.raises(UnknownName, match="unknown kind of pairs 'formalty'; did you mean 'formality'"):
        open_pairs(str(path), "formalty")


MORE_ROLES = {
    "fluency": {"spellchecked"},
    "formality": {"question"},
    "succinctness": {"title"},
    "factuality": {"entity"},
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_has_a_sample(kind):
    found = open_pairs("sample", kind)
    assert found.roles == {*KINDS[kind], *MORE_ROLES.get(kind, ())}
    assert len(found) >= 60
    assert (found.name, found.source, found.notes) == (f"sample/{kind}", "sample", ())
    assert all(text.strip() for pair in found for text in pair.texts.values())


def test_a_sample_needs_a_kind():
    with pytest.raises(WhyrankError, match="say which: paraphrase, fluency"):
        open_pairs("sample")


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("mspr:there", UnknownName, r"unknown pair layout 'mspr'; did you mean 'msrp'\?"),
        ("msrp:none/there", BadInput, r"none/there: there is no such file or folder"),
        ("msrp", WhyrankError, r"'msrp' needs 'resource'; write msrp:RESOURCE"),
        ("none.tsv", WhyrankError, r"no file or folder 'none\.tsv' exists; write a file, LAYOUT:PATH"),
        ("none.tsv(a=b)", WhyrankError, r"no file or folder 'none\.tsv' exists"),
        ("x" * 300, WhyrankError, r"cannot be read \(.*too long"),
        ("~nobody-has-this-name/p.tsv", WhyrankError, r"cannot be read|exists"),
        (" ", WhyrankError, "a pair set needs a place"),
        ("p.tsv(a)", WhyrankError, r"^'p\.tsv\(a\)': expected key=value"),
        ("jfleg:.(newline=True)", UnknownName, r"unknown argument of pair layout 'jfleg' 'newline'"),
    ],
)
def test_what_cannot_be_opened(tmp_path, monkeypatch, spec, error, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        open_pairs(spec)


def test_an_unknown_folder_is_an_error(tmp_path):
    written(tmp_path, "train.tsv", "x\ty\n1\t2\n")
    with pytest.raises(BadInput, match=r"the folder has the files of no known layout; name a file, or write LAYOUT"):
        open_pairs(str(tmp_path))


def test_layouts_can_be_added(tmp_path):
    @pair_layouts.register("toy")
    def toy(resource, times=1):
        return PairSet.of([TextPair(str(i), {"a": resource, "b": "y"}) for i in range(times)], "toy")

    try:
        found = open_pairs(f"toy:{tmp_path}/x(times=3)", "paraphrase")
        assert (len(found), found.source) == (3, f"toy:{tmp_path}/x(times=3)")
        pair_layouts.forget("toy")
        pair_layouts.register("toy")(lambda resource: 5)
        with pytest.raises(WhyrankError, match="'toy' is registered but gave int; tell its author"):
            open_pairs("toy:x")
    finally:
        pair_layouts.forget("toy")
