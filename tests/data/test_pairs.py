"""Pair sets: the type, the files that any of them can be read from, and what a user may write for one."""

from __future__ import annotations

import csv
import gzip
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import BadInput, UnknownName, WhyrankError
from whyrank.data.pairs import PairSet, TextPair, open_pairs
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


def as_csv(names, texts):
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([names, *texts])
    return out.getvalue()


FORMS = {
    "p.jsonl": (
        any_text,
        lambda names, texts: "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in texts),
    ),
    "p.csv": (any_text, as_csv),  # line breaks inside texts
    "p.tsv": (
        one_line,
        lambda names, texts: "".join("\t".join(row) + "\n" for row in [names, *texts]),
    ),  # quotes as they are
}


@given(st.sampled_from(sorted(FORMS)), st.data(), st.booleans())
@settings(max_examples=100)
def test_what_is_written_comes_back(tmp_path_factory, name, data, packed):
    texts_of, form = FORMS[name]
    names, texts = data.draw(tables(texts_of))
    content = form(names, texts).encode()
    path = written(tmp_path_factory.mktemp("pairs"), name, gzip.compress(content, mtime=0) if packed else content)
    assert rows(open_pairs(str(path))) == expected(names, texts)


def test_the_digest_depends_on_the_content_alone(tmp_path):
    lines = '{"id": "x", "a": "one", "b": "two"}\n'
    plain = written(tmp_path, "p.jsonl", lines)
    packed = written(tmp_path, "q.jsonl.gz", gzip.compress(lines.encode(), mtime=0))
    table = written(tmp_path, "r.tsv", "b\tid\ta\ntwo\tx\tone\n")
    assert len({open_pairs(str(path)).digest for path in (plain, packed, table)}) == 1
    variants = ["x one two", "x onet wo", "xo ne two", "x two one", " xone two"]
    sets = [PairSet.of([TextPair(i, {"a": a, "b": b})]) for i, a, b in (each.split(" ") for each in variants)]
    sets += [PairSet.of([TextPair("x", {"a": "one", "c": "two"})]), PairSet.of([*sets[0], *sets[0]])]
    assert len({each.digest for each in sets}) == len(sets)
    assert sets[0].digest == open_pairs(str(plain)).digest == "1a4d77e2bd2f857d"


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


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("p.jsonl", "", "empty"),
        ("p.tsv", "a\tb\n", "no pairs"),
        ("p.jsonl", '{"a": "x"}\n\n{"a": \n', r"p\.jsonl:3: malformed JSON"),
        ("p.jsonl", "[" * 100_000, r"p\.jsonl:1: malformed JSON"),
        ("p.jsonl", '{"a": "x", "b": "y"}\n{"a": "x"}', r"p\.jsonl:2: 'b' is missing"),
        ("p.jsonl", '{"a": "x"}\n{"a": "x", "c": "y"}', r"p\.jsonl:2: the first row has no 'c'"),
        ("p.jsonl", '{"id": true, "a": "x"}', r"p\.jsonl:1: 'id' is true"),
        ("p.jsonl", '{"id": "1", "n": 2}', r"p\.jsonl:1: there are no texts"),
        ("p.jsonl", '{"id": 1, "a": "x"}\n\n{"id": "1", "a": "y"}', r"p\.jsonl:3: id '1' occurs twice"),
        ("p.tsv", "a\tb\nx\ty\nx\n", r"p\.tsv:3: expected 2 columns"),
        ("p.csv", 'a,b\n"x\nx",y\nx\n', r"p\.csv:4: expected 2 columns"),
        ("p.csv", 'a,b\nx,y\n"x"x,y\n', r"p\.csv:3: malformed CSV"),
        ("p.tsv", "a\t\nx\ty\n", r"p\.tsv:1: column 2 has no name"),
        ("p.csv", "a,a\nx,y\n", r"p\.csv:1: two columns are named 'a'"),
        ("p.tsv", b"a\tb\nx\tna\xefve\n", r"p\.tsv:2: .*UTF-8"),
        ("p.csv.gz", gzip.compress(b"a,b\nx,y\n" * 5000, mtime=0)[:40], "gzip data is damaged"),
        ("p.txt", "a\tb\nx\ty\n", "the ending of the name"),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path, name, data, message):
    path = written(tmp_path, name, data)
    with pytest.raises(WhyrankError, match=message) as caught:
        open_pairs(str(path))
    assert "\n" not in str(caught.value)


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
def test_all_studies_has_a_sample(kind):
    found = open_pairs("sample", kind)
    assert found.roles == {*KINDS[kind], *MORE_ROLES.get(kind, ())}
    assert len(found) >= 60
    assert (found.name, found.source, found.notes) == (f"sample/{kind}", "sample", ())
    assert all(text.strip() for pair in found for text in pair.texts.values())


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("sample", WhyrankError, "paraphrase, fluency"),
        ("mspr:there", UnknownName, "did you mean 'msrp'"),
        ("msrp:none/there", BadInput, "none/there"),
        ("msrp", WhyrankError, "msrp:RESOURCE"),
        ("none.tsv", WhyrankError, r"no file or folder 'none\.tsv' exists"),
        ("~nobody-has-this-name/p.tsv", WhyrankError, r"cannot be read|exists"),
        ("p.tsv(a=sentense1)", BadInput, "did you mean 'sentence1' or 'sentence2'"),
        ("p.tsv(a=None)", WhyrankError, "ROLE=COLUMN"),
        ("jfleg:.(newline=True)", UnknownName, "'newline'"),
        (".", BadInput, "no known layout"),
    ],
)
def test_what_cannot_be_opened(tmp_path, monkeypatch, spec, error, message):
    monkeypatch.chdir(tmp_path)
    for name in ("p.tsv", "train.tsv"):
        written(tmp_path, name, "sentence1\tsentence2\nx\ty\n")
    with pytest.raises(error, match=message):
        open_pairs(spec)
