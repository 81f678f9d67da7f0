"""Words as Lucene's StandardTokenizer finds them: Unicode word segmentation (annex #29) plus emoji sequences.

Letters, digits and Katakana run together where the annex says so; a Han or Hiragana character is a token of
its own; runs of Thai, Lao, Khmer, Burmese and the like stay whole; an emoji sequence is a token; all else is
left out. Tokens are cut at 255 characters. The grammar runs on the classes of the characters, one letter each
(`unicode_classes`), so that one short pattern serves all scripts.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from whyrank.text.unicode_classes import CharacterClasses

MAX_TOKEN_LENGTH = 255

# Where a run of joiners starts is tried once, not at each of its characters: long lines of ______ stay cheap.
_WORD = "(?:(?<!_){joins}++)?{run}(?:{joins}+{run})*{joins}*"
_EXTEND = "[xkFTZMtes]*+"


class _Emoji(NamedTuple):
    past_word: str
    others: str


def _ascii_grammar() -> str:
    letters, digits = "[A-Za-z]+(?:[:.'][A-Za-z]+)*", "[0-9]+(?:[,;.'][0-9]+)*"
    return _WORD.format(joins="_", run=f"(?:{letters}|{digits})++")


def _class_grammar() -> str:
    emoji = _class_emoji()
    return "|".join([emoji.past_word, _class_word(), f"(?:[Ss]{_EXTEND})++", f"C{_EXTEND}", emoji.others])


def _class_word() -> str:
    extend = _EXTEND
    letter, hebrew, digit = f"[AHi]{extend}", f"H{extend}", f"N{extend}"
    quoted = f"""{hebrew}(?:'{extend}|"{extend}{hebrew})"""
    letters, digits = f"{letter}(?:[:.']{extend}{letter})*", f"{digit}(?:[,.']{extend}{digit})*"
    run = f"(?:(?:K{extend})++|(?:{quoted}|{digits}|{letters})++)"
    return _WORD.format(joins=f"(?:_{extend})", run=run)


def _class_emoji() -> _Emoji:
    # A joiner belongs to what is before it, unless a pictograph follows, which it joins.
    extend = "(?:[xkMtes]|Z++(?![Ei]))*"
    pictograph, letter, tone = f"[Ei]{extend}F?", f"i{extend}F?", f"M{extend}"
    sequence = f"(?:(?:(?<!Z)Z++)?{pictograph}|{tone})(?:t+e|(?:Z+{pictograph}|Z{tone})*)"
    # A pictograph that is a letter starts a word, unless the sequence goes on where a word would end.
    past_word = f"(?={letter}(?:Z+{letter}|Z{tone})*Z+E){sequence}"
    return _Emoji(past_word, "|".join([sequence, "#[xkMtesZ]*F?k[xkMtesZ]*", f"(?:R{_EXTEND}){{2}}"]))


_ascii = re.compile(_ascii_grammar())
_classes = CharacterClasses()


def unicode_words(text: str) -> list[str]:
    """The tokens of a text."""
    found = _ascii.findall(text) if text.isascii() else _wide(text)
    return found if max(map(len, found), default=0) <= MAX_TOKEN_LENGTH else _cut(text)


@cache
def _class_pattern() -> re.Pattern[str]:
    return re.compile(_class_grammar())


def _wide(text: str) -> list[str]:
    return [text[m.start() : m.end()] for m in _class_pattern().finditer(text.translate(_classes))]


def _cut(text: str) -> list[str]:
    """Tokens of a text with very long ones: as Lucene, look at 255 characters from each token's start."""
    classes, tokens, at = text.translate(_classes), [], 0
    while at < len(text):
        found = _class_pattern().match(classes[at : at + MAX_TOKEN_LENGTH])
        if found:
            tokens.append(text[at : at + found.end()])
        at += found.end() if found else 1
    return tokens
