"""Queries cut from texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from whyrank.training.keywords import FUNCTION_WORDS, OPENINGS, cut_queries

SENTENCES = "The quick brown fox jumps over the lazy dog today. Whales are very large animals of the sea. Short one."
WORDS = SENTENCES.lower().replace(".", "").split()
CONTENT = [word for word in WORDS if word not in FUNCTION_WORDS]


def without_opening(text):
    return next(
        (text.removeprefix(o + " ") for o in sorted(OPENINGS, key=len)[::-1] if text.startswith(o + " ")), text
    )


@given(st.integers(0, 50), st.integers(1, 6))
def test_cuts_are_words_of_their_text_in_order(seed, per_text):
    found = cut_queries([SENTENCES, "too short"], per_text, seed)
    assert found == cut_queries([SENTENCES, "too short"], per_text, seed)
    assert len(found) <= per_text
    for text, source in found:
        assert source == 0
        plain = without_opening(text)
        assert 2 <= len(plain.split()) <= 9
        assert any(f" {plain} " in f" {' '.join(words)} " for words in (WORDS, CONTENT))
        assert not {plain.split()[0], plain.split()[-1]} & FUNCTION_WORDS


def test_a_text_gives_many_different_cuts_of_both_kinds():
    plain = [without_opening(text) for text, _ in cut_queries([SENTENCES] * 1, 60)]
    fragments = [text for text in plain if set(text.split()) & FUNCTION_WORDS]
    assert len(plain) > 25
    assert 5 < len(fragments) < len(plain) - 5


def test_the_questions_of_a_text_are_queries_as_they_stand():
    texts = [
        "You may ask: how deep is the deepest lake? It is deep.",
        "Why? Because is that so?",
        "No questions asked.",
    ]
    found = cut_queries(texts, 0)
    assert found == [("how deep is the deepest lake", 0)]


def test_a_query_belongs_to_the_first_text_that_gives_it():
    twice = ["Is this a question that both texts ask?"] * 2
    assert [source for _, source in cut_queries(twice, 0)] == [0]
    assert cut_queries([""], 5) == []
