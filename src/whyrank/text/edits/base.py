"""Edits: one change to a text, so that a ranker can be asked what the change is worth to it.

An edit is a function. Its parameters name what it needs, and gives the new text, or None where it does not apply:

    @edits.register("shout")
    def shout(text: str) -> str:
        "in capital letters"
        return text.upper()

From then on the probe `edited/shout` exists. What an edit can get: `text`, `query`, `rng` (a random generator of
its own for each text), `annotation` (sentences, tokens, lemmas, ...), `annotator`, `analyzer`, `others` (texts of
non-relevant documents of the query), `compat`. Keyword-only parameters with a default are options of the probe:
`edited/repeat-document(times=3)`. The docstring says in words what the edited text is.
"""

from __future__ import annotations

import inspect
import random
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeVar

from whyrank.core import Registry, WhyrankError
from whyrank.text.analyzer import Analyzer
from whyrank.text.annotation.annotator import Annotation, Annotator

INPUTS = ("text", "query", "rng", "annotation", "annotator", "analyzer", "others", "compat")
Edit = Callable[..., str | None]
F = TypeVar("F", bound=Edit)

_BUILTIN = {
    "words": (
        "re-space", "case-fold", "remove-stops", "remove-punct", "remove-stops-punct", "lemmatize", "shuffle-words",
        "reverse-words", "shuffle-prepositions", "swap-noun-chunks", "shuffle-words-keep-noun-chunks",
        "shuffle-words-in-sentences", "shuffle-sentences", "reverse-sentences", "delete-sentence",
        "add-nonrelevant-sentence",
    ),
    "content": ("replace-with-query", "prepend-query", "repeat-document", "doc2query", "typos"),
}  # fmt: skip
edits: Registry[Edit] = Registry(
    "edits",
    "edit",
    {
        name: f"whyrank.text.edits.{module}:{name.replace('-', '_')}"
        for module, names in _BUILTIN.items()
        for name in names
    },
)


def published(tokens: bool = False, stream: bool = False) -> Callable[[F], F]:
    """Say how the released code has an edit: on tokens joined by blanks, with one random stream for all texts."""

    def mark(edit: F) -> F:
        edit.published_tokens, edit.published_stream = tokens, stream  # type: ignore[attr-defined]
        return edit

    return mark


def moves_words(edit: F) -> F:
    """Say that an edit only moves words: what stands between white space stays, each as often as before.

    A test checks every registered edit that says so. Modes of `compat` are exempt.
    """
    edit.moves_words = True  # type: ignore[attr-defined]
    return edit


@dataclass(frozen=True, eq=False)
class Passage:
    """A text to be edited, with all that an edit can get."""

    text: str
    query: str
    rng: random.Random
    analyzer: Analyzer
    annotator: Annotator
    others: Callable[[], Sequence[str]]
    compat: str | None = None
    respace: bool = False

    @cached_property
    def annotation(self) -> Annotation:
        """The text annotated; as published, on tokens joined by blanks."""
        found = self.annotator.annotate([self.text])[0]
        return join_tokens(found) if self.respace else found

    def apply(self, edit: Edit, options: Mapping[str, Any]) -> str | None:
        """Call the edit with what its parameters name."""

        def value(name: str) -> Any:
            if name == "text" and self.respace:
                return self.annotation.text
            return self.others() if name == "others" else getattr(self, name)

        return edit(**{name: value(name) for name in inputs_of(edit)}, **options)


@cache
def inputs_of(edit: Edit) -> tuple[str, ...]:
    """What an edit needs: its parameters that are not options."""
    parameters = inspect.signature(edit).parameters.values()
    found = tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)
    for name in found:
        if name not in INPUTS:
            hint = "an option stands behind *, as in (text, *, times=2)"
            raise WhyrankError(f"edit {edit.__name__!r} cannot ask for {name!r}; known: {', '.join(INPUTS)}; {hint}")
    return found


@cache
def options_of(edit: Edit) -> tuple[str, ...]:
    """The options of an edit: its keyword-only parameters."""
    parameters = inspect.signature(edit).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def in_words(edit: Edit) -> str:
    """What the edited text is, in words."""
    line = (inspect.getdoc(edit) or "edited").splitlines()[0].rstrip(".")
    return line[:1].lower() + line[1:]


def join_tokens(annotation: Annotation) -> Annotation:
    """Tokens joined by single blanks, and their annotation: the form that published manipulations have."""
    tokens = annotation.tokens
    ends = list(accumulate(tokens, lambda end, token: end + 1 + len(token), initial=-1))[1:]
    starts = [end - len(token) for end, token in zip(ends, tokens, strict=True)]
    return replace(annotation, text=" ".join(tokens), starts=tuple(starts), ends=tuple(ends))


# Texts that are taken apart and put together again: words and white space, slots and what lies around them.

_WORDS_AND_BLANKS = re.compile(r"\s+|\S+")
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


def word_of(text: str) -> Word:
    """Take a word apart; the core of pure punctuation is empty."""
    first, last = _LETTER.search(text), _LETTER.search(text[::-1])
    if first is None or last is None:
        return Word(text, "", "")
    start, end = first.start(), len(text) - last.start()
    return Word(text[:start], text[start:end], text[end:])


def reorder_words(text: str, reorder: Reorder) -> str:
    """Put the words of a text in another order; the white space stays where it is."""
    found = _WORDS_AND_BLANKS.findall(text)
    positions = [i for i, part in enumerate(found) if not part.isspace()]
    for position, word in zip(positions, reorder([found[i] for i in positions]), strict=True):
        found[position] = word
    return "".join(found)


def map_words(text: str, change: Callable[[str], str]) -> str:
    """Change every word; one that becomes empty goes with the white space after it (or before it at the end)."""
    kept: list[str] = []
    dropped = False
    for part in _WORDS_AND_BLANKS.findall(text):
        if part.isspace():
            kept += [] if dropped else [part]
        else:
            word = change(part)
            dropped = not word
            kept.append(word)
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
    found = []
    for start, end in pairwise(edges):  # without white space at the ends
        part = text[start:end]
        first, last = start + len(part) - len(part.lstrip()), start + len(part.rstrip())
        if first < last:
            found.append(Slot(first, last))
    return found


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
