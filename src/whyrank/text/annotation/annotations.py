"""What a linguistic pipeline says about a text: tokens, lemmas, tags, sentences, noun chunks and entities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from whyrank.core import WhyrankError


class Span(NamedTuple):
    """The tokens from `start` up to, not including, `end`; an entity has its type as `label`."""

    start: int
    end: int
    label: str = ""


@dataclass(frozen=True)
class Annotation:
    """A text, where its tokens are, and what is known of them.

    Token `i` is `text[starts[i]:ends[i]]`; what lies between two tokens is white space. `pos` has universal
    tags such as ADP, `stops` marks the stop words of the pipeline. What the pipeline cannot find is an
    error once it is looked at; lemmas that it cannot find are the tokens themselves.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    lemmas: Sequence[str]
    pos: Sequence[str]
    stops: Sequence[bool]
    sentences: Sequence[Span]
    chunks: Sequence[Span]
    entities: Sequence[Span]

    def __len__(self) -> int:
        """Number of tokens."""
        return len(self.starts)

    @property
    def tokens(self) -> list[str]:
        """The texts of the tokens."""
        return [self.text[start:end] for start, end in zip(self.starts, self.ends, strict=True)]

    def words_of(self, span: Span) -> str:
        """The text of a span as it was written, from its first token to its last."""
        if span.end <= span.start:
            return ""
        return self.text[self.starts[span.start] : self.ends[span.end - 1]]

    def moved(self, text: str, starts: Sequence[int], ends: Sequence[int]) -> Annotation:
        """The same said of another text, whose tokens stand elsewhere."""
        return replace(self, text=text, starts=tuple(starts), ends=tuple(ends))


@dataclass(frozen=True)
class Missing(Sequence[Any]):
    """In the place of what a pipeline cannot find: looking at it is an error, for "none" would be an answer."""

    what: str
    pipeline: str

    def __len__(self) -> int:
        """Always an error."""
        raise self._error()

    def __getitem__(self, index: Any) -> Any:
        """Always an error."""
        raise self._error()

    def _error(self) -> WhyrankError:
        remedy = "use one with all components, such as en_core_web_sm"
        return WhyrankError(f"the pipeline {self.pipeline} gives no {self.what}; {remedy}")
