"""Linguistic annotation: sentences, lemmas, parts of speech, noun chunks and entities of any text.

    from whyrank.text.annotation.annotator import annotator
    found = annotator().annotate(["The old city wall stands. It was built by John Smith."])[0]
    [found.words_of(sentence) for sentence in found.sentences]

No text is parsed twice: what was annotated once is held in memory and kept on disk, for all who ask.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from whyrank.core import Progress, cache_folder
from whyrank.text.analyzer import TextCache
from whyrank.text.annotation.annotations import Annotation, AnnotationStore, Missing, Span
from whyrank.text.annotation.parsing import load_parser
from whyrank.text.annotation.pipelines import ENGLISH, find_pipeline

__all__ = ["Annotation", "Annotator", "Missing", "Span", "annotator", "parsed_texts"]

HELD_TOKENS = 2_000_000

_lock = threading.RLock()
_parsed: Counter[str] = Counter()


@dataclass(frozen=True)
class Annotator:
    """Annotates texts with a spaCy pipeline, which is loaded when the first text has to be parsed."""

    name: str = ENGLISH

    @property
    def identity(self) -> str:
        """Name and version of the pipeline and the version of spaCy: what cache keys contain."""
        return find_pipeline(self.name).identity

    def annotate(self, texts: Sequence[str]) -> list[Annotation]:
        """Annotate texts, in order; each distinct text once."""
        if isinstance(texts, str):
            raise TypeError("give a list of texts, not one text")
        with _lock:
            found = self._found(list(dict.fromkeys(texts)))
        return [found[text] for text in texts]

    def _found(self, texts: Sequence[str]) -> dict[str, Annotation]:
        """The annotations of distinct texts: from memory, else from the disk, else parsed now."""
        identity, found = self.identity, dict[str, Annotation]()
        store, held = _shelf(cache_folder() / "annotations.sqlite", os.getpid())

        def missing() -> list[str]:
            return [text for text in texts if text not in found]

        def hold(annotations: Iterable[Annotation]) -> None:
            for annotation in annotations:
                held[identity].put(annotation.text, annotation)
                found[annotation.text] = annotation

        found |= {text: known for text in texts if (known := held[identity].get(text)) is not None}
        hold(store.find(identity, missing()).values())
        if fresh := missing():
            with Progress("annotating", len(fresh)) as progress:
                for batch in load_parser(self.name).parse(fresh):
                    store.add(identity, batch)
                    hold(batch)
                    _parsed[identity] += len(batch)
                    progress.step(len(batch))
        return found


def annotator(name: str = ENGLISH) -> Annotator:
    """The annotator of an installed spaCy pipeline, by the name of its package or by its folder."""
    find_pipeline(name)
    return Annotator(name)


def parsed_texts(annotator: Annotator) -> int:
    """How many texts this process had to parse, because no cache knew them."""
    return _parsed[annotator.identity]


class _Shelf(NamedTuple):
    """The store of a file, and what was found or added lately by pipeline."""

    store: AnnotationStore
    held: defaultdict[str, TextCache[Annotation]]


@lru_cache(maxsize=1)
def _shelf(path: Path, process: int) -> _Shelf:
    """The shelf over this file; a forked process opens the file again, as sqlite demands."""
    return _Shelf(AnnotationStore(path), defaultdict(partial(TextCache, HELD_TOKENS)))
