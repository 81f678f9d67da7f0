"""The vocabulary, the text cache and the shared state behind analyzers."""

from __future__ import annotations

import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.text import Parts, State, TextCache, Vocabulary

TEXTS = st.lists(st.text("ab AB.", max_size=8), max_size=12)


def fresh_state(query_steps=None):
    def drop_a(token):
        return None if token == "a" else token

    return State(Parts(lambda texts: [text.split() for text in texts], (str.lower, drop_a), query_steps))


def spelled(state, tokens):
    pairs = pairwise(tokens.offsets)
    return [[state.vocabulary.terms[i] for i in tokens.ids[a:b]] for a, b in pairs]


def expected(text):
    return [token.lower() for token in text.split() if token.lower() != "a"]


@settings(deadline=None)
@given(st.lists(st.text(max_size=3)))
def test_vocabulary_numbers_terms_in_order_of_first_sight(terms):
    vocabulary = Vocabulary()
    ids = [vocabulary.id(term) for term in terms]
    assert vocabulary.terms == list(dict.fromkeys(terms))
    assert [vocabulary.terms[i] for i in ids] == terms
    assert [vocabulary.find(term) for term in terms] == ids
    assert len(vocabulary) == len(set(terms))
    assert vocabulary.find("not there") == -1


@settings(deadline=None)
@given(TEXTS)
def test_tokens_have_the_declared_types_and_shape(texts):
    ids, offsets = fresh_state().docs.tokens(texts)
    assert ids.dtype == np.int32
    assert offsets.dtype == np.int64
    assert len(offsets) == len(texts) + 1
    assert offsets[0] == 0
    assert offsets[-1] == len(ids)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_cached_answers_equal_fresh_ones(before, texts):
    state = fresh_state()
    state.docs.tokens(before)
    assert spelled(state, state.docs.tokens(texts)) == [expected(text) for text in texts]


@settings(deadline=None)
@given(TEXTS, st.integers(0, 400))
def test_a_cache_too_small_for_the_batch_changes_no_answer(texts, capacity):
    state = fresh_state()
    state.docs.cache.capacity = capacity
    for _ in range(2):
        assert spelled(state, state.docs.tokens(texts)) == [expected(text) for text in texts]
        assert state.docs.cache.held <= capacity


def test_changing_an_answer_does_not_change_the_next_one():
    state = fresh_state()
    first = state.docs.tokens(["b bb"])
    first.ids[:] = 99
    assert spelled(state, state.docs.tokens(["b bb"])) == [["b", "bb"]]


def test_queries_share_the_vocabulary_and_have_steps_of_their_own():
    state = fresh_state(query_steps=(str.lower,))
    assert spelled(state, state.docs.tokens(["A b"])) == [["b"]]
    assert spelled(state, state.queries.tokens(["A b"])) == [["a", "b"]]
    assert state.vocabulary.terms == ["b", "a"]


def test_the_cache_forgets_what_was_unused_for_longest():
    ids = np.arange(68, dtype=np.int32)
    cache = TextCache(capacity=200)
    cache.put("one", ids)
    cache.put("two", ids)
    assert cache.get("one") is ids
    cache.put("three", ids)
    assert (cache.get("two"), len(cache), cache.held) == (None, 2, 200)
    assert cache.get("one") is ids


def test_texts_without_tokens_are_bounded_too():
    cache = TextCache(capacity=1000)
    for number in range(1000):
        cache.put(f"{number}", np.empty(0, np.int32))
    assert len(cache) < 100
    cache.put("." * 100_000, np.empty(0, np.int32))
    assert len(cache) == 0


def test_a_single_text_is_refused_because_its_characters_would_pass_for_texts():
    with pytest.raises(TypeError, match="list of texts"):
        fresh_state().docs.tokens("one text")


def test_threads_get_one_vocabulary_without_duplicates():
    state = fresh_state(query_steps=(str.lower,))
    texts = [f"t{number} u{number % 97}" for number in range(3000)]
    sides = [state.docs, state.queries] * 2
    threads = [threading.Thread(target=side.tokens, args=(texts,)) for side in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(state.vocabulary.terms) == len(set(state.vocabulary.terms)) == 3097
    assert spelled(state, state.docs.tokens(texts)) == [text.split() for text in texts]
