"""What a linguistic pipeline says about a text: parsing with a loaded spaCy pipeline, long texts in parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import accumulate, islice
from typing import Any, NamedTuple

from whyrank.core import WhyrankError
from whyrank.text.annotation.pipelines import find_pipeline, loading

TEXTS_AT_ONCE = 64
PART_SIZE = 100_000  # characters that are parsed at once: memory grows with them
LONGEST_WORD = 1_000
_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD}}}(?=\S)")
_SURROGATES = re.compile("[\ud800-\udfff]")
_PROBE = "The old city wall was built by John Smith in London."


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


@dataclass(frozen=True)
class Missing(Sequence[Any]):
    """Stands for what a pipeline cannot find: looking at it is an error, for "none" would be an answer."""

    what: str
    pipeline: str

    def __len__(self) -> int:
        raise self._error()

    def __getitem__(self, index: Any) -> Any:
        raise self._error()

    def _error(self) -> WhyrankError:
        remedy = "use one with all components, such as en_core_web_sm"
        return WhyrankError(f"the pipeline {self.pipeline} gives no {self.what}; {remedy}")


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
        chunks = probe.has_annotation("DEP") and nlp.vocab.get_noun_chunks is not None
        found = {"parts of speech": probe.has_annotation("POS"), "noun chunks": chunks}
        found["entities"] = probe.has_annotation("ENT_IOB")
        self._missing = {what: Missing(what, identity) for what, known in found.items() if not known}

    def parse(self, texts: Sequence[str]) -> list[Annotation]:
        """Annotate texts that fit in memory together, in order."""
        split = [list(split_text(text, cut_words=self._cut_words)) for text in texts]
        given = [part for parts in split for part in parts]
        at_once = min(TEXTS_AT_ONCE, PART_SIZE // max(map(len, given), default=PART_SIZE))
        with self._nlp.memory_zone():  # the words of these texts are forgotten after it
            docs = self._nlp.pipe(map(_valid, given), batch_size=at_once)
            found = map(self._annotation, given, docs)
            return [concatenate(text, list(islice(found, len(p)))) for text, p in zip(texts, split, strict=True)]

    def _annotation(self, text: str, doc: Any) -> Annotation:
        if doc.text != _valid(text):
            remedy = "use one whose tokeniser keeps every character"
            raise WhyrankError(f"the pipeline {self._identity} changes texts; {remedy}")
        starts = tuple(token.idx for token in doc)
        ends = tuple(token.idx + len(token) for token in doc)
        # a lemma that is the token as the pipeline was given it stands for the token as it was written
        lemmas = tuple(
            text[start:end] if token.lemma_ in ("", token.text) else str(token.lemma_)
            for token, start, end in zip(doc, starts, ends, strict=True)
        )

        def known(what: str, find: Callable[[], Iterator[Any]]) -> Sequence[Any]:
            return self._missing[what] if what in self._missing else tuple(find())

        return Annotation(
            text,
            starts,
            ends,
            lemmas,
            known("parts of speech", lambda: (token.pos_ for token in doc)),
            tuple(token.is_stop for token in doc),
            tuple(Span(found.start, found.end) for found in doc.sents),
            known("noun chunks", lambda: (Span(found.start, found.end) for found in doc.noun_chunks)),
            known("entities", lambda: (Span(found.start, found.end, found.label_) for found in doc.ents)),
        )


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


def concatenate(text: str, parts: Sequence[Annotation]) -> Annotation:
    """The annotation of a text from those of its parts, which follow one another without a gap."""
    if len(parts) == 1:
        return parts[0]
    characters = list(accumulate((len(part.text) for part in parts), initial=0))
    tokens = list(accumulate(map(len, parts), initial=0))

    def chain(name: str, shift: Callable[[Any, int], Any] = lambda value, part: value) -> Sequence[Any]:
        fields = [getattr(part, name) for part in parts]
        missing = [field for field in fields if isinstance(field, Missing)]
        return missing[0] if missing else tuple(shift(value, i) for i, field in enumerate(fields) for value in field)

    def offset(value: int, part: int) -> int:
        return characters[part] + value

    def span(value: Span, part: int) -> Span:
        return Span(tokens[part] + value.start, tokens[part] + value.end, value.label)

    shifts: dict[str, Callable[[Any, int], Any]] = dict.fromkeys(("starts", "ends"), offset)
    shifts |= dict.fromkeys(("sentences", "chunks", "entities"), span)
    fields = {name: chain(name, shift) for name, shift in shifts.items()}
    return Annotation(text, **fields, **{name: chain(name) for name in ("lemmas", "pos", "stops")})


def _valid(text: str) -> str:
    """The text with a character of the same length for each lone surrogate, which spaCy refuses."""
    return _SURROGATES.sub("\ufffd", text)


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
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
