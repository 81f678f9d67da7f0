"""Edits of words and sentences: removed, added, replaced by lemmas, put in another order.

As published (MacAvaney et al., ABNIRML, arXiv 2020 and TACL 2022) these emit the parser's tokens joined by blanks;
`respace=True` gives that form. By default they work on words between white space and leave the white space alone.
Sentences are the parser's, cut at white space only, so that no word is split.
"""

from __future__ import annotations

import random
import string
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal

from whyrank.text.analyzer import Analyzer
from whyrank.text.annotation.annotator import Annotation, Annotator
from whyrank.text.edits.base import (
    Reorder,
    Slot,
    chunk_slots,
    fill,
    join_tokens,
    map_words,
    moves_words,
    preposition_slots,
    published,
    reorder_slots,
    reorder_words,
    sentence_slots,
    token_slots,
    word_of,
    word_slots,
)

_BLANKS = str.maketrans(dict.fromkeys(string.punctuation, " "))


def shuffle(items: Sequence[str], rng: random.Random) -> list[str]:
    """The items in random order."""
    mixed = list(items)
    rng.shuffle(mixed)
    return mixed


def exchange(annotation: Annotation, slots: Sequence[Slot], reorder: Reorder) -> str | None:
    """The text with what stands in the slots in another order; None where there are fewer than two."""
    return reorder_slots(annotation.text, slots, reorder) if len(slots) > 1 else None


def re_space(annotation: Annotation) -> str:
    """With the parser's tokens joined by blanks, and nothing else changed"""
    return join_tokens(annotation).text


def case_fold(text: str) -> str:
    """In lower case"""
    return text.lower()


@published(tokens=True)
def remove_stops(text: str, analyzer: Analyzer, compat: str | None) -> str:
    """Without the analyzer's stop words"""
    stops = analyzer.stopwords

    def remove(text: str) -> str:
        if compat == "abnirml":  # whole tokens are looked up, so that 's stays where s is a stop word
            return "" if text.lower() in stops else text
        word = word_of(text)
        return word.before + word.after if word.core.lower() in stops else text

    return map_words(text, remove)


def remove_punct(text: str, compat: str | None) -> str:
    """Without punctuation: at the edges of words it goes, inside them it becomes a blank"""
    if compat == "abnirml":
        return text.translate(_BLANKS)
    return map_words(text, lambda word: " ".join(word.translate(_BLANKS).split()))


@published(tokens=True)
def remove_stops_punct(text: str, analyzer: Analyzer, compat: str | None) -> str:
    """Without stop words and punctuation"""
    return remove_punct(remove_stops(text, analyzer, compat), compat)


@published(tokens=True)
def lemmatize(annotation: Annotation) -> str:
    """With every word that is no stop word replaced by its lemma"""
    rows = zip(annotation.tokens, annotation.lemmas, annotation.stops, strict=True)
    words = [token if stop or token.isspace() else lemma for token, lemma, stop in rows]
    return fill(annotation.text, token_slots(annotation), words)


@moves_words
@published(tokens=True, stream=True)
def shuffle_words(text: str, rng: random.Random) -> str:
    """With its words in random order"""
    return reorder_words(text, lambda words: shuffle(words, rng))


@moves_words
@published(tokens=True)
def reverse_words(text: str) -> str:
    """With its words in reverse order"""
    return reorder_words(text, lambda words: words[::-1])


@moves_words
def shuffle_prepositions(annotation: Annotation, rng: random.Random, compat: str | None) -> str | None:
    """With its prepositions exchanged at random"""
    if compat == "abnirml":
        # The released code looks slots up by character offset and compares them with token indices: most prepositions
        # stay, and tokens whose index happens to be some preposition's offset are overwritten.
        tokens, positions = annotation.tokens, [i for i, tag in enumerate(annotation.pos) if tag == "ADP"]
        mixed = shuffle([tokens[position] for position in positions], rng)
        moved = {annotation.starts[position]: word for position, word in zip(positions, mixed, strict=True)}
        return " ".join(moved.get(i, token) for i, token in enumerate(tokens))
    return exchange(annotation, preposition_slots(annotation), lambda words: shuffle(words, rng))


@moves_words
@published(tokens=True)
def swap_noun_chunks(annotation: Annotation, rng: random.Random) -> str | None:
    """With its noun phrases exchanged at random"""
    return exchange(annotation, chunk_slots(annotation), lambda chunks: shuffle(chunks, rng))


@moves_words
@published(tokens=True)
def shuffle_words_keep_noun_chunks(annotation: Annotation, rng: random.Random) -> str:
    """With its words in random order, noun phrases kept whole"""
    chunks = chunk_slots(annotation)
    ends = [chunk.end for chunk in chunks]
    between = [
        word
        for word in word_slots(annotation.text)
        if (i := bisect_right(ends, word.start)) == len(chunks) or word.start < chunks[i].start
    ]
    return reorder_slots(annotation.text, sorted([*chunks, *between]), lambda words: shuffle(words, rng))


# Sentences.


@moves_words
@published(tokens=True)
def shuffle_words_in_sentences(annotation: Annotation, rng: random.Random) -> str:
    """With the words of each sentence in random order, but for its last"""
    slots = sentence_slots(annotation)

    def all_but_last(words: list[str]) -> list[str]:
        return [*shuffle(words[:-1], rng), *words[-1:]]

    return fill(annotation.text, slots, [reorder_words(annotation.text[a:b], all_but_last) for a, b in slots])


@moves_words
@published(stream=True)
def shuffle_sentences(annotation: Annotation, rng: random.Random, compat: str | None) -> str | None:
    """With its sentences in random order"""
    if compat == "abnirml":  # the parser's sentences wherever they are cut, joined by blanks
        sentences = [annotation.words_of(sentence) for sentence in annotation.sentences]
        return " ".join(shuffle(sentences, rng)) if len(sentences) > 1 else None
    return exchange(annotation, sentence_slots(annotation), lambda sentences: shuffle(sentences, rng))


@moves_words
def reverse_sentences(annotation: Annotation) -> str | None:
    """With its sentences in reverse order"""
    return exchange(annotation, sentence_slots(annotation), lambda sentences: sentences[::-1])


def delete_sentence(
    annotation: Annotation, rng: random.Random, *, which: Literal["first", "last", "random"] = "first"
) -> str | None:
    """Without one of its sentences

    Args:
        which: first, last or random.
    """
    slots = sentence_slots(annotation)
    positions = {"first": 0, "last": -1, "random": rng.randrange(len(slots)) if slots else 0}
    if len(slots) < 2:
        return None
    gone = positions[which] % len(slots)
    end = slots[gone + 1].start if gone + 1 < len(slots) else len(annotation.text)
    return (annotation.text[: slots[gone].start] + annotation.text[end:]).strip()


@published(stream=True)
def add_nonrelevant_sentence(
    text: str,
    others: Sequence[str],
    annotator: Annotator,
    rng: random.Random,
    *,
    position: Literal["start", "end"] = "end",
) -> str | None:
    """With a sentence of a non-relevant document of the same query added

    Args:
        position: start or end.
    """
    if not others:
        return None
    other = annotator.annotate([rng.choice(others)])[0]
    slots = sentence_slots(other)
    if not slots:
        return None
    start, end = rng.choice(slots)
    sentence = other.text[start:end]
    return f"{text} {sentence}" if position == "end" else f"{sentence} {text}"
