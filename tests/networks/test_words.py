"""Whole words as token numbers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.core import BadInput
from whyrank.networks.tokens import Words, open_tokenizer

KNOWN = Words(["cat", "dog", "cat", "über"], buckets=8)


def test_known_words_have_their_first_place_and_0_is_padding():
    assert KNOWN.ids(["Cat, DOG; über_cat"], 10)[0].tolist() == [1, 2, 4, 1]
    assert KNOWN.special == {"pad": 0}
    assert KNOWN.numbers(["dog", "cow", "cat"]) == [2, 1]
    assert KNOWN.spell([0, 1, 4, 5, 12]) == ["[PAD]", "cat", "über", "[0]", "[7]"]


def test_unknown_words_fall_into_buckets_or_are_left_out():
    row = KNOWN.ids(["cow cat COW"], 10)[0].tolist()
    assert row[0] == row[2]
    assert 5 <= row[0] < len(KNOWN) == 13
    assert Words(["cat"], buckets=0).ids(["cow cat"], 10)[0].tolist() == [1]


def test_the_number_of_an_unknown_word_stays_what_it_is():
    assert Words([], buckets=1000).ids(["zymurgy"], 1)[0].tolist() == [1 + 0x900A6786 % 1000]


@given(st.lists(st.text(), max_size=4), st.integers(0, 5))
def test_any_text_gives_numbers_below_the_size(texts, most):
    rows = KNOWN.ids(texts, most)
    assert len(rows) == len(texts)
    assert all(len(row) <= most and all(0 < n < len(KNOWN) for n in row) for row in rows)


def test_half_a_surrogate_pair_is_no_word_but_no_error():
    assert KNOWN.ids(["cat \ud800 dog"], 5)[0].tolist() == [1, 2]


def test_words_are_read_again(tmp_path):
    (tmp_path / "tokenizer.json").write_bytes(KNOWN.content)
    again = open_tokenizer(tmp_path)
    assert isinstance(again, Words)
    assert again.words == KNOWN.words
    assert again.content == KNOWN.content


@pytest.mark.parametrize("bad", [{"words": "cat", "buckets": 1}, {"words": [1], "buckets": 1}, {"words": ["cat"]}])
def test_a_broken_list_is_one_clear_line(bad, tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"kind": "whyrank words"} | bad))
    with pytest.raises(BadInput, match="no list of words"):
        open_tokenizer(tmp_path)


def test_a_missing_or_torn_file_is_one_clear_line(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        open_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(KNOWN.content[:20])
    with pytest.raises(BadInput, match="cannot be read"):
        open_tokenizer(tmp_path)
