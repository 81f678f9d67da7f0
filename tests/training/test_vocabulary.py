"""A tokenizer from a collection's texts."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training_models import toy_texts
from whyrank.core import WhyrankError
from whyrank.networks import ModelTokenizer
from whyrank.training.sources import SPECIAL, wordpiece_tokenizer

TEXTS = [*toy_texts(60)[1], "Ünïcode, naïve café: “quotes” 東京 😀", "a" * 300, "half a pair \ud800 here", ""]
AGAIN = """
import hashlib, json, sys
from whyrank.training.sources import wordpiece_tokenizer
print(hashlib.sha256(wordpiece_tokenizer(json.load(sys.stdin), 300)).hexdigest())
"""


def tokenizer(folder: Path, texts=TEXTS, size=300) -> ModelTokenizer:
    (folder / "tokenizer.json").write_bytes(wordpiece_tokenizer(texts, size))
    return ModelTokenizer(folder)


def test_the_tokenizer_knows_special_tokens_and_frequent_words(tmp_path):
    made = tokenizer(tmp_path)
    assert made.special == {"cls": 2, "sep": 3, "pad": 0, "mask": 4}
    assert made.numbers(SPECIAL) == list(range(len(SPECIAL)))
    assert made.spell(made.ids(["Balan CEMER!"], 10)[0]) == ["balan", "cemer", "[UNK]"]
    assert len(made) <= 300


def test_rare_words_fall_into_tokens_and_accents_are_stripped(tmp_path):
    made = tokenizer(tmp_path)
    spelled = made.spell(made.ids(["café balancemer 東"], 30)[0])
    assert "".join(spelled).replace("##", "") == "cafebalancemer東"
    assert "[UNK]" not in spelled
    assert len(spelled) > 3


def test_the_same_texts_give_the_same_bytes_in_every_process():
    here = hashlib.sha256(wordpiece_tokenizer(TEXTS, 300)).hexdigest()
    command = [sys.executable, "-c", AGAIN]
    found = subprocess.run(command, input=json.dumps(TEXTS), capture_output=True, text=True, check=True)
    assert found.stdout.strip() == here


LETTERS = st.text("abcxyz", min_size=1, max_size=100)
LONG = st.text("abcxyz", min_size=1, max_size=3).map(lambda part: (part * 101)[:101] + part)


@settings(max_examples=30)
@given(st.lists(st.tuples(LETTERS, st.booleans(), LONG, st.sampled_from(" .,!\t")), max_size=12))
def test_words_that_are_too_long_leave_no_trace(parts):
    """As if they had never been there, whatever stands next to them."""
    given_ = "".join(f"{word}{mark}{long + mark if there else ''}" for word, there, long, mark in parts)
    expected = "".join(f"{word}{mark}{mark if there else ''}" for word, there, _, mark in parts)
    assert wordpiece_tokenizer([given_, "known words"], 200) == wordpiece_tokenizer([expected, "known words"], 200)


def test_a_word_of_half_a_megabyte_is_no_matter():
    """Also one that is so long only without the control characters that the tokenizer drops."""
    huge = "".join(np.random.default_rng(0).choice(list("abcdefghij"), 500_000))
    for word in (huge, "\x0b".join(huge[:50_000])):
        assert wordpiece_tokenizer([*TEXTS, word], 300) == wordpiece_tokenizer(TEXTS, 300)


@pytest.mark.parametrize(
    ("texts", "size", "what"), [([], 300, "no texts"), (["", " "], 300, "no texts"), (TEXTS, 5, "size")]
)
def test_what_cannot_be_is_one_clear_line(texts, size, what):
    with pytest.raises(WhyrankError, match=what):
        wordpiece_tokenizer(texts, size)
