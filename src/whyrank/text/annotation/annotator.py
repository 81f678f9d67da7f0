"""Linguistic annotation: sentences, lemmas, parts of speech, noun chunks and entities of any text.

    from whyrank.text.annotation.annotator import annotator
    found = annotator().annotate(["The old city wall stands. It was built by John Smith."])[0]
    [found.words_of(sentence) for sentence in found.sentences]

No text is parsed twice: what was annotated once is held in memory and kept on disk, for all who ask.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from whyrank.core import Progress, cache_folder
from whyrank.text.annotation.annotations import Annotation, Missing, Span
from whyrank.text.annotation.parsing import load_parser
from whyrank.text.annotation.pipelines import ENGLISH, find_pipeline
from whyrank.text.annotation.store import AnnotationStore

__all__ = ["Annotation", "Annotator", "Missing", "Span", "annotator", "parsed_texts"]

HELD_TOKENS = 2_000_000
_ENTRY_COST = 16  # what an annotation costs beside its tokens, in tokens

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
            found = self._found(dict.fromkeys(texts))
        return [found[text] for text in texts]

    def _found(self, texts: Iterable[str]) -> dict[str, Annotation]:
        identity, shelf = self.identity, _shelf(cache_folder() / "annotations.sqlite", os.getpid())
        found = shelf.find(identity, texts)
        fresh = [text for text in texts if text not in found]
        if not fresh:
            return found
        with Progress("annotating", len(fresh)) as progress:
            for batch in load_parser(self.name).parse(fresh):
                found |= shelf.add(identity, batch)
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


class Recent:
    """Annotations in memory; those unused for longest go once `capacity` tokens are held."""

    def __init__(self, capacity: int = HELD_TOKENS) -> None:
        """Start empty."""
        self.capacity, self.held = capacity, 0
        self._entries: OrderedDict[tuple[str, str], Annotation] = OrderedDict()

    def get(self, identity: str, text: str) -> Annotation | None:
        """The annotation of a text by a pipeline, or None when it is not held."""
        found = self._entries.get((identity, text))
        if found is not None:
            self._entries.move_to_end((identity, text))
        return found

    def put(self, identity: str, annotation: Annotation) -> None:
        """Hold an annotation that is not held yet."""
        self._entries[identity, annotation.text] = annotation
        self.held += _cost(annotation)
        while self.held > self.capacity:
            self.held -= _cost(self._entries.popitem(last=False)[1])


class _Shelf:
    """Where annotations are looked for before a text is parsed: in memory, then on disk."""

    def __init__(self, path: Path) -> None:
        self._recent, self._store = Recent(), AnnotationStore(path)

    def find(self, identity: str, texts: Iterable[str]) -> dict[str, Annotation]:
        held = {text: self._recent.get(identity, text) for text in texts}
        found = {text: annotation for text, annotation in held.items() if annotation is not None}
        stored = self._store.find(identity, [text for text, annotation in held.items() if annotation is None])
        return found | self._hold(identity, stored.values())

    def add(self, identity: str, annotations: Sequence[Annotation]) -> dict[str, Annotation]:
        self._store.add(identity, annotations)
        return self._hold(identity, annotations)

    def _hold(self, identity: str, annotations: Iterable[Annotation]) -> dict[str, Annotation]:
        by_text = {annotation.text: annotation for annotation in annotations}
        for annotation in by_text.values():
            self._recent.put(identity, annotation)
        return by_text


@lru_cache(maxsize=1)
def _shelf(path: Path, process: int) -> _Shelf:
    """The shelf over this file; a forked process opens the file again, as sqlite demands."""
    return _Shelf(path)


def _cost(annotation: Annotation) -> int:
    return max(len(annotation), len(annotation.text) // 4) + _ENTRY_COST
