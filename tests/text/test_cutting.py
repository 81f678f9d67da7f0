"""Texts cut to a number of tokens, beside a linear search for the longest beginning that fits."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from whyrank.text import Analyzer, analyzers, cut_texts
from whyrank.text import analyzer as cutting

WORDS = ["The", "cat's", "U.S.", "e-mail", "a", "naïve", "3.14", "文字", "…", "?!", "x_y", "played", "aaa", "zebra"]
BLANKS = [" ", "  ", "\n", "\t ", "\u00a0", "\u2003", "\r\n\r\n"]
CHAIN = "chain(tokens=plain,stop=lucene,stem=porter,max_length=5)"

spaced = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(BLANKS)), max_size=30)
texts_of_words = spaced.map(lambda parts: "".join(word + blank for word, blank in parts))
any_text = st.text(st.sampled_from("ab 文.'\n\u0301\u202f😀"), max_size=40)


@pytest.fixture(scope="module")
def wordpiece(tmp_path_factory) -> str:
    """The call string of a small tokenizer made here."""
    vocabulary = [
        "[UNK]",
        "play",
        "##ed",
        "the",
        "a",
        "##a",
        "cat",
        "'",
        "s",
        ".",
        "-",
        "e",
        "mail",
        "3",
        "14",
        "?",
        "!",
    ]
    made = Tokenizer(models.WordPiece({token: i for i, token in enumerate(vocabulary)}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    file = tmp_path_factory.mktemp("tokens") / "tokenizer.json"
    made.save(str(file))
    return f"wordpiece:{file}"


def size(analyzer, text):
    return len(analyzer.terms(text))


def longest_beginning(analyzer, text, most):
    """The oracle: every end of a word is tried, in order."""
    if size(analyzer, text) <= most:
        return text
    ends = [0, *(word.end() for word in re.finditer(r"\S+", text))]
    return max((text[:end] for end in ends if size(analyzer, text[:end]) <= most), key=len)


@pytest.mark.parametrize("name", ["whitespace", "lucene", CHAIN, "wordpiece"])
@given(texts=st.lists(texts_of_words, max_size=4), most=st.integers(1, 40))
def test_the_longest_beginning_between_words_that_fits(name, texts, most, wordpiece):
    analyzer = analyzers.create(wordpiece if name == "wordpiece" else name)
    assert cut_texts(analyzer, texts, most) == [longest_beginning(analyzer, text, most) for text in texts]


@pytest.mark.parametrize("name", ["lucene", "whitespace", CHAIN, "wordpiece"])
@given(texts=st.lists(any_text, max_size=4), most=st.integers(1, 12), long=st.sampled_from([0, 2, 1000]))
def test_never_more_tokens_and_always_a_beginning(name, texts, most, long, wordpiece):
    analyzer = analyzers.create(wordpiece if name == "wordpiece" else name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "LONG_WORD", long)
        cut = cut_texts(analyzer, texts, most)
    for text, kept in zip(texts, cut, strict=True):
        assert text.startswith(kept)
        assert size(analyzer, kept) <= most
        assert kept == text or size(analyzer, text) > most
        assert kept == text or kept == kept.rstrip()
    assert cut_texts(analyzer, cut, most) == cut


def characters() -> Analyzer:
    """An analyzer of which each character is a token, blanks included."""
    return Analyzer.of("whitespace", list, digests=["characters"])


@given(text=st.text(st.sampled_from("ab "), max_size=30), most=st.integers(1, 30))
def test_blanks_that_are_tokens_count(text, most):
    analyzer = characters()
    assert cut_texts(analyzer, [text], most) == [longest_beginning(analyzer, text, most)]


@given(text=st.text(st.sampled_from("ab "), max_size=40), most=st.integers(1, 40))
def test_a_long_word_is_cut_inside(text, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "LONG_WORD", 0)
        assert cut_texts(characters(), [text], most) == [text if len(text) <= most else text[:most].rstrip()]


@pytest.mark.parametrize("unit", ["a", "文字", "http://x.y/abc-def?"])
def test_two_megabytes_without_a_blank(unit):
    analyzer, text = analyzers.create("lucene"), unit * (2_000_000 // len(unit.encode()))
    start = time.perf_counter()
    [cut] = cut_texts(analyzer, [text], 512)
    assert time.perf_counter() - start < 30  # a search that goes on by characters would take hours
    assert size(analyzer, cut) == 512
    assert size(analyzer, text[: len(cut) + len(unit) * 300]) > 512
