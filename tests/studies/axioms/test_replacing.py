"""One word of a text replaced, such that the analyzer sees one token replaced and nothing else."""

from __future__ import annotations

import re

import pytest

from whyrank.studies.axioms.bounds import TRIES, Replacer, spellings
from whyrank.text import Analyzer, analyzers


def glued(calls):
    """An analyzer that glues `berlin` to the word after it, so that it stands alone at the end only."""

    def tokens(text):
        calls.append(text)
        return re.findall(r"berlin \S+|\S+", text)

    return Analyzer.of(f"glued{len(calls)}-{id(calls)}", tokens)


@pytest.mark.parametrize("n", [TRIES, 40 * TRIES])
def test_so_many_words_are_tried(n):
    calls = []
    analyzer = glued(calls)
    text = " ".join(f"w{i}" for i in range(n))
    replacer = Replacer(analyzer, frozenset({analyzer.vocabulary.id("berlin")}))
    found = replacer.replaced(text, analyzer.docs([text]).ids, {analyzer.vocabulary.id("berlin"): "berlin"})
    tried = [call for call in calls if "berlin" in call]
    assert found == ((text.rpartition(" ")[0] + " berlin",) if n == TRIES else None)
    assert len(tried) <= TRIES
    assert n == TRIES or len(tried) == TRIES


def test_spellings_are_those_of_the_query():
    english = analyzers.create("lucene")
    found = spellings(english, "The walls' (Wall) of well-known cities, cities!")
    assert {english.vocabulary.terms[i]: word for i, word in found.items()} == {"wall": "walls", "citi": "cities"}


def replaced(analyzer, text, *words, kept=(), seed=0):
    """The text with one word replaced by each of `words`; the terms `kept` stay."""
    vocabulary = analyzer.vocabulary
    replacer = Replacer(analyzer, frozenset(map(vocabulary.id, kept)), seed)
    return replacer.replaced(text, analyzer.docs([text]).ids, {vocabulary.id(word): word for word in words})


def test_what_is_kept_is_not_replaced():
    plain = analyzers.create("whitespace")
    assert replaced(plain, "a b", "c", "d", kept=["b"]) == ("c b", "d b")
    assert replaced(plain, "a b", "c", "d", kept=["a", "b"]) is None


def test_words_that_are_kept_do_not_count_as_tried():
    text = "b " * 10 * TRIES + "a"
    assert replaced(analyzers.create("whitespace"), text, "c", kept=["b"]) == (text[:-1] + "c",)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_kept_in_its_context_is_not_replaced(seed):
    """An analyzer that reads `x` as `wall`, unless it stands alone."""

    def tokens(text):
        return ["wall" if word == "x" != text else word for word in text.split()]

    assert replaced(Analyzer.of("context", tokens), "x y", "berlin", kept=["wall"], seed=seed) == ("x berlin",)


def test_punctuation_stays_unless_it_is_part_of_the_token():
    """Lucene does not see the comma; between white space it belongs to the word."""
    assert replaced(analyzers.create("lucene"), "(cats), and", "wall") == ("(wall), and",)
    assert replaced(analyzers.create("whitespace"), "(cats), 'and'", "wall", kept=["'and'"]) == ("wall 'and'",)


@pytest.mark.parametrize("text", ["", " \n ", "?? -- !", "well-known state-of-the-art", "the of and"])
def test_texts_without_such_a_word(text):
    assert replaced(analyzers.create("lucene"), text, "wall") is None


def test_half_a_surrogate_pair_is_a_text_too():
    assert replaced(analyzers.create("whitespace"), "\ud800 x", "wall") == ("\ud800 wall",)
