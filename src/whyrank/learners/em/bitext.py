"""Bitext: chunks of relevant texts beside the queries that they answer.

A text is cut into chunks of comparable length, each beside the whole query (Boytsov and Kolter, "Exploring Classic
and Neural Lexical Translation Models for Information Retrieval", ECIR 2021). The source is the document side, the
target the query side. Token ids go to memory-mapped files once they are many, so that texts may exceed memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import Codes, Flags, Ints, Progress, WhyrankError, generator, temporary_room, track
from whyrank.data import Collection, texts_of
from whyrank.text import Analyzer, Tokens, analyzers

HELD = 1 << 28  # bytes of one growing array that stay in memory
_TEXTS = 4096  # judged pairs whose texts are in memory
_IDS = 1 << 24  # token ids that are renumbered in one go
_EMPTY = "no query shares a judgement with a text that has words; look at the analyzer, the fertility and the sample"


class Growing:
    """One array in the making; `finish` gives it, in memory or mapped from a file without a name."""

    def __init__(self, kind: type[np.generic], held: int | None = None, remedy: str = "") -> None:
        """Start empty; beyond `held` bytes everything goes to a temporary file, which the system removes itself.

        `remedy` is what helps, beside more room, where that file cannot be written.
        """
        self._kind, self._held, self._size = np.dtype(kind), HELD if held is None else held, 0
        self._remedy, self._parts = remedy, list[npt.NDArray[Any]]()
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        """How many numbers there are so far."""
        return self._size

    def add(self, part: npt.NDArray[Any]) -> None:
        """Append numbers."""
        self._size += len(part)
        self._parts.append(np.ascontiguousarray(part, self._kind))
        if self._size * self._kind.itemsize <= self._held:
            return
        with temporary_room(self._remedy):
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="whyrank-")  # noqa: SIM115  (it lives as long as the array)
            while self._parts:
                self._file.write(self._parts.pop(0).view(np.uint8).data)

    def finish(self) -> npt.NDArray[Any]:
        """The whole array, which can be written to."""
        if self._file is None:
            whole = np.concatenate(self._parts) if self._parts else np.empty(0, self._kind)
            self._parts = []
            return whole
        with temporary_room(self._remedy):
            self._file.flush()
        mapped = np.memmap(self._file, self._kind, "r+", shape=(self._size,))
        self._file.close()  # the mapping stays, and with it what is in the file
        return np.asarray(mapped)


@dataclass(frozen=True, eq=False)
class Bitext:
    """Pairs of token sequences: pair `i` has the source tokens `source[source_offsets[i]:source_offsets[i + 1]]`.

    Token ids count from 0, the most frequent term first. `group` says which query a pair comes from, so that a query
    can be held out as a whole. No side of a pair is empty.
    """

    source: Codes
    source_offsets: Ints
    target: Codes
    target_offsets: Ints
    source_terms: Sequence[str]
    target_terms: Sequence[str]
    source_counts: Ints
    target_counts: Ints
    group: Codes
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many pairs there are."""
        return len(self.group)

    @cached_property
    def links(self) -> int:
        """How many times a source token meets a target token, NULL left out."""
        return int(np.diff(self.source_offsets) @ np.diff(self.target_offsets))

    def pair(self, i: int) -> tuple[list[str], list[str]]:
        """The terms of one pair: source, then target."""
        source = self.source[self.source_offsets[i] : self.source_offsets[i + 1]]
        target = self.target[self.target_offsets[i] : self.target_offsets[i + 1]]
        return [self.source_terms[j] for j in source], [self.target_terms[j] for j in target]

    def __repr__(self) -> str:
        """The sizes."""
        return f"Bitext({len(self):,} pairs, {self.links:,} links)"


class Making(NamedTuple):
    """How pairs are made of a query and a text; the fields are those of `EM`."""

    ratio: float
    fertility: float
    symmetrise: bool
    sample: float
    seed: int


def judged_bitext(
    collection: Collection, analyzer: str, how: Making, relevant: int | None, most: int | None
) -> Bitext:
    """The bitext of a collection: each query beside the chunks of the texts that are relevant to it."""
    made, texts = analyzers.create(analyzer), list(collection.queries.values())
    judged, notes = _judged(collection, made, collection.grades.relevant if relevant is None else relevant)
    known = None if most is None else _most_frequent(collection, judged, made, most)
    writer = PairWriter(how)
    with Progress("bitext, judged pairs", len(judged)) as progress:
        for start in range(0, len(judged), _TEXTS):
            numbers, doc_ids = zip(*judged[start : start + _TEXTS], strict=True)
            queries = made.queries([texts[number] for number in numbers])
            docs = made.docs(texts_of(collection.docs, doc_ids))
            if known is not None:
                queries, docs = _only(queries, known), _only(docs, known)
            writer.add(queries, docs, numbers)
            progress.step(len(numbers))
    facts = {"collection": collection.name, **made.facts, **how._asdict(), "most": most, **notes}
    return writer.finish(made.vocabulary.terms, facts, f"the bitext of {collection.name} is empty; {_EMPTY}")


def bitext_of(pairs: Iterable[tuple[str, str]], analyzer: str, symmetrise: bool = False) -> Bitext:
    """The bitext of pairs (document text, query text) as they are: no chunks, no filter; empty sides are left out."""
    made = analyzers.create(analyzer)
    writer, rest, number = PairWriter(Making(np.inf, np.inf, symmetrise, 1.0, 0)), iter(pairs), 0
    while block := list(islice(rest, _TEXTS)):
        queries, docs = made.queries([query for _, query in block]), made.docs([text for text, _ in block])
        writer.add(queries, docs, range(number, number + len(block)))
        number += len(block)
    facts = {**made.facts, "symmetrise": symmetrise}
    return writer.finish(made.vocabulary.terms, facts, "the bitext is empty; give pairs with words on both sides")


def _judged(
    collection: Collection, analyzer: Analyzer, relevant: int
) -> tuple[list[tuple[int, str]], dict[str, int]]:
    """The relevant pairs, by the number of the query and the id of the text, and how many could not be used."""
    if not collection.qrels:
        raise WhyrankError(
            f"{collection.name} has no judgements, so no text is known to answer a query; add qrels.txt"
        )
    lengths = np.diff(analyzer.queries(list(collection.queries.values())).offsets)
    if not lengths.any():
        raise WhyrankError(f"no query of {collection.name} has a word under {analyzer.id}; choose another --analyzer")
    found = [
        (number, doc_id)
        for number, query_id in enumerate(collection.queries)
        if lengths[number]
        for doc_id, grade in collection.qrels.get(query_id, {}).items()
        if grade >= relevant
    ]
    kept = [pair for pair in found if pair[1] in collection.docs]
    if not kept:
        raise WhyrankError(f"{collection.name} has no text of grade {relevant} or more, so the bitext would be empty")
    without_words, missing = int((lengths == 0).sum()), len(found) - len(kept)
    return kept, {"queries_without_words": without_words, "texts_missing": missing, "relevant": relevant}


def _most_frequent(collection: Collection, judged: Sequence[tuple[int, str]], analyzer: Analyzer, most: int) -> Flags:
    """Which terms are among the most frequent ones of the judged texts; ties go by spelling."""
    doc_ids, counts = list(dict.fromkeys(doc_id for _, doc_id in judged)), np.zeros(0, np.int64)
    for start in track(range(0, len(doc_ids), _TEXTS), "counting terms, blocks of texts"):
        docs = analyzer.docs(texts_of(collection.docs, doc_ids[start : start + _TEXTS]))
        found = np.bincount(docs.ids, minlength=len(counts))
        found[: len(counts)] += counts
        counts = found
    known = np.zeros(len(counts), np.bool_)
    known[_by_frequency(counts, analyzer.vocabulary.terms)[:most]] = True
    return known


def _only(tokens: Tokens, known: Flags) -> Tokens:
    """The tokens of known terms; terms that were numbered later are unknown too."""
    keep = np.append(known, False)[np.minimum(tokens.ids, len(known))]
    before = np.concatenate([[0], np.cumsum(keep)])
    return Tokens(tokens.ids[keep], before[tokens.offsets])


def _by_frequency(counts: Ints, terms: Sequence[str]) -> Ints:
    """The ids that occur, the most frequent first; ties go by spelling, whatever number a term had before."""
    spelled = np.array(sorted(np.flatnonzero(counts).tolist(), key=terms.__getitem__), np.int64)
    return spelled[np.argsort(-counts[spelled], kind="stable")]


class Chunks(NamedTuple):
    """Chunk `i` belongs to judged pair `pair[i]` and has the tokens `starts[i]` up to `starts[i] + sizes[i]`."""

    pair: Ints
    starts: Ints
    sizes: Ints


def cut(query_sizes: Ints, text_starts: Ints, text_sizes: Ints, ratio: float) -> Chunks:
    """Cut the text of each judged pair from front to back; the last chunk may be short.

    A full chunk has n tokens, the smallest n with n / len(query) >= ratio. It is where a walk over the tokens ends a
    chunk that asks before each token whether the chunk is long enough. A query without tokens gets no chunk.
    """
    lengths = np.maximum(query_sizes, 1)
    full = np.maximum(np.ceil(ratio * lengths).astype(np.int64), 1)
    full -= (full > 1) & ((full - 1) / lengths >= ratio)  # the product may be rounded to the other side
    full += full / lengths < ratio
    counts = np.where(query_sizes > 0, -(-text_sizes // full), 0)
    pair = np.repeat(np.arange(len(counts)), counts)
    before = (np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)) * full[pair]
    return Chunks(pair, text_starts[pair] + before, np.minimum(full[pair], text_sizes[pair] - before))


class Runs(NamedTuple):
    """Runs of tokens somewhere in an array of token ids."""

    ids: Codes
    starts: Ints
    sizes: Ints

    def beside(self, other: Runs) -> Runs:
        """These runs, each followed by the run of the other side."""
        both = np.concatenate([self.ids, other.ids])
        starts = np.stack([self.starts, other.starts + len(self.ids)], axis=1).ravel()
        return Runs(both, starts, np.stack([self.sizes, other.sizes], axis=1).ravel())

    def tokens(self) -> Codes:
        """The token ids of all runs, one run after the other."""
        ends = np.cumsum(self.sizes)
        positions = np.repeat(self.starts - (ends - self.sizes), self.sizes) + np.arange(self.sizes.sum())
        found: Codes = self.ids[positions]
        return found


class PairWriter:
    """Cuts texts into chunks, filters and samples pairs, turns them round; collects token ids and lengths."""

    def __init__(self, how: Making) -> None:
        self._how, self._draw = how, generator(how.seed, "bitext").random
        self._ids, self._sizes = ((Growing(np.int32), Growing(np.int32)) for _ in range(2))  # source and target
        self._group = Growing(np.int32)

    def add(self, queries: Tokens, docs: Tokens, group: Sequence[int]) -> None:
        """Add the pairs of one block: query `i` beside the chunks of document `i`."""
        how, lengths = self._how, np.diff(queries.offsets)
        starts, sizes = docs.offsets[:-1], np.diff(docs.offsets)
        whole = Chunks(np.arange(len(sizes)), starts, sizes)
        chunks = whole if how.ratio == np.inf else cut(lengths, starts, sizes, how.ratio)
        one, other = chunks.sizes, lengths[chunks.pair]
        shorter, longer = np.minimum(one, other), np.maximum(one, other)
        keep = (shorter > 0) & (longer <= how.fertility * np.maximum(shorter, 1))
        if how.sample < 1:
            keep[keep] = self._draw(int(keep.sum())) < how.sample
        chunks = Chunks(*(column[keep] for column in chunks))
        source = Runs(docs.ids, chunks.starts, chunks.sizes)
        target = Runs(queries.ids, queries.offsets[:-1][chunks.pair], lengths[chunks.pair])
        if how.symmetrise:
            source, target = source.beside(target), target.beside(source)
        for side, runs in enumerate((source, target)):
            self._ids[side].add(runs.tokens())
            self._sizes[side].add(runs.sizes)
        self._group.add(np.repeat(np.asarray(group, np.int32)[chunks.pair], 2 if how.symmetrise else 1))

    def finish(self, terms: Sequence[str], facts: Mapping[str, Any], empty: str) -> Bitext:
        """All that was added, terms numbered by frequency on each side; an error, `empty`, when there is no pair."""
        if not len(self._group):
            raise WhyrankError(empty)
        source, target = (ids.finish() for ids in self._ids)
        starts = []
        for sizes in self._sizes:
            starts.append(np.zeros(len(self._group) + 1, np.int64))
            np.cumsum(sizes.finish(), out=starts[-1][1:])
        (source_terms, source_counts), (target_terms, target_counts) = (
            _renumber(ids, terms) for ids in (source, target)
        )
        return Bitext(
            source, starts[0], target, starts[1], source_terms, target_terms, source_counts, target_counts,
            self._group.finish(), facts,
        )  # fmt: skip


def _renumber(ids: Codes, terms: Sequence[str]) -> tuple[list[str], Ints]:
    """Number terms by frequency, in place; the ids may lie on disk, so they are read part by part."""
    parts = [ids[start : start + _IDS] for start in range(0, len(ids), _IDS)]
    counts = np.zeros(len(terms), np.int64)
    for part in parts:
        counts += np.bincount(part, minlength=len(terms))
    order = _by_frequency(counts, terms)
    position = np.full(len(terms), -1, np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    for part in parts:
        part[:] = position[part]
    return [terms[i] for i in order], counts[order]
