"""Edits: one change to a text, so that a ranker can be asked what the change is worth to it.

An edit is a function. It asks by name for what it needs, and gives the new text, or None where it does not apply:

    @edits.register("shout")
    def shout(text: str) -> str:
        "in capital letters"
        return text.upper()

From then on the probe `edited/shout` exists. What an edit may ask for: `text`, `query`, `rng` (a random generator of
its own for each text), `annotation` (sentences, tokens, lemmas, ...), `analyzer`, `others` (texts of non-relevant
documents of the query), `compat`. Keyword-only parameters with a default are options of the probe:
`edited/repeat-document(times=3)`. The docstring says in words what the edited text is.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeVar

from whyrank.core.registry import Registry
from whyrank.text.analyzers import Analyzer
from whyrank.text.annotate import Annotation, Annotator

Edit = Callable[..., str | None]
F = TypeVar("F", bound=Edit)

edits: Registry[Edit] = Registry(
    "edits",
    "edit",
    {
        name: f"whyrank.text.{module}:{function}"
        for module, names in {
            "edit_words": {
                "re-space": "re_space",
                "case-fold": "case_fold",
                "remove-stops": "remove_stops",
                "remove-punct": "remove_punct",
                "remove-stops-punct": "remove_stops_punct",
                "lemmatize": "lemmatize",
                "shuffle-words": "shuffle_words",
                "reverse-words": "reverse_words",
                "shuffle-prepositions": "shuffle_prepositions",
                "swap-noun-chunks": "swap_noun_chunks",
                "shuffle-words-keep-noun-chunks": "shuffle_words_keep_noun_chunks",
            },
            "edit_sentences": {
                "shuffle-words-in-sentences": "shuffle_words_in_sentences",
                "shuffle-sentences": "shuffle_sentences",
                "reverse-sentences": "reverse_sentences",
                "delete-sentence": "delete_sentence",
                "add-nonrelevant-sentence": "add_nonrelevant_sentence",
            },
            "edit_content": {
                "replace-with-query": "replace_with_query",
                "prepend-query": "prepend_query",
                "repeat-document": "repeat_document",
                "doc2query": "doc2query",
            },
            "edit_typos": {"typos": "typos"},
        }.items()
        for name, function in names.items()
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
    """A text to be edited, with all that an edit may ask for."""

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
        return respaced(found) if self.respace else found

    def ask(self, edit: Edit, options: Mapping[str, Any]) -> str | None:
        """Call the edit with what it asks for."""
        given: dict[str, Callable[[], Any]] = {
            "text": lambda: self.annotation.text if self.respace else self.text,
            "query": lambda: self.query,
            "rng": lambda: self.rng,
            "annotation": lambda: self.annotation,
            "analyzer": lambda: self.analyzer,
            "annotator": lambda: self.annotator,
            "others": self.others,
            "compat": lambda: self.compat,
        }
        return edit(**{name: given[name]() for name in asks(edit)}, **options)


@cache
def asks(edit: Edit) -> tuple[str, ...]:
    """What an edit asks for: its parameters that are not options."""
    parameters = inspect.signature(edit).parameters.values()
    return tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)


@cache
def options_of(edit: Edit) -> tuple[str, ...]:
    """The options of an edit: its keyword-only parameters."""
    parameters = inspect.signature(edit).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def in_words(edit: Edit) -> str:
    """What the edited text is, in words."""
    line = (inspect.getdoc(edit) or "edited").splitlines()[0].rstrip(".")
    return line[:1].lower() + line[1:]


def respaced(annotation: Annotation) -> Annotation:
    """The same tokens joined by single blanks, and their annotation: the form that published manipulations have."""
    tokens = annotation.tokens
    starts, position = [], 0
    for token in tokens:
        starts.append(position)
        position += len(token) + 1
    ends = [start + len(token) for start, token in zip(starts, tokens, strict=True)]
    return annotation.moved(" ".join(tokens), starts, ends)
