"""Query strategies: where the query of a text pair comes from.

A strategy is a function of a `Draft` that gives the query, or raises `Discard` with the reason why there is none:

    @query_strategies.register("first-words")
    def first_words(draft: Draft) -> str:
        "The first three words of the first text."
        return " ".join(draft.first.split()[:3])
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from whyrank.core import Registry
from whyrank.data.pairs import TextPair
from whyrank.text.annotation.annotator import Annotation

_MIN_CHUNK = 5
PUBLISHED_SEED = 42


class Discard(Exception):
    """A pair that cannot be asked about; the message is the reason that is counted."""


@dataclass(frozen=True, eq=False)
class Draft:
    """A pair on its way to a contrast: its two texts, the annotation of any text, a seed for what is random."""

    pair: TextPair
    first: str
    second: str
    annotate: Callable[[str], Annotation]
    terms: int = 5
    seed: int = PUBLISHED_SEED

    def role(self, name: str) -> str:
        """A further text of the pair, such as its title."""
        text = self.pair.texts.get(name, "").strip()
        if not text:
            raise Discard(f"no {name}")
        return text


Strategy = Callable[[Draft], str]
query_strategies: Registry[Strategy] = Registry("query_strategies", "query strategy")


@query_strategies.register("title")
def title(draft: Draft) -> str:
    """The title that the pair has."""
    return draft.role("title")


@query_strategies.register("question")
def question(draft: Draft) -> str:
    """The question that the pair has."""
    return draft.role("question")


@query_strategies.register("noun-chunk")
def noun_chunk(draft: Draft) -> str:
    """A noun phrase of more than five characters that both texts have, drawn at random."""
    shared = sorted(_chunks(draft.annotate(draft.first)) & _chunks(draft.annotate(draft.second)))
    if not shared:
        raise Discard("no shared noun chunk")
    return random.Random(repr((draft.first, draft.second, draft.seed))).choice(shared)


@query_strategies.register("overlapping-terms")
def overlapping_terms(draft: Draft) -> str:
    """The first few content words that both texts have."""
    other = content_lemmas(draft.annotate(draft.second))
    annotation = draft.annotate(draft.first)
    rows = zip(annotation.tokens, annotation.lemmas, strict=True)
    shared = dict.fromkeys(token.lower() for token, lemma in rows if lemma.lower() in other)
    if not shared:
        raise Discard("no shared term")
    return " ".join(list(shared)[: draft.terms])


def content_lemmas(annotation: Annotation) -> set[str]:
    """Lower-case lemmas without stop words, punctuation and numbers."""
    rows = zip(annotation.tokens, annotation.lemmas, annotation.stops, strict=True)
    return {lemma.lower() for token, lemma, stop in rows if not stop and any(map(str.isalpha, token))}


def _chunks(annotation: Annotation) -> set[str]:
    texts = (annotation.words_of(chunk) for chunk in annotation.chunks)
    return {text.lower() for text in texts if len(text) > _MIN_CHUNK}
