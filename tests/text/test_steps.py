"""The steps, one by one, and stop word files."""

from __future__ import annotations

import string
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import BadInput, MissingExtra
from whyrank.text import steps
from whyrank.text.steps import LUCENE, read_stopwords


@settings(deadline=None)
@given(st.text())
def test_lower_is_str_lower_but_for_two_letters(token):
    plain = token.replace("İ", "i").replace("Σ", "σ")
    assert steps.lower(token) == plain.lower()


def test_lower_knows_no_neighbours():
    assert steps.lower("ΟΔΟΣ") == "οδοσ"  # Python gives a final ς
    assert steps.lower("İX") == "ix"  # Python gives i and a dot above


@pytest.mark.parametrize("mark", ["'", "’", "＇"])
def test_possessive(mark):
    assert steps.possessive(f"dog{mark}s") == "dog"
    assert steps.possessive(f"DOG{mark}S") == "DOG"
    assert steps.possessive(f"dogs{mark}") == f"dogs{mark}"
    assert steps.possessive(f"it{mark}sy") == f"it{mark}sy"


@settings(deadline=None)
@given(st.sampled_from(["", "s", "ss", "dogs", "x`s"]))
def test_possessive_leaves_other_tokens_alone(token):
    assert steps.possessive(token) == token


@settings(deadline=None)
@given(st.text("ab1٣", min_size=1), st.integers(0, 8), st.none() | st.integers(0, 5), st.integers(0, 4))
def test_limits_by_plain_counting(token, length, digits, repeat):
    run = best = 0
    for i, c in enumerate(token):
        run = run + 1 if i and token[i - 1] == c else 1
        best = max(best, run)
    too_long = length and len(token) > length
    too_numeric = digits is not None and sum(c in "1٣" for c in token) > digits
    dropped = bool(too_long or too_numeric or (repeat and best > repeat))
    assert (steps.limits(length, digits, repeat)(token) is None) == dropped


PORTER = {
    "caresses": "caress", "ponies": "poni", "ties": "ti", "feed": "feed", "agreed": "agre", "hopping": "hop",
    "sky": "sky", "happy": "happi", "enjoy": "enjoi", "relational": "relat", "conformably": "conform",
    "archaeology": "archaeolog", "geology": "geologi", "probate": "probat", "controll": "control", "is": "is",
    "dying": "dy", "news": "new",
}  # fmt: skip


@pytest.mark.parametrize("word", PORTER)
def test_porter_is_the_one_of_its_author(word):
    assert steps.porter(word) == PORTER[word]


def test_krovetz_gives_words():
    stem = steps.krovetz()
    assert [stem(word) for word in ["cities", "walked", "running", "xyzzy"]] == ["city", "walk", "running", "xyzzy"]


@settings(deadline=None)
@given(st.text())
def test_krovetz_survives_any_text(token):
    assert isinstance(steps.krovetz()(token), str)


def test_krovetz_leaves_the_shared_bytes_of_python_alone():
    stem = steps.krovetz()
    assert [stem(letter) for letter in string.ascii_letters] == list(string.ascii_letters.lower())
    assert [bytes([ord(letter)]).decode() for letter in string.ascii_letters] == list(string.ascii_letters)


@settings(deadline=None)
@given(st.sampled_from(["Cities", "WALKED", "X1", "It", "RunNING"]))
def test_krovetz_gives_lower_case(token):
    assert steps.krovetz()(token) == steps.krovetz()(token.lower())


def test_krovetz_says_which_extra_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "krovetzstemmer", None)
    with pytest.raises(MissingExtra, match=r"whyrank\[krovetz\]"):
        steps.krovetz()


def test_lucene_has_33_stop_words():
    assert len(LUCENE) == 33


WORDS = st.lists(st.text(st.characters(categories=["Ll", "Lu", "Lo", "Nd"]), min_size=1), min_size=1)


@settings(deadline=None)
@given(WORDS, st.sampled_from(["\n", "\r\n", "\n\n# no word, ever\n  \n"]), st.sampled_from(["", "\ufeff"]))
def test_stop_word_files_give_their_words(tmp_path_factory, words, between, mark):
    path = tmp_path_factory.mktemp("stop") / "words.txt"
    path.write_bytes((mark + between.join(words)).encode())
    assert read_stopwords(str(path)).words == set(words)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"the\n\xff\xfe\n", r"words\.txt:2: this is not UTF-8; save the file as UTF-8"),
        (b"the\n\nof course\n", r"words\.txt:3: more than one word in a line: 'of course'; write one word a line"),
        (b"\n# only a remark\n", r"words\.txt: there are no stop words in it"),
        (b"", r"words\.txt: there are no stop words in it"),
    ],
)
def test_bad_stop_word_files_name_file_and_line(tmp_path, content, problem):
    path = tmp_path / "words.txt"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=problem):
        read_stopwords(str(path))


@pytest.mark.parametrize("name", ["absent.txt", ".", "zero\0byte"])
def test_unreadable_stop_word_files_are_bad_input(tmp_path, name):
    with pytest.raises(BadInput, match="cannot read this stop word list"):
        read_stopwords(f"{tmp_path}/{name}")
