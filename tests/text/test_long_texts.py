from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.text.annotation import parsing as long_texts
from whyrank.text.annotation.annotations import Annotation, Missing, Span
from whyrank.text.annotation.parsing import joined, split_text

NOTHING = Missing("noun chunks", "a pipeline")


@pytest.fixture(scope="module", autouse=True)
def small_pieces():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_texts, "PART_SIZE", 12)
        yield


def by_words(text: str, chunks=()) -> Annotation:
    """Every word a token and a sentence; words that begin with a capital are entities."""
    starts, at = [], 0
    for word in text.split():
        starts.append(text.index(word, at))
        at = starts[-1] + len(word)
    words = text.split()
    ends = [start + len(word) for start, word in zip(starts, words, strict=True)]
    spans = tuple(Span(i, i + 1) for i in range(len(words)))
    named = tuple(Span(i, i + 1, "NAME") for i, word in enumerate(words) if word[0].isupper())
    lemmas, tags, stops = map(str.lower, words), map(str.upper, words), (len(word) < 3 for word in words)
    return Annotation(
        text, tuple(starts), tuple(ends), tuple(lemmas), tuple(tags), tuple(stops), spans, chunks, named
    )


def test_a_short_text_is_one_piece():
    assert list(split_text("a b c")) == ["a b c"]
    assert list(split_text("x" * 12)) == ["x" * 12]
    assert list(split_text("")) == []


def test_a_long_text_is_cut_after_its_last_white_space():
    assert list(split_text("one two three four five")) == ["one two ", "three four ", "five"]
    assert list(split_text("one two\u2003\nthree")) == ["one two\u2003\n", "three"]


def test_a_text_without_white_space_is_cut_anywhere():
    assert list(split_text("abcdefghijklmnopqrstuvwxyz")) == ["abcdefghijkl", "mnopqrstuvwx", "yz"]
    assert list(split_text(" bcdefghijklmnop")) == [" bcdefghijkl", "mnop"]


def test_an_endless_word_is_cut_where_words_are_looked_for(monkeypatch):
    monkeypatch.setattr(long_texts, "PART_SIZE", 100_000)
    line = "x" * 2500
    assert list(map(len, split_text(f"so {line} it is"))) == [1003, 1000, 506]
    assert list(map(len, split_text(f"so {line} it is", cut_words=False))) == [2509]
    assert list(split_text("x" * 1000 + " " + "y" * 1000)) == ["x" * 1000 + " " + "y" * 1000]


def test_cutting_takes_time_in_proportion(monkeypatch):
    monkeypatch.setattr(long_texts, "PART_SIZE", 100_000)
    began = time.perf_counter()
    for text in ("x" * 2_000_000, "word " * 400_000, " " * 2_000_000):
        assert sum(map(len, split_text(text))) == 2_000_000
    assert time.perf_counter() - began < 5


@given(st.text(st.sampled_from("ab \n\u2003"), max_size=60), st.booleans())
def test_pieces_are_the_text_and_are_cut_in_a_word_only_when_it_fills_one(text, cut_words):
    found = list(split_text(text, cut_words=cut_words))
    assert "".join(found) == text
    assert all(0 < len(piece) <= 12 for piece in found)
    for piece in found[:-1]:
        assert piece[-1].isspace() or (len(piece) == 12 and not any(map(str.isspace, piece[1:])))


@given(st.text(st.sampled_from("aB \n"), max_size=60))
def test_joined_pieces_are_what_the_whole_text_is(text):
    text = "".join(f"{word} " for word in text.split() if len(word) < 12)  # no word is cut
    assert joined(text, [by_words(piece) for piece in split_text(text)]) == by_words(text)


def test_no_pieces_make_an_empty_annotation():
    assert joined("", []) == by_words("")


def test_what_is_missing_of_a_piece_is_missing_of_the_text():
    found = joined("a b", [by_words("a ", NOTHING), by_words("b", NOTHING)])
    assert found.chunks == NOTHING
    assert found.sentences == (Span(0, 1), Span(1, 2))
    with pytest.raises(WhyrankError, match="no noun chunks"):
        list(found.chunks)
