"""Lucene's words, against hand-written cases, uniseg (annex #29) and Lucene's grammar read literally."""

from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uniseg.emoji import extended_pictographic
from uniseg.linebreak import line_break
from uniseg.wordbreak import WordBreak, word_break, words

from whyrank.text.unicode_words import MAX_TOKEN_LENGTH, CharacterClasses, unicode_words

CASES = {
    "U.S.A. today": ["U.S.A", "today"],
    "3,000.5 and 1.": ["3,000.5", "and", "1"],
    "it's can't O’Neil's 'tis dogs'": ["it's", "can't", "O’Neil's", "tis", "dogs"],
    "foo_bar __init__ ___ a__1": ["foo_bar", "__init__", "a__1"],
    "example.com a1.b a1.2 1a.b": ["example.com", "a1", "b", "a1.2", "1a.b"],
    "well-known AT&T C++ foo:bar 12:30": ["well", "known", "AT", "T", "C", "foo:bar", "12", "30"],
    "me@example.com": ["me", "example.com"],
    "co\u00adop e\u0301te\u0301": ["co\u00adop", "e\u0301te\u0301"],
    "中文": ["中", "文"],
    "カタカナ": ["カタカナ"],
    "ひらがな": ["ひ", "ら", "が", "な"],
    "한국어 안녕하세요": ["한국어", "안녕하세요"],
    "仮名遣い カタカナ": ["仮", "名", "遣", "い", "カタカナ"],
    "我是中国人。 １２３４ Ｔｅｓｔｓ": ["我", "是", "中", "国", "人", "１２３４", "Ｔｅｓｔｓ"],
    "\u3055\u3099": ["\u3055\u3099"],
    "カタa カ_a": ["カタ", "a", "カ_a"],
    "การที่ได้ต้องแสดงว่างานดี": ["การที่ได้ต้องแสดงว่างานดี"],
    "ประเทศไทย 12ไทย": ["ประเทศไทย", "12", "ไทย"],
    "צה\"ל צ'ק ג'": ['צה"ל', "צ'ק", "ג'"],
    "💩💩 poo💩poo": ["💩", "💩", "poo", "💩", "poo"],
    "👩\u200d❤\ufe0f\u200d👩 👨🏼\u200d⚕\ufe0f": ["👩\u200d❤\ufe0f\u200d👩", "👨🏼\u200d⚕\ufe0f"],
    "👍\ufe0f\u200d🏽 ℹ\u200d👍": ["👍\ufe0f\u200d🏽", "ℹ\u200d👍"],
    "3\ufe0f\u20e3 #\ufe0f\u20e3 *\u20e3 # *": ["3\ufe0f\u20e3", "#\ufe0f\u20e3", "*\u20e3"],
    "🇺🇸🇩🇪🇫": ["🇺🇸", "🇩🇪"],
    "🏴\U000e0067\U000e0062\U000e007f!": ["🏴\U000e0067\U000e0062\U000e007f"],
    "ℹ\ufe0f ℹab": ["ℹ\ufe0f", "ℹab"],
    "": [],
    " \t\n.,;-_'\"": [],
}


@pytest.mark.parametrize("text", CASES)
def test_hand_written_cases(text):
    assert unicode_words(text) == CASES[text]


# Where uniseg cannot judge, and why. Lucene reads Unicode 12.1 and adds the emoji sequences of standard #51:
# - joiners, presentation selectors, tags, skin tones, regional indicators and keycaps belong to those sequences;
# - scripts without blanks (Line_Break = SA) stay whole in Lucene, and are cut into characters by the annex;
# - after a Hebrew letter, Lucene lets digits follow a quote, and chains no double quotes;
# - Arabic and Kaithi number signs have become numeric since, vertical commas have stopped joining digits.
NEWER = {*range(0x600, 0x606), 0x6DD, 0x890, 0x891, 0x8E2, 0xFE10, 0xFE14, 0x110BD, 0x110CD}
EMOJI_PARTS = {0x200D, 0xFE0E, 0xFE0F, 0x20E3, *range(0x1F1E6, 0x1F200), *range(0x1F3FB, 0x1F400)}
LETTERS = {WordBreak.ALETTER, WordBreak.HEBREW_LETTER, WordBreak.NUMERIC, WordBreak.KATAKANA}
SINGLE = ("CJK UNIFIED", "CJK COMPATIBILITY IDEO", "CJK RADICAL", "KANGXI", "HANGZHOU", "HIRAGANA", "HENTAIGANA")
OTHER_NAMES = "\u3007\U0001f200"  # the ideographic zero and the square Hiragana


def judged_by_uniseg(char):
    code, hebrew = ord(char), word_break(char) == WordBreak.HEBREW_LETTER
    other_version = unicodedata.category(char) in ("Cn", "Cs", "Co") or code in NEWER
    return not (other_version or hebrew or code in EMOJI_PARTS or code >= 0xE0000 or line_break(char).name == "SA")


def is_token(segment):
    first = segment[0]
    single = first in OTHER_NAMES or unicodedata.name(first, "").startswith(SINGLE)
    return single or extended_pictographic(first) or any(word_break(c) in LETTERS for c in segment)


def by_uniseg(text):
    return [segment for segment in words(text) if is_token(segment)]


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters().filter(judged_by_uniseg), max_size=30))
def test_agrees_with_uniseg_on_any_characters(text):
    assert unicode_words(text) == by_uniseg(text)


def test_classes_agree_with_the_properties_that_uniseg_has():
    classes, wrong = CharacterClasses(), []
    allowed = {
        "ALETTER": "Ai", "HEBREW_LETTER": "H", "NUMERIC": "N", "KATAKANA": "K", "EXTEND": "xkFTMtes", "FORMAT": "x",
        "ZWJ": "Z", "MIDLETTER": ":", "MIDNUM": ",", "MIDNUMLET": ".", "SINGLE_QUOTE": "'", "DOUBLE_QUOTE": '"',
        "EXTENDNUMLET": "_", "REGIONAL_INDICATOR": "R",
    }  # fmt: skip
    for code in range(0x32400):
        char = chr(code)
        if unicodedata.category(char) in ("Cn", "Cs", "Co") or code in NEWER:
            continue
        found, south_east, picture = classes[code], line_break(char).name == "SA", extended_pictographic(char)
        if found not in allowed.get(word_break(char).name, " CSE#"):
            wrong.append((hex(code), found))
        if (found in "Ss") != south_east or (found in "Ei") != picture:
            wrong.append((hex(code), found))
    assert not wrong


# Lucene's grammar (StandardTokenizerImpl.jflex), read literally on one letter per character. Membership is asked
# of every substring and the longest wins, so that nothing hangs on how a backtracking engine orders its choices.
def literal_grammar():
    x = "[xkFTZMtes]*"
    sans = "[xkZMtes]*"
    letter, hebrew, digit, kana, join = f"[AHi]{x}", f"H{x}", f"N{x}", f"K{x}", f"_{x}"
    mid_letter, mid_digit = f"[:.']{x}", f"[,.']{x}"
    piece = (
        f"(?:{kana}(?:(?:{join})*{kana})*|(?:{hebrew}(?:'{x}|\"{x}{hebrew})"
        f"|{digit}(?:(?:(?:{join})*|{mid_digit}){digit})*|{letter}(?:(?:(?:{join})*|{mid_letter}){letter})*)+)"
    )
    word = f"(?:{join})*{piece}(?:(?:{join})+{piece})*(?:{join})*"
    element = f"(?:Z*[Ei]{sans}F?|M{sans})"
    emoji = f"{element}(?:(?:Z{element})*|t+e)"
    rules = [word, emoji, f"[N#]{sans}F?k{sans}", f"(?:R{x}){{2}}", f"(?:[Ss]{x})+", f"C{x}"]
    return re.compile("|".join(f"(?:{rule})" for rule in rules))


LITERAL = literal_grammar()
SAMPLES = {
    "A": "a", "H": "א", "i": "ℹ", "N": "1", "K": "カ", "C": "中", "S": "ก", "s": "\u0e31", "_": "_", ":": "·",
    ",": ";", ".": "’", "'": "'", '"': '"', "x": "\u0301", "k": "\u20e3", "F": "\ufe0f", "T": "\ufe0e", "Z": "\u200d",
    "M": "🏽", "E": "👍", "R": "🇺", "#": "#", "t": "\U000e0067", "e": "\U000e007f", " ": " ",
}  # fmt: skip


def longest_matches(classes):
    at, found = 0, []
    while at < len(classes):
        ends = (end for end in range(len(classes), at, -1) if LITERAL.fullmatch(classes, at, end))
        end = next(ends, None)
        if end is not None:
            found.append((at, end))
        at = end or at + 1
    return found


@settings(max_examples=1000, deadline=None)
@given(st.text("".join(SAMPLES), max_size=12) | st.text("iEZFMxteAkH'\".:", max_size=12))
def test_agrees_with_the_literal_grammar(classes):
    text = "".join(SAMPLES[name] for name in classes)
    assert unicode_words(text) == [text[start:end] for start, end in longest_matches(classes)]


def test_tokens_are_cut_at_255_characters():
    assert [len(token) for token in unicode_words("x" * 600 + " é")] == [255, 255, 90, 1]
    assert [len(token) for token in unicode_words("x" * 255)] == [MAX_TOKEN_LENGTH]
    assert unicode_words("a" * 254 + ".bc") == ["a" * 254, "bc"]
    assert unicode_words("_" * 300 + "a") == ["_" * 254 + "a"]


def test_long_lines_of_joiners_take_linear_time():
    start = time.perf_counter()
    assert unicode_words("_" * 200_000 + " x") == unicode_words("\u200d" * 200_000 + " x") == ["x"]
    assert unicode_words("👍" + "\u200d" * 200_000 + " x")[-1] == "x"
    assert time.perf_counter() - start < 5  # well under a second; quadratic time would be ten seconds and more
