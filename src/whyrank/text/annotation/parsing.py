"""Parsing texts with a loaded spaCy pipeline, long ones in parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import accumulate, chain, islice
from typing import Any

from whyrank.core import WhyrankError
from whyrank.text.annotation.annotations import Annotation, Missing, Span
from whyrank.text.annotation.pipelines import find_pipeline, loading

TEXTS_AT_ONCE = 64
PART_SIZE = 100_000  # characters that are parsed at once: memory grows with them
LONGEST_WORD = 1_000
_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD}}}(?=\S)")
_SURROGATES = re.compile("[\ud800-\udfff]")
_PROBE = "The old city wall was built by John Smith in London."


class Parser:
    """A pipeline and what it is able to say, which is tried out on one sentence."""

    def __init__(self, nlp: Any, identity: str) -> None:
        """Try the pipeline; where it finds no sentences, split at punctuation."""
        self._nlp, self._identity = nlp, identity
        rules = import_module("spacy.tokenizer").Tokenizer  # others serve languages without blanks between words
        self._cut_words = isinstance(nlp.tokenizer, rules)
        probe = nlp(_PROBE)
        if not probe.has_annotation("SENT_START"):
            nlp.add_pipe("sentencizer", name="whyrank_sentences")
        self._has_tags, self._has_entities = probe.has_annotation("POS"), probe.has_annotation("ENT_IOB")
        self._has_chunks = probe.has_annotation("DEP") and nlp.vocab.get_noun_chunks is not None

    def parse(self, texts: Sequence[str]) -> Iterator[list[Annotation]]:
        """Annotate the texts in order, and give them in batches that fit in memory."""
        for batch in _batches(texts):
            cut = [list(split_text(text, cut_words=self._cut_words)) for text in batch]
            given = [part for some in cut for part in some]
            at_once = min(TEXTS_AT_ONCE, PART_SIZE // max(map(len, given), default=PART_SIZE))
            with self._nlp.memory_zone():  # the words of this batch are forgotten after it
                docs = self._nlp.pipe(map(_valid, given), batch_size=at_once)
                parts = map(self._annotation, given, docs)
                whole = [joined(text, list(islice(parts, len(some)))) for text, some in zip(batch, cut, strict=True)]
            yield whole

    def _annotation(self, text: str, doc: Any) -> Annotation:
        if doc.text != _valid(text):
            remedy = "use one whose tokeniser keeps every character"
            raise WhyrankError(f"the pipeline {self._identity} changes texts; {remedy}")
        starts = tuple(token.idx for token in doc)
        ends = tuple(token.idx + len(token) for token in doc)
        # a lemma that is the token as the pipeline was given it stands for the token as it was written
        lemmas = [text[a:b] if token.lemma_ in ("", token.text) else str(token.lemma_)
                  for token, a, b in zip(doc, starts, ends, strict=True)]  # fmt: skip
        return Annotation(
            text,
            starts,
            ends,
            tuple(lemmas),
            self._given(self._has_tags, "parts of speech", lambda: [token.pos_ for token in doc]),
            tuple(token.is_stop for token in doc),
            tuple(Span(found.start, found.end) for found in doc.sents),
            self._given(self._has_chunks, "noun chunks", lambda: [Span(c.start, c.end) for c in doc.noun_chunks]),
            self._given(self._has_entities, "entities", lambda: [Span(e.start, e.end, e.label_) for e in doc.ents]),
        )

    def _given(self, known: bool, what: str, find: Callable[[], list[Any]]) -> Sequence[Any]:
        return tuple(find()) if known else Missing(what, self._identity)


@cache
def load_parser(name: str) -> Parser:
    """The parser of a pipeline, loaded once per process."""
    found = find_pipeline(name)
    with loading(name):
        return Parser(found.load(), found.identity)


def split_text(text: str, *, cut_words: bool = True) -> Iterator[str]:
    """Cut a text after white space, or anywhere where there is none, into parts of up to `PART_SIZE` characters.

    With `cut_words`, what has no white space for `LONGEST_WORD` characters is cut there: splitting punctuation
    off a word takes time that grows with the square of its length.
    """
    start = 0
    while start < len(text):
        end = start + PART_SIZE
        if cut_words and (found := _LONG_WORD.search(text, start, end)):
            end = found.end()
        elif end < len(text):
            end = next((i + 1 for i in range(end - 1, start, -1) if text[i].isspace()), end)
        yield text[start:end]
        start = end


def joined(text: str, parts: Sequence[Annotation]) -> Annotation:
    """The annotation of a text from those of its parts, which follow one another without a gap."""
    if len(parts) == 1:
        return parts[0]
    offsets = list(accumulate((len(part.text) for part in parts), initial=0))
    counts = list(accumulate(map(len, parts), initial=0))

    def chained(fields: Sequence[Sequence[Any]]) -> Sequence[Any]:
        missing = [field for field in fields if isinstance(field, Missing)]
        return missing[0] if missing else tuple(chain.from_iterable(fields))

    def shifted(fields: Sequence[Sequence[Span]]) -> Sequence[Span]:
        spans = [
            field
            if isinstance(field, Missing)
            else [Span(at + start, at + end, label) for start, end, label in field]
            for at, field in zip(counts, fields, strict=False)
        ]
        return chained(spans)

    return Annotation(
        text,
        tuple(at + start for at, part in zip(offsets, parts, strict=False) for start in part.starts),
        tuple(at + end for at, part in zip(offsets, parts, strict=False) for end in part.ends),
        chained([part.lemmas for part in parts]),
        chained([part.pos for part in parts]),
        chained([part.stops for part in parts]),
        shifted([part.sentences for part in parts]),
        shifted([part.chunks for part in parts]),
        shifted([part.entities for part in parts]),
    )


def _valid(text: str) -> str:
    """The text with a character of the same length for each lone surrogate, which spaCy refuses."""
    return _SURROGATES.sub("\ufffd", text)


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Runs of texts: up to `TEXTS_AT_ONCE` and up to `PART_SIZE` characters, or one text that is longer."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == TEXTS_AT_ONCE or size + len(text) > PART_SIZE):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch
