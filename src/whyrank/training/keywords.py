"""Keyword queries cut from texts: a cheap stand-in for real queries where a corpus has none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from whyrank.core.seeds import generator

OPENINGS = ("what is", "how", "what are", "define", "why")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


class KeywordQuery(NamedTuple):
    """A query and the number of the text that it was cut from."""

    text: str
    source: int


def keyword_queries(
    texts: Sequence[str], stops: frozenset[str], per_text: int, seed: int = 0, opened: float = 0.3
) -> list[KeywordQuery]:
    """From sentences of each text, 2 to 6 consecutive content words; a share `opened` gets a question's opening."""
    random = generator(seed, "keywords")
    found: dict[str, KeywordQuery] = {}
    for source, text in enumerate(texts):
        for sentence in _chosen(text, per_text, random):
            cut = _cut(sentence, stops, opened, random)
            if cut:
                found.setdefault(cut, KeywordQuery(cut, source))
    return list(found.values())


def _chosen(text: str, n: int, random: np.random.Generator) -> list[str]:
    sentences = [sentence for sentence in _SENTENCE.split(text) if len(sentence) > 20]
    rows = random.permutation(len(sentences))[:n]
    return [sentences[i] for i in rows]


def _cut(sentence: str, stops: frozenset[str], opened: float, random: np.random.Generator) -> str:
    words = [word.lower() for word in _WORD.findall(sentence)]
    content = [word for word in words if word not in stops]
    size = int(random.integers(2, 7))
    if len(content) < 2:
        return ""
    start = int(random.integers(0, max(1, len(content) - size + 1)))
    query = " ".join(content[start : start + size])
    return f"{random.choice(OPENINGS)} {query}" if random.random() < opened else query
