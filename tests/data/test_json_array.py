"""JSON arrays item by item, against a reader that loads them whole."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import BadInput
from whyrank.data.lines import array_items

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def spoil(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@given(st.lists(values), st.integers(1, 40), st.sampled_from([None, 0, 3]), st.booleans())
@settings(deadline=None, max_examples=150)
def test_items_are_those_of_the_whole_array(tmp_path_factory, items, size, indent, plain):
    text = json.dumps(items, indent=indent, ensure_ascii=not plain).encode("utf-8", "replace")
    path = spoil(tmp_path_factory.mktemp("array") / "a.json", b" \r\n" + text + b"\n \t")
    found = list(array_items(path, size))
    assert [item.value for item in found] == json.loads(text)


@given(st.lists(values, min_size=1), st.integers(1, 40))
@settings(deadline=None)
def test_items_know_their_line(tmp_path_factory, items, size):
    lines, expected = "[", []
    for number, item in enumerate(items):
        lines += "\n" if number else "\n\n"
        expected.append(lines.count("\n") + 1)
        lines += json.dumps(item, indent=1) + ("," if number < len(items) - 1 else "]")
    path = spoil(tmp_path_factory.mktemp("array") / "a.json", lines)
    assert [item.line for item in array_items(path, size)] == expected


def test_only_the_item_at_hand_is_in_memory(tmp_path):
    item = {"text": "x" * 5000, "list": list(range(100))}
    path = spoil(tmp_path / "a.json.gz", gzip.compress(("[" + ",".join([json.dumps(item)] * 4000) + "]").encode(), 1))
    tracemalloc.start()
    assert sum(each.value == item for each in array_items(path, 1 << 16)) == 4000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_500_000  # of 22 million characters, all in one line


def test_an_item_larger_than_many_pieces(tmp_path):
    item = ["word " * 50_000, {"a": list(range(20_000))}]
    path = spoil(tmp_path / "a.json", json.dumps([item, item]))
    assert [each.value for each in array_items(path, 64)] == [item, item]


def test_a_mistake_is_found_without_reading_the_rest(tmp_path, monkeypatch):
    path = spoil(tmp_path / "a.json", '[\n{"a": 1},\n{"a": oops},\n' + '{"a": "x"},\n' * 200_000 + "1]")
    read = []
    from whyrank.data import lines as json_array

    def counting(path, size):
        for piece in pieces(path, size):
            read.append(len(piece))
            yield piece

    pieces = json_array.pieces
    monkeypatch.setattr(json_array, "pieces", counting)
    with pytest.raises(BadInput, match=r"a\.json:3: malformed JSON \(Expecting value\)"):
        list(array_items(path, 4096))
    assert sum(read) <= 2 * 4096


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", r"a\.json:1: expected a JSON array"),
        ('\n{"a": 1}', r"a\.json:2: expected a JSON array, which begins with \["),
        ("[1, 2", r"a\.json:1: expected a comma or \] after an item; the file must be one JSON array"),
        ("[1,\n2 3]", r"a\.json:2: expected a comma or \] after an item"),
        ("[1,\n]", r"a\.json:2: malformed JSON \(Expecting value\)"),
        ('[1,\n"open', r"a\.json:2: malformed JSON \(Unterminated string"),
        ('[\n{"a":\n 1,\n "b" 2}]', r"a\.json:4: malformed JSON \(Expecting ':' delimiter\)"),
        ("[1]\n\n[2]", r"a\.json:3: there is something after the array"),
        ("[" * 100_000, r"a\.json:1: malformed JSON"),
    ],
)
def test_errors_name_the_line(tmp_path, size, data, message):
    if size == 1 and len(data) > 1000:
        size = 1000
    path = spoil(tmp_path / "a.json", data)
    with pytest.raises(BadInput, match=message):
        list(array_items(path, size))


def test_bad_utf8_names_the_line(tmp_path):
    path = spoil(tmp_path / "a.json", b'["fine",\n"na\xefve"]')
    for size in (1, 5, 1 << 20):
        with pytest.raises(BadInput, match=r"a\.json:2: a byte of this line \(0xef\) is not UTF-8; save"):
            list(array_items(path, size))


def test_text_cut_between_the_bytes_of_a_character(tmp_path):
    path = spoil(tmp_path / "a.json", '\ufeff["é€😀"]')
    assert [each.value for each in array_items(path, 1)] == ["é€😀"]
    with pytest.raises(BadInput, match="is not UTF-8"):
        list(array_items(spoil(tmp_path / "b.json", b'["\xf0\x9f'), 2))


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(BadInput, match=r"none: cannot be read \(No such file"):
        list(array_items(tmp_path / "none"))
    whole = gzip.compress(json.dumps(list(range(10_000))).encode())
    with pytest.raises(BadInput, match="the gzip data is damaged"):
        list(array_items(spoil(tmp_path / "a", whole[:-100])))
