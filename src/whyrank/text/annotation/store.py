"""Annotations on disk: a row per (pipeline, text) with compressed JSON, in a file that processes may share."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from sys import intern
from typing import Any

from whyrank.core import Names, TextStore, digest
from whyrank.text.annotation.annotations import Annotation, Missing, Span

# An annotation as bytes: compressed JSON, whose checksum tells when the bytes were damaged.

FORMAT = 1  # goes up with every change of what is written here


def encode(annotation: Annotation) -> bytes:
    """An annotation without its text; a lemma that is the token itself is left out."""
    words = zip(annotation.lemmas, annotation.tokens, strict=True)
    content = {
        "starts": annotation.starts,
        "ends": annotation.ends,
        "lemmas": [None if lemma == token else lemma for lemma, token in words],
        "pos": annotation.pos.what if isinstance(annotation.pos, Missing) else annotation.pos,
        "stops": [int(stop) for stop in annotation.stops],
        "sentences": _written(annotation.sentences),
        "chunks": _written(annotation.chunks),
        "entities": _written(annotation.entities),
    }
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 1)


def decode(text: str, value: bytes, identity: str) -> Annotation:
    """The annotation of a text by a pipeline; a ValueError or the like where the bytes are no such thing."""
    content: dict[str, Any] = json.loads(zlib.decompress(value))
    starts, ends = content["starts"], content["ends"]
    words = zip(content["lemmas"], starts, ends, strict=True)
    return Annotation(
        text,
        tuple(starts),
        tuple(ends),
        tuple([text[start:end] if lemma is None else intern(lemma) for lemma, start, end in words]),
        _tags(content["pos"], identity),
        tuple(map(bool, content["stops"])),
        _spans(content["sentences"], identity),
        _spans(content["chunks"], identity),
        _spans(content["entities"], identity),
    )


def _written(spans: Sequence[Span]) -> str | list[tuple[object, ...]]:
    """Spans as lists, without labels that are empty; what is missing as its name."""
    if isinstance(spans, Missing):
        return spans.what
    return [tuple(span) if span.label else span[:2] for span in spans]


def _spans(written: str | list[Any], identity: str) -> Sequence[Span]:
    if isinstance(written, str):
        return Missing(written, identity)
    return tuple([Span(*span) for span in written])


def _tags(written: str | list[str], identity: str) -> Sequence[str]:
    if isinstance(written, str):
        return Missing(written, identity)
    return tuple(map(intern, written))


__all__ = ["AnnotationStore", "digest"]

_NAMES = Names("pipelines", "annotations", "pipeline", "annotation", "BLOB")
_LAYOUT = _NAMES.layout("cache of annotations", 0x77726E61)


class AnnotationStore(TextStore[Annotation]):
    """All annotations that were ever made, by the identity of the pipeline and the digest of the text."""

    def __init__(self, path: Path) -> None:
        """Open the file, and make it where there is none."""
        super().__init__(path, _LAYOUT, _NAMES)

    def add(self, identity: str, annotations: Iterable[Annotation]) -> None:
        """Commit some annotations in one step; what is stored of a text already stays."""
        self.keep(identity, ((annotation.text, annotation) for annotation in annotations))

    def encoded(self, value: Annotation) -> bytes:
        """An annotation without its text, compressed."""
        return encode(value)

    def decoded(self, text: str, stored: Any, identity: str) -> Annotation:
        """The annotation of a text."""
        try:
            return decode(text, stored, identity)
        except (zlib.error, ValueError, KeyError, TypeError) as error:
            raise self.layout.damaged(self.path) from error

    def key(self, identity: str) -> str:
        """The pipeline and the format, so that another format is never read."""
        return super().key(f"{FORMAT} {identity}")
