"""Linguistic annotation: sentences, lemmas, parts of speech, noun chunks and entities of any text.

    from whyrank.text.annotation.annotator import annotator
    found = annotator().annotate(["The old city wall stands. It was built by John Smith."])[0]
    [found.words_of(sentence) for sentence in found.sentences]

No text is parsed twice: what was annotated once is held in memory and stored on disk. The store has a row per
(pipeline, text) with compressed JSON, in an sqlite file that processes may share. For rows of one text spaCy's own
`DocBin` is 2.6 times as large and takes twelve times as long to write and to read, and it can be read only once spaCy
and the pipeline are loaded, where annotations that were made before are now found without either.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

from whyrank.core import Executor, Names, Progress, Serial, TextStore, cache_folder, current_executor, timed
from whyrank.text.analyzer import TextCache
from whyrank.text.annotation.parsing import Annotation, Missing, Span, batches, load_parser
from whyrank.text.annotation.pipelines import ENGLISH, find_pipeline

__all__ = ["Annotation", "AnnotationStore", "Annotator", "Missing", "Span", "annotator", "parsed_texts"]

FORMAT = 1  # goes up with every change of what is written
HELD_TOKENS = 2_000_000
FEW = 100  # texts that take less time than other processes take to start
_NAMES = Names("pipelines", "annotations", "pipeline", "annotation", "BLOB")
_LAYOUT = _NAMES.layout("cache of annotations", 0x77726E61)
_SPANS = ("sentences", "chunks", "entities")

_lock = threading.RLock()
_parsed: Counter[str] = Counter()


@dataclass(frozen=True)
class Annotator:
    """Annotates texts with a spaCy pipeline, which each process that parses loads once, for the first text."""

    name: str = ENGLISH
    executor: Executor = field(default_factory=current_executor, compare=False, repr=False)

    @property
    def identity(self) -> str:
        """Name and version of the pipeline and the version of spaCy: what cache keys contain."""
        return find_pipeline(self.name).identity

    def annotate(self, texts: Sequence[str]) -> list[Annotation]:
        """Annotate texts, in order: each distinct text is found in memory, else on the disk, else parsed now."""
        if isinstance(texts, str):
            raise TypeError("give a list of texts, not one text")
        with _lock, timed("annotating"):
            identity, found = self.identity, dict[str, Annotation]()
            store, caches = _storage(cache_folder() / "annotations.sqlite", os.getpid())
            cache = caches[identity]

            def add(annotations: Iterable[Annotation]) -> None:
                for annotation in annotations:
                    cache.put(annotation.text, annotation)
                    found[annotation.text] = annotation

            distinct = dict.fromkeys(texts)
            found |= {text: known for text in distinct if (known := cache.get(text)) is not None}
            add(store.find(identity, [text for text in distinct if text not in found]).values())
            if fresh := [text for text in distinct if text not in found]:
                executor = self.executor if len(fresh) > FEW else Serial()
                parsed = executor.run(_parse, self.name, batches(fresh))
                with Progress("annotating", len(fresh)) as progress, closing(parsed):
                    for batch in parsed:
                        store.add(identity, batch)
                        add(batch)
                        _parsed[identity] += len(batch)
                        progress.step(len(batch))
        return [found[text] for text in texts]


def _parse(name: str, texts: Sequence[str]) -> list[Annotation]:
    return load_parser(name).parse(texts)


def annotator(name: str = ENGLISH) -> Annotator:
    """The annotator of an installed spaCy pipeline, by the name of its package or by its folder."""
    find_pipeline(name)
    return Annotator(name, current_executor())


def parsed_texts(annotator: Annotator) -> int:
    """How many texts this process had to parse, because no cache knew them."""
    return _parsed[annotator.identity]


class AnnotationStore(TextStore[Annotation]):
    """All annotations that were ever made, by the identity of the pipeline and the digest of the text."""

    renewable = True

    def __init__(self, path: Path) -> None:
        super().__init__(path, _LAYOUT, _NAMES)

    def add(self, identity: str, annotations: Iterable[Annotation]) -> None:
        """Commit some annotations in one step; what is stored of a text already stays."""
        self.keep(identity, ((annotation.text, annotation) for annotation in annotations))

    def key(self, identity: str) -> str:
        """The pipeline and the format, so that another format is never read."""
        return super().key(f"{FORMAT} {identity}")

    def encode(self, value: Annotation) -> bytes:
        """An annotation without its text, compressed.

        A lemma that is the token itself is left out, and so are empty labels; what is missing is stored as its name.
        """
        words = zip(value.lemmas, value.tokens, strict=True)
        content: dict[str, Any] = {
            "starts": value.starts,
            "ends": value.ends,
            "lemmas": [None if lemma == token else lemma for lemma, token in words],
            "pos": value.pos.what if isinstance(value.pos, Missing) else value.pos,
            "stops": [int(stop) for stop in value.stops],
        }
        for name in _SPANS:
            spans: Any = getattr(value, name)
            missing = isinstance(spans, Missing)
            content[name] = spans.what if missing else [span if span.label else span[:2] for span in spans]
        return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 1)

    def decode(self, text: str, stored: Any, identity: str) -> Annotation:
        """The annotation of a text; its checksum was verified, so that a row of our own making is whole."""
        content: dict[str, Any] = json.loads(zlib.decompress(stored))
        starts, ends = content["starts"], content["ends"]
        words = zip(content["lemmas"], starts, ends, strict=True)
        for name in ("pos", *_SPANS):
            values = content[name]
            if isinstance(values, str):
                content[name] = Missing(values, identity)
            else:
                content[name] = tuple(map(intern, values) if name == "pos" else [Span(*span) for span in values])
        return Annotation(
            text,
            tuple(starts),
            tuple(ends),
            tuple([text[start:end] if lemma is None else intern(lemma) for lemma, start, end in words]),
            content["pos"],
            tuple(map(bool, content["stops"])),
            *(content[name] for name in _SPANS),
        )


class _Storage(NamedTuple):
    """The store of a file, and for each pipeline what was found or added lately."""

    store: AnnotationStore
    caches: defaultdict[str, TextCache[Annotation]]


@lru_cache(maxsize=1)
def _storage(path: Path, process: int) -> _Storage:
    """The store of this file, opened once per process: sqlite demands that a forked process opens it again."""
    return _Storage(AnnotationStore(path), defaultdict(partial(TextCache, HELD_TOKENS)))
