"""Words as Lucene's StandardTokenizer finds them: Unicode word segmentation (annex #29) plus emoji sequences.

Letters, digits and Katakana run together where the annex says so; a Han or Hiragana character is a token of
its own; runs of Thai, Lao, Khmer, Burmese and the like stay whole; an emoji sequence is a token; all else is
left out. Tokens are cut at 255 characters. The grammar runs on the classes of the characters, one letter each, so
that one short pattern serves all scripts.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cache

# The class of each character in the word grammar, as one letter.
#
# Most classes follow from the general category in `unicodedata`; the ranges below are where the properties
# Word_Break, Script, Line_Break and Extended_Pictographic of the Unicode Character Database say more
# (https://www.unicode.org/ucd/, annexes #14, #24 and #29, standard #51).

OTHER = " "

_RANGES = {
    "H": "5D0-5EA 5EF-5F2 FB1D FB1F-FB28 FB2A-FB36 FB38-FB3C FB3E FB40-FB41 FB43-FB44 FB46-FB4F",  # Hebrew letters
    # Katakana
    "K": (
        "3031-3035 309B-309C 30A0-30FA 30FC-30FF 31F0-31FF 32D0-32FE 3300-3357 FF66-FF9D 1AFF0-1AFF3 "
        "1AFF5-1AFFB 1AFFD-1AFFE 1B000 1B120-1B122 1B155 1B164-1B167"
    ),
    # Han and Hiragana: one token per character
    "C": (
        "2E80-2E99 2E9B-2EF3 2F00-2FD5 3007 3021-3029 3038-303A 3041-3096 309D-309F 3400-4DBF "
        "4E00-9FFF F900-FA6D FA70-FAD9 1B001-1B11F 1B132 1B150-1B152 1F200 20000-2A6DF 2A700-2EBE0 "
        "2EBF0-2EE5D 2F800-2FA1D 30000-323AF"
    ),
    # Scripts without blanks between words (Line_Break = SA); the marks among them are "s"
    "S": (
        "E01-E3A E40-E4E E81-E82 E84 E86-E8A E8C-EA3 EA5 EA7-EBD EC0-EC4 EC6 EC8-ECE EDC-EDF "
        "1000-103F 1050-108F 109A-109F 1780-17D3 17D7 17DC-17DD 1950-196D 1970-1974 1980-19AB "
        "19B0-19C9 19DE-19DF 1A20-1A5E 1A60-1A7C 1AA0-1AAD A9E0-A9EF A9FA-A9FE AA60-AAC2 AADB-AADF "
        "11700-1171A 1171D-1172B 1173A-1173B 1173F-11746"
    ),
    OTHER: "200B 3006 17000-18CFF 18D00-18D1E 1B170-1B2FB",  # zero width space, ideographs of no other class
    "i": "2139 24C2 1F170-1F171 1F17E-1F17F",  # pictographs that are letters as well
    # other pictographs (Extended_Pictographic)
    "E": (
        "A9 AE 203C 2049 2122 2194-2199 21A9-21AA 231A-231B 2328 2388 23CF 23E9-23F3 23F8-23FA "
        "25AA-25AB 25B6 25C0 25FB-25FE 2600-2605 2607-2612 2614-2685 2690-2705 2708-2712 2714 2716 "
        "271D 2721 2728 2733-2734 2744 2747 274C 274E 2753-2755 2757 2763-2767 2795-2797 27A1 27B0 "
        "27BF 2934-2935 2B05-2B07 2B1B-2B1C 2B50 2B55 3030 303D 3297 3299 1F000-1F0FF 1F10D-1F10F "
        "1F12F 1F16C-1F16F 1F18E 1F191-1F19A 1F1AD-1F1E5 1F201-1F20F 1F21A 1F22F 1F232-1F23A "
        "1F23C-1F23F 1F249-1F3FA 1F400-1F53D 1F546-1F64F 1F680-1F6FF 1F774-1F77F 1F7D5-1F7FF "
        "1F80C-1F80F 1F848-1F84F 1F85A-1F85F 1F888-1F88F 1F8AE-1F8FF 1F90C-1F93A 1F93C-1F945 "
        "1F947-1FAFF 1FC00-1FFFD"
    ),
    "R": "1F1E6-1F1FF",  # regional indicators, two of which make a flag
    "M": "1F3FB-1F3FF",  # skin tones
    "#": "23 2A",  # may carry a keycap
    "k": "20E3",  # the keycap
    "F": "FE0F",  # emoji presentation
    "T": "FE0E",  # text presentation
    "Z": "200D",  # zero width joiner
    "t": "E0020-E007E",  # tags of a flag
    "e": "E007F",  # end of such tags
    "x": "200C FF9E-FF9F",  # extend, beside all marks and format characters
    ":": "3A B7 387 55F 5F4 2027 FE13 FE55 FF1A",  # between letters
    ",": "2C 3B 37E 589 60C-60D 66C 7F8 2044 FE10 FE14 FE50 FE54 FF0C FF1B",  # between digits
    ".": "2E 2018-2019 2024 FE52 FF07 FF0E",  # between letters or digits
    "'": "27",  # single quote: between letters or digits, and after a Hebrew letter
    '"': "22",  # double quote: between Hebrew letters
    "N": "66B 19DA",  # numeric, beside all decimal digits
    "_": "202F",  # joins letters and digits, beside all connector punctuation
    # letters, beside those of the general category
    "A": (
        "2C2-2C5 2D2-2D7 2DE-2DF 2E5-2EB 2ED 2EF-2FF 55A-55C 55E 58A 5F3 70F 24B6-24C1 24C3-24E9 "
        "A708-A716 A720-A721 A789-A78A AB5B 1F130-1F149 1F150-1F169 1F172-1F17D 1F180-1F189"
    ),
}
_CATEGORIES = {"Nd": "N", "Nl": "A", "Cf": "x", "Pc": "_", "L": "A", "M": "x"}


class CharacterClasses(dict[int, str]):
    """Code point -> class, for `str.translate`; each character is looked up once."""

    def __init__(self) -> None:
        """Sort the ranges; no character is looked up yet."""
        super().__init__()
        ends = [(name, part.split("-")) for name, parts in _RANGES.items() for part in parts.split()]
        self._ranges = sorted((int(pair[0], 16), int(pair[-1], 16), name) for name, pair in ends)

    def __missing__(self, code: int) -> str:
        """Look a character up and remember its class."""
        category = unicodedata.category(chr(code))
        found = _CATEGORIES.get(category) or _CATEGORIES.get(category[0], OTHER)
        at = bisect_right(self._ranges, (code, 0x110000, "")) - 1
        if at >= 0 and code <= self._ranges[at][1]:
            name = self._ranges[at][2]
            found = "s" if name == "S" and category[0] == "M" else name
        self[code] = found
        return found


MAX_TOKEN_LENGTH = 255

# Where a run of joiners starts is tried once, not at each of its characters: long lines of ______ stay cheap.
_WORD = "(?:(?<!_){joins}++)?{run}(?:{joins}+{run})*{joins}*"
_LETTERS, _DIGITS = "[A-Za-z]+(?:[:.'][A-Za-z]+)*", "[0-9]+(?:[,;.'][0-9]+)*"
_ascii = re.compile(_WORD.format(joins="_", run=f"(?:{_LETTERS}|{_DIGITS})++"))
_classes = CharacterClasses()


@cache
def _grammar() -> re.Pattern[str]:
    """The grammar over classes of characters: words, runs of scripts without blanks, ideographs, emoji sequences."""
    extend = "[xkFTZMtes]*+"
    letter, hebrew, digit = f"[AHi]{extend}", f"H{extend}", f"N{extend}"
    quoted = f"""{hebrew}(?:'{extend}|"{extend}{hebrew})"""
    letters, digits = f"{letter}(?:[:.']{extend}{letter})*", f"{digit}(?:[,.']{extend}{digit})*"
    run = f"(?:(?:K{extend})++|(?:{quoted}|{digits}|{letters})++)"
    word = _WORD.format(joins=f"(?:_{extend})", run=run)
    # In an emoji sequence a joiner belongs to what is before it, unless a pictograph follows, which it joins.
    within = "(?:[xkMtes]|Z++(?![Ei]))*"
    pictograph, lettered, tone = f"[Ei]{within}F?", f"i{within}F?", f"M{within}"
    emoji = f"(?:(?:(?<!Z)Z++)?{pictograph}|{tone})(?:t+e|(?:Z+{pictograph}|Z{tone})*)"
    # A pictograph that is a letter starts a word, unless the sequence goes on where a word would end.
    past_word = f"(?={lettered}(?:Z+{lettered}|Z{tone})*Z+E){emoji}"
    keycap, flag = "#[xkMtesZ]*F?k[xkMtesZ]*", f"(?:R{extend}){{2}}"
    return re.compile("|".join([past_word, word, f"(?:[Ss]{extend})++", f"C{extend}", emoji, keycap, flag]))


def unicode_words(text: str) -> list[str]:
    """The tokens of a text."""
    found = _ascii.findall(text) if text.isascii() else _wide(text)
    return found if max(map(len, found), default=0) <= MAX_TOKEN_LENGTH else _cut(text)


def _wide(text: str) -> list[str]:
    return [text[m.start() : m.end()] for m in _grammar().finditer(text.translate(_classes))]


def _cut(text: str) -> list[str]:
    """Tokens of a text with very long ones: as Lucene, look at 255 characters from each token's start."""
    classes, tokens, at = text.translate(_classes), [], 0
    while at < len(text):
        found = _grammar().match(classes[at : at + MAX_TOKEN_LENGTH])
        if found:
            tokens.append(text[at : at + found.end()])
        at += found.end() if found else 1
    return tokens
