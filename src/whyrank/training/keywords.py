"""Queries cut from texts: a cheap stand-in for real queries where a corpus has none.

Three kinds: runs of content words, as people type them; fragments of a sentence as they stand there; and the
questions that a text itself asks. Some of the first two get the opening of a question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from whyrank.core import generator

OPENINGS = (
    "what is", "what is the", "what are", "what are the", "what does", "what causes", "what type of", "how to",
    "how do", "how does", "how many", "how much", "how long", "when is", "when was", "where is", "who is", "who was",
    "why is", "why do", "is", "are", "can", "does", "define", "definition of", "meaning of", "difference between",
    "types of", "cost of", "average", "best",
)  # fmt: skip
_FUNCTION_WORDS = """
a about also an and are as at be been being but by can could did do does for from had has have he her here his how i
if in into is it its may might must my no nor not of on or our shall she should so such than that the their then there
these they this those to was we were what when where which while who whom why will with would you your
"""
_ASKING_WORDS = "are can did do does how is should what when where which who why will"
FUNCTION_WORDS, _ASKING = frozenset(_FUNCTION_WORDS.split()), frozenset(_ASKING_WORDS.split())
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_SHORTEST, _LONGEST = 3, 16  # words of a question
_SENTENCE_SIZE = 20  # characters that a sentence has at least


class KeywordQuery(NamedTuple):
    """A query and the number of the text that it was cut from."""

    text: str
    source: int


def cut_queries(texts: Sequence[str], per_text: int, seed: int = 0, opened: float = 0.35) -> list[KeywordQuery]:
    """Up to `per_text` cuts of each text, and its own questions; `opened` is the share with a question's opening.

    A query belongs to the first text that gives it. The same texts and seed give the same queries.
    """
    random = generator(seed, "keywords")
    found: dict[str, KeywordQuery] = {}
    for source, text in enumerate(texts):
        for query in _queries(text, per_text, opened, random):
            found.setdefault(query, KeywordQuery(query, source))
    return list(found.values())


def _queries(text: str, per_text: int, opened: float, random: np.random.Generator) -> Iterator[str]:
    sentences = [sentence for sentence in _SENTENCE.split(text) if len(sentence) > _SENTENCE_SIZE]
    yield from filter(None, map(_question, sentences))
    for i in range(per_text if sentences else 0):
        words = [word.lower() for word in _WORD.findall(sentences[random.integers(len(sentences))])]
        if i % 2:  # 2 to 6 consecutive content words
            cut = _run([word for word in words if word not in FUNCTION_WORDS], 2, 6, random)
        else:  # 2 to 9 consecutive words, without function words at either end
            run = _run(words, 2, 9, random).split()
            inside = [j for j, word in enumerate(run) if word not in FUNCTION_WORDS]
            cut = " ".join(run[inside[0] : inside[-1] + 1]) if len(inside) > 1 else ""
        if cut:
            yield f"{random.choice(OPENINGS)} {cut}" if random.random() < opened else cut


def _run(words: Sequence[str], least: int, most: int, random: np.random.Generator) -> str:
    size = int(random.integers(least, most + 1))
    start = int(random.integers(0, max(1, len(words) - size + 1)))
    return " ".join(words[start : start + size]) if len(words) >= least else ""


def _question(sentence: str) -> str:
    """The question that a sentence asks, from its question word on; nothing where it asks none."""
    words = _WORD.findall(sentence.lower()) if sentence.endswith("?") else []
    start = next((i for i, word in enumerate(words) if word in _ASKING), len(words))
    return " ".join(words[start:]) if _SHORTEST <= len(words) - start <= _LONGEST else ""
