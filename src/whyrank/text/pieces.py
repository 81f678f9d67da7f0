"""Texts in pieces that fit together again: words and the white space between them, spans and what lies around."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from whyrank.text.annotate import Annotation

_PIECES = re.compile(r"\s+|\S+")
_WORDS = re.compile(r"\S+")
_LETTER = re.compile(r"\w")

Reorder = Callable[[list[str]], Sequence[str]]


class Slot(NamedTuple):
    """Characters `start` to `end` of a text."""

    start: int
    end: int


class Word(NamedTuple):
    """A word between white space: the punctuation before it, its core, the punctuation after it."""

    before: str
    core: str
    after: str


def word_of(piece: str) -> Word:
    """Take a word apart; the core of pure punctuation is empty."""
    first, last = _LETTER.search(piece), _LETTER.search(piece[::-1])
    if first is None or last is None:
        return Word(piece, "", "")
    start, end = first.start(), len(piece) - last.start()
    return Word(piece[:start], piece[start:end], piece[end:])


def pieces(text: str) -> list[str]:
    """Words and runs of white space in turn; joined they give the text."""
    return _PIECES.findall(text)


def reorder_words(text: str, reorder: Reorder) -> str:
    """Put the words of a text in another order; the white space stays where it is."""
    found = pieces(text)
    places = [i for i, piece in enumerate(found) if not piece.isspace()]
    for place, word in zip(places, reorder([found[i] for i in places]), strict=True):
        found[place] = word
    return "".join(found)


def map_words(text: str, change: Callable[[str], str]) -> str:
    """Change every word; one that becomes empty goes with the white space after it (or before it at the end)."""
    kept: list[str] = []
    dropped = False
    for piece in pieces(text):
        if piece.isspace():
            kept += [] if dropped else [piece]
            continue
        word = change(piece)
        dropped = not word
        kept += [word] if word else []
    return "".join(kept).rstrip() if dropped else "".join(kept)


def reorder_slots(text: str, slots: Sequence[Slot], reorder: Reorder) -> str:
    """Put what stands in the slots in another order; everything else stays where it is."""
    return fill(text, slots, reorder([text[slot.start : slot.end] for slot in slots]))


def fill(text: str, slots: Iterable[Slot], contents: Iterable[str]) -> str:
    """Put new contents in the slots of a text."""
    parts, position = [], 0
    for slot, content in zip(slots, contents, strict=True):
        parts += [text[position : slot.start], content]
        position = slot.end
    return "".join([*parts, text[position:]])


def token_slots(annotation: Annotation) -> list[Slot]:
    """Where the tokens are."""
    return [Slot(start, end) for start, end in zip(annotation.starts, annotation.ends, strict=True)]


def sentence_slots(annotation: Annotation) -> list[Slot]:
    """The parser's sentences, cut at white space only: a word is never split."""
    text = annotation.text
    starts = [annotation.starts[sentence.start] for sentence in annotation.sentences if sentence.start < sentence.end]
    cuts = [start for start in starts if start == 0 or text[start - 1].isspace()]
    edges = [*([0] if not cuts or cuts[0] else []), *cuts, len(text)]
    return [slot for a, b in pairwise(edges) if (slot := _trimmed(text, a, b)).start < slot.end]


def word_slots(text: str) -> list[Slot]:
    """Where the words are: what stands between white space."""
    return [Slot(*found.span()) for found in _WORDS.finditer(text)]


def chunk_slots(annotation: Annotation) -> list[Slot]:
    """The noun chunks, extended to whole words; chunks that share a word are merged."""
    words = word_slots(annotation.text)
    starts, ends = [word.start for word in words], [word.end for word in words]
    found: list[Slot] = []
    for chunk in sorted(annotation.chunks):
        first = bisect_right(ends, annotation.starts[chunk.start])
        last = bisect_left(starts, annotation.ends[chunk.end - 1]) - 1
        if found and first <= last and starts[first] < found[-1].end:
            found[-1] = Slot(found[-1].start, max(found[-1].end, ends[last]))
        elif first <= last:  # else the chunk is white space
            found.append(Slot(starts[first], ends[last]))
    return found


def preposition_slots(annotation: Annotation) -> list[Slot]:
    """The words that are one preposition, apart from punctuation: `(in` is one, `out-of-date` is none."""
    words, tags = word_slots(annotation.text), dict[int, list[str]]()
    ends = [word.end for word in words]
    for token, tag in zip(token_slots(annotation), annotation.pos, strict=True):
        if tag != "PUNCT" and not annotation.text[token.start : token.end].isspace():
            word = bisect_right(ends, token.start)
            tags.setdefault(word, []).append(tag if token.end <= ends[word] else "several words")
    return [words[i] for i, found in tags.items() if found == ["ADP"]]


def _trimmed(text: str, start: int, end: int) -> Slot:
    """A slot without white space at its ends."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return Slot(start, end)
