"""Long texts in pieces: a parser's memory grows with the text, and its tokeniser's time with the longest word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

from whyrank.text.annotation import Annotation, Missing, Span

PIECE = 100_000
LONGEST_WORD = 1_000
_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD}}}(?=\S)")


def pieces(text: str, *, cut_words: bool = True) -> Iterator[str]:
    """Cut a text after white space, or anywhere where there is none, into pieces of up to `PIECE` characters.

    With `cut_words`, what has no white space for `LONGEST_WORD` characters is cut there: splitting punctuation
    off a word takes time that grows with the square of its length.
    """
    start = 0
    while start < len(text):
        end = _cut(text, start, cut_words)
        yield text[start:end]
        start = end


def joined(text: str, parts: Sequence[Annotation]) -> Annotation:
    """The annotation of a text from those of its pieces, which follow one another without a gap."""
    if len(parts) == 1:
        return parts[0]
    offsets = list(accumulate((len(part.text) for part in parts), initial=0))
    counts = list(accumulate(map(len, parts), initial=0))
    return Annotation(
        text,
        tuple(at + start for at, part in zip(offsets, parts, strict=False) for start in part.starts),
        tuple(at + end for at, part in zip(offsets, parts, strict=False) for end in part.ends),
        _chained([part.lemmas for part in parts]),
        _chained([part.pos for part in parts]),
        _chained([part.stops for part in parts]),
        _shifted(counts, [part.sentences for part in parts]),
        _shifted(counts, [part.chunks for part in parts]),
        _shifted(counts, [part.entities for part in parts]),
    )


def _cut(text: str, start: int, cut_words: bool) -> int:
    end = start + PIECE
    if cut_words and (found := _LONG_WORD.search(text, start, end)):
        return found.end()
    if end >= len(text):
        return len(text)
    blanks = (i + 1 for i in range(end - 1, start, -1) if text[i].isspace())
    return next(blanks, end)


def _chained(parts: Sequence[Sequence[Any]]) -> Sequence[Any]:
    if missing := [part for part in parts if isinstance(part, Missing)]:
        return missing[0]
    return tuple(chain.from_iterable(parts))


def _shifted(counts: Sequence[int], parts: Sequence[Sequence[Span]]) -> Sequence[Span]:
    if missing := [part for part in parts if isinstance(part, Missing)]:
        return missing[0]
    pairs = zip(counts, parts, strict=False)
    return tuple(Span(at + start, at + end, label) for at, part in pairs for start, end, label in part)
