"""Bitext: chunks of relevant texts beside the queries that they answer.

    from whyrank.data import open_collection
    from whyrank.tables.bitext import make_bitext
    bitext = make_bitext(open_collection("sample"), "lucene")

A text is cut into chunks of comparable length, each beside the whole query (Boytsov and Kolter, "Exploring Classic
and Neural Lexical Translation Models for Information Retrieval", ECIR 2021). The source is the document side, the
target the query side. Token ids go to memory-mapped files once they are many, so that texts may exceed memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from whyrank.core.checks import check_whole
from whyrank.core.errors import WhyrankError
from whyrank.core.progress import Progress, track
from whyrank.core.protocols import Codes, Flags, Ints
from whyrank.data import Collection
from whyrank.data.disk import texts_of
from whyrank.tables.cutting import only
from whyrank.tables.growing import HELD
from whyrank.tables.numbering import by_frequency, counted, renumber
from whyrank.tables.pairing import Making, PairWriter, Sides
from whyrank.text import Analyzer, Tokens, analyzers

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
