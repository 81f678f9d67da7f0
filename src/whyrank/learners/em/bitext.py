"""Bitext: chunks of relevant texts beside the queries that they answer.

    from whyrank.data import open_collection
    pass  # INNER
    bitext = make_bitext(open_collection("sample"), "lucene")

A text is cut into chunks of comparable length, each beside the whole query (Boytsov and Kolter, "Exploring Classic
and Neural Lexical Translation Models for Information Retrieval", ECIR 2021). The source is the document side, the
target the query side. Token ids go to memory-mapped files once they are many, so that texts may exceed memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import (
    Codes,
    Flags,
    Ints,
    Progress,
    WhyrankError,
    check_flag,
    check_number,
    check_whole,
    generator,
    temporary_room,
    track,
)
from whyrank.data import Collection, texts_of
from whyrank.text import Analyzer, Tokens, analyzers

# Arrays that grow piece by piece; a large one moves to a file without a name, which the system takes away itself.

HELD = 1 << 28  # bytes of one array that stay in memory


class Growing:
    """One array of numbers in the making; `finish` gives it, in memory or mapped from its file."""

    def __init__(self, kind: type[np.generic], held: int = HELD) -> None:
        """Start empty; beyond `held` bytes everything goes to a file in the system's folder for temporary files."""
        self._kind, self._held, self._size = np.dtype(kind), held, 0
        self._pieces: list[npt.NDArray[Any]] = []
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        """How many numbers there are so far."""
        return self._size

    def add(self, piece: npt.NDArray[Any]) -> None:
        """Append numbers."""
        self._size += len(piece)
        self._pieces.append(np.ascontiguousarray(piece, self._kind))
        if self._size * self._kind.itemsize > self._held:
            with temporary_room():
                self._write()

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="whyrank-")  # noqa: SIM115  (it lives as long as the array)
        while self._pieces:
            self._file.write(self._pieces.pop(0).view(np.uint8).data)

    def finish(self) -> npt.NDArray[Any]:
        """The whole array, which can be written to."""
        if self._file is None:
            whole = np.concatenate(self._pieces) if self._pieces else np.empty(0, self._kind)
            self._pieces = []
            return whole
        with temporary_room():
            self._file.flush()
        whole = np.memmap(self._file, self._kind, "r+", shape=(self._size,))
        self._file.close()  # the mapping stays, and with it what is in the file
        return np.asarray(whole)


# Terms numbered by how often they occur, over arrays of ids that may lie on disk.

_NUMBERING_AT_ONCE = 1 << 24  # ids looked at in one go


def counted(ids: Codes, size: int) -> Ints:
    """How often each of `size` ids occurs."""
    found = np.zeros(size, np.int64)
    for part in _parts(ids):
        found += np.bincount(part, minlength=size)
    return found


def by_frequency(counts: Ints, terms: Sequence[str]) -> Ints:
    """The ids that occur, the most frequent first; ties go by spelling, whatever number a term had before."""
    used = np.flatnonzero(counts)
    spelled = sorted(used.tolist(), key=terms.__getitem__)
    return np.array(spelled, np.int64)[np.argsort(-counts[spelled], kind="stable")] if spelled else used


def renumber(ids: Codes, order: Ints, size: int) -> None:
    """Replace, in place, each id by its position in `order`."""
    places = np.full(size, -1, np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    for part in _parts(ids):
        part[:] = places[part]


def _parts(ids: Codes) -> Iterator[Codes]:
    return (ids[start : start + _NUMBERING_AT_ONCE] for start in range(0, len(ids), _NUMBERING_AT_ONCE))


# Texts cut into chunks about as long as the query they answer.


class Chunks(NamedTuple):
    """Chunk `i` belongs to judged pair `pair[i]` and has the tokens `starts[i]` up to `starts[i] + sizes[i]`."""

    pair: Ints
    starts: Ints
    sizes: Ints

    def kept(self, keep: Flags) -> Chunks:
        """The chunks that are marked."""
        return Chunks(self.pair[keep], self.starts[keep], self.sizes[keep])


def chunk_sizes(query_sizes: Ints, ratio: float) -> Ints:
    """How many tokens a full chunk has: the smallest n with n / len(query) >= ratio, for queries of these lengths.

    It is where a walk over the tokens ends a chunk that asks before each token whether the chunk is long enough.
    """
    lengths = np.maximum(query_sizes, 1)
    sizes = np.maximum(np.ceil(ratio * lengths).astype(np.int64), 1)
    sizes -= (sizes > 1) & ((sizes - 1) / lengths >= ratio)  # the product may be rounded to the other side
    return sizes + (sizes / lengths < ratio)


def cut(query_sizes: Ints, text_starts: Ints, text_sizes: Ints, ratio: float) -> Chunks:
    """Cut the text of each judged pair from front to back; the last chunk may be short.

    A query without tokens gets no chunk.
    """
    sizes = chunk_sizes(query_sizes, ratio)
    counts = np.where(query_sizes > 0, -(-text_sizes // sizes), 0)
    pair = np.repeat(np.arange(len(counts)), counts)
    before = (np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)) * sizes[pair]
    return Chunks(pair, text_starts[pair] + before, np.minimum(sizes[pair], text_sizes[pair] - before))


def comparable(one: Ints, other: Ints, fertility: float) -> Flags:
    """Whether both sides have tokens and neither has more than `fertility` times as many as the other."""
    less, more = np.minimum(one, other), np.maximum(one, other)
    found: Flags = (less > 0) & (more <= fertility * np.maximum(less, 1))
    return found


def ranges(starts: Ints, sizes: Ints) -> Ints:
    """The positions of all these runs, one run after the other."""
    ends = np.cumsum(sizes)
    return np.repeat(starts - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)


def only(tokens: Tokens, known: Flags) -> Tokens:
    """The tokens that are in the vocabulary; the others are skipped."""
    keep = known[tokens.ids]
    before = np.concatenate([[0], np.cumsum(keep)])
    return Tokens(tokens.ids[keep], before[tokens.offsets])


# From analysed queries and texts to pairs: cut, filtered, drawn, and turned round.


class Making(NamedTuple):
    """How a bitext is made; see `make_bitext`."""

    ratio: float
    fertility: float
    symmetrise: bool
    sample: float
    seed: int

    def checked(self) -> Making:
        """The same; an error in one line where a value makes no sense."""
        check_number("ratio", self.ratio, 0, strict=True)
        check_number("fertility", self.fertility, 1)
        check_flag("symmetrise", self.symmetrise)
        check_number("sample", self.sample, 0, 1)
        return self


class Sides(NamedTuple):
    """The token ids of both sides of all pairs, where each pair begins, and the group that each belongs to."""

    source: Codes
    source_offsets: Ints
    target: Codes
    target_offsets: Ints
    group: Codes


class PairWriter:
    """Cuts, filters, draws and turns round; collects token ids and lengths."""

    def __init__(self, how: Making, held: int) -> None:
        self._how, self._draw = how, generator(how.seed, "bitext").random
        self._ids = {side: Growing(np.int32, held) for side in ("source", "target")}
        self._sizes = {side: Growing(np.int32, held) for side in ("source", "target")}
        self._group = Growing(np.int32, held)

    def add(self, queries: Tokens, docs: Tokens, group: Sequence[int]) -> None:
        """Add the pairs of one block: query `i` beside the chunks of document `i`."""
        lengths = np.diff(queries.offsets)
        chunks = self._chunks(lengths, docs)
        keep = comparable(chunks.sizes, lengths[chunks.pair], self._how.fertility)
        if self._how.sample < 1:
            keep[keep] = self._draw(int(keep.sum())) < self._how.sample
        chunks = chunks.kept(keep)
        texts = Runs(docs.ids, chunks.starts, chunks.sizes)
        asked = Runs(queries.ids, queries.offsets[:-1][chunks.pair], lengths[chunks.pair])
        self._write(texts, asked, np.asarray(group, np.int32)[chunks.pair])

    def _chunks(self, lengths: Ints, docs: Tokens) -> Chunks:
        starts, sizes = docs.offsets[:-1], np.diff(docs.offsets)
        if self._how.ratio == np.inf:
            return Chunks(np.arange(len(sizes)), starts, sizes)
        return cut(lengths, starts, sizes, self._how.ratio)

    def _write(self, texts: Runs, asked: Runs, group: Codes) -> None:
        turned = self._how.symmetrise
        for side, runs in (("source", texts.beside(asked, turned)), ("target", asked.beside(texts, turned))):
            self._ids[side].add(runs.tokens())
            self._sizes[side].add(runs.sizes)
        self._group.add(np.repeat(group, 2 if turned else 1))

    def finish(self) -> Sides:
        """All that was added."""
        (source, sources), (target, targets) = (
            (self._ids[side].finish(), _offsets(self._sizes[side].finish())) for side in ("source", "target")
        )
        return Sides(source, sources, target, targets, self._group.finish())


class Runs(NamedTuple):
    """Runs of tokens somewhere in an array."""

    ids: Codes
    starts: Ints
    sizes: Ints

    def beside(self, other: Runs, turned: bool) -> Runs:
        """These runs, each followed by the run of the other side where pairs are turned round too."""
        if not turned:
            return self
        both = np.concatenate([self.ids, other.ids])
        starts = np.stack([self.starts, other.starts + len(self.ids)], axis=1).ravel()
        return Runs(both, starts, np.stack([self.sizes, other.sizes], axis=1).ravel())

    def tokens(self) -> Codes:
        """All tokens of all runs."""
        found: Codes = self.ids[ranges(self.starts, self.sizes)]
        return found


def _offsets(sizes: Codes) -> Ints:
    found = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=found[1:])
    return found


_AT_ONCE = 4096  # judged pairs whose texts are in memory


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


def make_bitext(
    collection: Collection,
    analyzer: Analyzer | str,
    ratio: float = 1.5,
    fertility: float = 9,
    symmetrise: bool = True,
    sample: float = 1.0,
    seed: int = 0,
    relevant: int | None = None,
    most: int | None = None,
    held: int = HELD,
) -> Bitext:
    """The bitext of a collection: each query beside the chunks of the texts that are relevant to it.

    Args:
        collection: with judgements.
        analyzer: makes the tokens; what it drops is out of vocabulary and skipped.
        ratio: a chunk ends as soon as it has this many times the tokens of the query; the last one may be shorter.
        fertility: a pair goes when one side has more than this many times the tokens of the other.
        symmetrise: whether each pair is followed by the same pair the other way round.
        sample: the share of the pairs that are drawn, each on its own.
        seed: of the sample.
        relevant: the lowest grade that counts; the collection's own by default.
        most: only so many terms, the most frequent of the judged texts, are in the vocabulary; all by default.
        held: bytes of one array that stay in memory; beyond them it is mapped from a file.
    """
    how = Making(ratio, fertility, symmetrise, sample, seed).checked()
    made = analyzers.create(analyzer) if isinstance(analyzer, str) else analyzer
    judged, notes = _judged(collection, made, collection.grades.relevant if relevant is None else relevant)
    known = _most_frequent(collection, judged, made, most) if most is not None else None
    writer = PairWriter(how, held)
    with Progress("bitext, judged pairs", len(judged)) as progress:
        for block in _blocks(judged):
            writer.add(*_analysed(collection, made, block, known), [judged_pair.query for judged_pair in block])
            progress.step(len(block))
    facts = {"collection": collection.name, **made.facts, **how._asdict(), "most": most, **notes}
    return _finished(
        writer.finish(), made.vocabulary.terms, facts, f"the bitext of {collection.name} is empty; {_EMPTY}"
    )


def bitext_of(
    pairs: Iterable[tuple[str, str]], analyzer: Analyzer | str, symmetrise: bool = False, held: int = HELD
) -> Bitext:
    """The bitext of pairs (document text, query text) as they are: no chunks, no filter; empty sides are left out."""
    made = analyzers.create(analyzer) if isinstance(analyzer, str) else analyzer
    writer, rest, number = PairWriter(Making(np.inf, np.inf, symmetrise, 1.0, 0), held), iter(pairs), 0
    while block := list(islice(rest, _AT_ONCE)):
        queries = made.queries([query for _, query in block])
        writer.add(
            queries, made.docs([text for text, _ in block]), list(range(number, number := number + len(block)))
        )
    facts = {**made.facts, "symmetrise": symmetrise}
    empty = "the bitext is empty; give pairs with words on both sides"
    return _finished(writer.finish(), made.vocabulary.terms, facts, empty)


_EMPTY = "no query shares a judgement with a text that has words; look at the analyzer, the fertility and the sample"


class _Judged(NamedTuple):
    query: int
    query_id: str
    doc_id: str


def _judged(collection: Collection, analyzer: Analyzer, relevant: int) -> tuple[list[_Judged], dict[str, int]]:
    """The relevant pairs in the order of the queries, and how many could not be used."""
    if not collection.qrels:
        raise WhyrankError(
            f"{collection.name} has no judgements, so no text is known to answer a query; add qrels.txt"
        )
    lengths = np.diff(analyzer.queries(list(collection.queries.values())).offsets)
    if not lengths.any():
        raise WhyrankError(f"no query of {collection.name} has a word under {analyzer.id}; choose another --analyzer")
    found = [
        _Judged(number, query_id, doc_id)
        for number, query_id in enumerate(collection.queries)
        if lengths[number]
        for doc_id, grade in collection.qrels.get(query_id, {}).items()
        if grade >= relevant
    ]
    kept = [each for each in found if each.doc_id in collection.docs]
    wordless = int((lengths == 0).sum())
    if not kept:
        raise WhyrankError(f"{collection.name} has no text of grade {relevant} or more, so the bitext would be empty")
    return kept, {"queries_without_words": wordless, "texts_missing": len(found) - len(kept), "relevant": relevant}


def _blocks(judged: Sequence[_Judged]) -> Iterator[Sequence[_Judged]]:
    return (judged[start : start + _AT_ONCE] for start in range(0, len(judged), _AT_ONCE))


def _texts(collection: Collection, block: Sequence[_Judged]) -> list[str]:
    return texts_of(collection.docs, [judged.doc_id for judged in block])


def _analysed(
    collection: Collection, analyzer: Analyzer, block: Sequence[_Judged], known: Flags | None
) -> tuple[Tokens, Tokens]:
    queries = analyzer.queries([collection.queries[judged.query_id] for judged in block])
    docs = analyzer.docs(_texts(collection, block))
    if known is None:
        return queries, docs
    wide = np.zeros(len(analyzer.vocabulary), np.bool_)
    wide[: len(known)] = known
    return only(queries, wide), only(docs, wide)


def _most_frequent(collection: Collection, judged: Sequence[_Judged], analyzer: Analyzer, most: int) -> Flags:
    """Which terms are among the most frequent ones of the judged texts; ties go by spelling."""
    check_whole("most", most, 1)
    texts = list({each.doc_id: each for each in judged}.values())
    counts = np.zeros(0, np.int64)
    for block in track(list(_blocks(texts)), "counting terms, blocks of texts"):
        found = np.bincount(analyzer.docs(_texts(collection, block)).ids, minlength=len(counts))
        found[: len(counts)] += counts
        counts = found
    known = np.zeros(len(counts), np.bool_)
    known[by_frequency(counts, analyzer.vocabulary.terms)[:most]] = True
    return known


def _finished(sides: Sides, terms: Sequence[str], facts: Mapping[str, Any], empty: str) -> Bitext:
    """Number the terms by frequency on each side; an error when there is no pair."""
    if not len(sides.group):
        raise WhyrankError(empty)
    source_terms, source_counts = _numbered(sides.source, terms)
    target_terms, target_counts = _numbered(sides.target, terms)
    return Bitext(
        sides.source, sides.source_offsets, sides.target, sides.target_offsets, source_terms, target_terms,
        source_counts, target_counts, sides.group, dict(facts),
    )  # fmt: skip


def _numbered(ids: Codes, terms: Sequence[str]) -> tuple[list[str], Ints]:
    counts = counted(ids, len(terms))
    order = by_frequency(counts, terms)
    renumber(ids, order, len(terms))
    return [terms[i] for i in order], counts[order]
