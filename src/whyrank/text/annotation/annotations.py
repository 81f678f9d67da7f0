"""What a linguistic pipeline says about a text, and how that is kept on disk.

The store has a row per (pipeline, text) with compressed JSON, in an sqlite file that processes may share. spaCy's own
`DocBin` is 2.6 times as large for rows of one text and takes twelve times as long to write and to read; one `DocBin`
of 400 texts has the same size and takes three times as long. And it can be read only once spaCy and the pipeline are
loaded, where annotations that were made before are now found without either.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

from whyrank.core import Names, TextStore, WhyrankError


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


FORMAT = 1  # goes up with every change of what is written
_NAMES = Names("pipelines", "annotations", "pipeline", "annotation", "BLOB")
_LAYOUT = _NAMES.layout("cache of annotations", 0x77726E61)


class AnnotationStore(TextStore[Annotation]):
    """All annotations that were ever made, by the identity of the pipeline and the digest of the text."""

    renewable = True

    def __init__(self, path: Path) -> None:
        """Open the file, and make it where there is none."""
        super().__init__(path, _LAYOUT, _NAMES)

    def add(self, identity: str, annotations: Iterable[Annotation]) -> None:
        """Commit some annotations in one step; what is stored of a text already stays."""
        self.keep(identity, ((annotation.text, annotation) for annotation in annotations))

    def key(self, identity: str) -> str:
        """The pipeline and the format, so that another format is never read."""
        return super().key(f"{FORMAT} {identity}")

    def encoded(self, value: Annotation) -> bytes:
        """An annotation without its text, compressed; a lemma that is the token itself is left out."""
        words = zip(value.lemmas, value.tokens, strict=True)
        content = {
            "starts": value.starts,
            "ends": value.ends,
            "lemmas": [None if lemma == token else lemma for lemma, token in words],
            "pos": value.pos.what if isinstance(value.pos, Missing) else value.pos,
            "stops": [int(stop) for stop in value.stops],
            "sentences": _written(value.sentences),
            "chunks": _written(value.chunks),
            "entities": _written(value.entities),
        }
        return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 1)

    def decoded(self, text: str, stored: Any, identity: str) -> Annotation:
        """The annotation of a text; its checksum was verified, so that a row of our own making is whole."""
        content: dict[str, Any] = json.loads(zlib.decompress(stored))
        starts, ends, pos = content["starts"], content["ends"], content["pos"]
        words = zip(content["lemmas"], starts, ends, strict=True)
        return Annotation(
            text,
            tuple(starts),
            tuple(ends),
            tuple([text[start:end] if lemma is None else intern(lemma) for lemma, start, end in words]),
            Missing(pos, identity) if isinstance(pos, str) else tuple(map(intern, pos)),
            tuple(map(bool, content["stops"])),
            _read(content["sentences"], identity),
            _read(content["chunks"], identity),
            _read(content["entities"], identity),
        )


def _written(spans: Sequence[Span]) -> str | list[tuple[object, ...]]:
    """Spans as lists, without labels that are empty; what is missing as its name."""
    if isinstance(spans, Missing):
        return spans.what
    return [tuple(span) if span.label else span[:2] for span in spans]


def _read(written: str | list[Any], identity: str) -> Sequence[Span]:
    return Missing(written, identity) if isinstance(written, str) else tuple([Span(*span) for span in written])
