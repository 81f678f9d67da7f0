"""Edits of sentences: other order, one less, one more.

Sentences are the parser's, cut at white space only, so that no word is split.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from whyrank.core import UnknownName
from whyrank.text.annotation import Annotator
from whyrank.text.annotation.annotator import Annotation
from whyrank.text.edits.base import Slot, fill, moves_words, published, reorder_slots, reorder_words, sentence_slots
from whyrank.text.edits.words import shuffled


@moves_words
@published(tokens=True)
def shuffle_words_in_sentences(annotation: Annotation, rng: random.Random) -> str:
    """With the words of each sentence in random order, but for its last"""
    slots = sentence_slots(annotation)
    parts = [reorder_words(annotation.text[a:b], lambda words: _all_but_last(words, rng)) for a, b in slots]
    return fill(annotation.text, slots, parts)


@moves_words
@published(stream=True)
def shuffle_sentences(annotation: Annotation, rng: random.Random, compat: str | None) -> str | None:
    """With its sentences in random order"""
    if compat == "abnirml":  # the parser's sentences wherever they are cut, joined by blanks
        parts = [annotation.words_of(sentence) for sentence in annotation.sentences]
        return " ".join(shuffled(parts, rng)) if len(parts) > 1 else None
    slots = sentence_slots(annotation)
    return reorder_slots(annotation.text, slots, lambda parts: shuffled(parts, rng)) if len(slots) > 1 else None


@moves_words
def reverse_sentences(annotation: Annotation) -> str | None:
    """With its sentences in reverse order"""
    slots = sentence_slots(annotation)
    return reorder_slots(annotation.text, slots, lambda parts: parts[::-1]) if len(slots) > 1 else None


def delete_sentence(annotation: Annotation, rng: random.Random, *, which: str = "first") -> str | None:
    """Without one of its sentences"""
    slots = sentence_slots(annotation)
    places = {"first": 0, "last": -1, "random": rng.randrange(len(slots)) if slots else 0}
    if which not in places:
        raise UnknownName("sentence to delete", str(which), places)
    if len(slots) < 2:
        return None
    gone = places[which] % len(slots)
    end = slots[gone + 1].start if gone + 1 < len(slots) else len(annotation.text)
    return (annotation.text[: slots[gone].start] + annotation.text[end:]).strip()


@published(stream=True)
def add_nonrelevant_sentence(
    text: str, others: Sequence[str], annotator: Annotator, rng: random.Random, *, position: str = "end"
) -> str | None:
    """With a sentence of a non-relevant document of the same query added"""
    if position not in ("start", "end"):
        raise UnknownName("position", str(position), ("start", "end"))
    if not others:
        return None
    sentence = _any_sentence(annotator.annotate([rng.choice(others)])[0], rng)
    if not sentence:
        return None
    return f"{text} {sentence}" if position == "end" else f"{sentence} {text}"


def _any_sentence(annotation: Annotation, rng: random.Random) -> str:
    slots: list[Slot] = sentence_slots(annotation)
    chosen = rng.choice(slots) if slots else Slot(0, 0)
    return annotation.text[chosen.start : chosen.end]


def _all_but_last(words: list[str], rng: random.Random) -> list[str]:
    return [*shuffled(words[:-1], rng), *words[-1:]]
