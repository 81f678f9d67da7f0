"""Annotations on disk: a row per (pipeline, text) with compressed JSON, in a file that processes may share."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from whyrank.core.text_store import Names, TextStore, digest
from whyrank.text.annotation import Annotation
from whyrank.text.annotation_format import FORMAT, decode, encode

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
