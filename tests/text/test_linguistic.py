"""`words` and `lemmas` against spaCy itself."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import BadInput, MissingExtra
from whyrank.testing import AnalyzerContract
from whyrank.text import analyzers
from whyrank.text.annotation.terms import CONTRACTIONS, FUNCTION_WORDS

spacy = pytest.importorskip("spacy")
BLANK = spacy.blank("en")
TEXT = "They'll say the naïve U.S. cats weren't running; it’s John's e-mail of 2019, isn't it?"


def test_words_of_a_sentence():
    expected = ["say", "naïve", "u.s.", "cats", "running", "john", "e", "mail", "2019"]
    analyzer = analyzers.create("words")
    assert analyzer.terms(TEXT) == analyzer.query_terms(TEXT) == expected


def test_lemmas_of_a_sentence():
    assert analyzers.create("lemmas").terms(TEXT) == [
        "say",
        "naïve",
        "u.s.",
        "cat",
        "run",
        "john",
        "e",
        "mail",
        "2019",
    ]


@settings(max_examples=50)
@given(
    st.lists(st.sampled_from(["The", "don't", "we’ll", "U.K.", "a-b", "…", "ΑΣ", "x1", "\ud800", " "])).map(" ".join)
)
def test_words_are_spacys_tokens(text):
    tokens = [token.text.lower() for token in BLANK(text.replace("\ud800", "?"))]
    kept = [t for t in tokens if t not in FUNCTION_WORDS | CONTRACTIONS and any(c.isalnum() for c in t)]
    assert analyzers.create("words").terms(text) == [t.replace("ας", "ασ") for t in kept]


@pytest.mark.parametrize("name", ["words", "lemmas"])
def test_a_list_of_ones_own(tmp_path, name):
    path = tmp_path / "stop.txt"
    path.write_text("Cat\nrunning\n", encoding="utf-8")
    analyzer = analyzers.create(f"{name}(stopwords={str(path)!r})")
    assert analyzer.terms("The cat was running, wasn't it") == {
        "words": ["the", "was", "was", "it"],
        "lemmas": ["the", "be", "be", "it"],
    }[name]  # fmt: skip
    assert pickle.loads(pickle.dumps(analyzer)) == analyzer != analyzers.create(name)
    path.write_text("dog\n", encoding="utf-8")
    assert analyzers.create(analyzer.id).identity != analyzer.identity


@pytest.mark.parametrize("name", ["words", "lemmas"])
def test_the_list_of_indri_is_taken_where_a_variable_names_it(name, tmp_path, monkeypatch):
    path, own = tmp_path / "indri.txt", analyzers.create(name)
    path.write_text("dog\n", encoding="utf-8")
    monkeypatch.setenv("WHYRANK_INDRI_STOPWORDS", str(path))
    named, given = analyzers.create(name), analyzers.create(f"{name}(stopwords={str(path)!r})")
    assert named == given != own
    assert named.terms("the dog can't sleep") == ["the", "ca" if name == "words" else "can", "sleep"]
    (tmp_path / "other.txt").write_text("sleep\n", encoding="utf-8")
    other = analyzers.create(f"{name}(stopwords={str(tmp_path / 'other.txt')!r})")
    assert "dog" in other.terms("the dog can't sleep")
    path.write_text("sleep\n", encoding="utf-8")
    assert analyzers.create(name).identity != named.identity


def test_a_list_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(BadInput, match="stop word list"):
        analyzers.create(f"words(stopwords={str(tmp_path / 'none')!r})")


def test_without_the_extra(monkeypatch):
    from whyrank.text.annotation import pipelines

    pipelines.find_pipeline.cache_clear()
    monkeypatch.setattr(pipelines, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"whyrank\[nlp\]"):
        analyzers.create("words")
    pipelines.find_pipeline.cache_clear()


class TestWords(AnalyzerContract):
    def make(self):
        return analyzers.create("words")


class TestLemmas(AnalyzerContract):
    def make(self):
        return analyzers.create("lemmas")
