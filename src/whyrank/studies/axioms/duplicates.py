"""Axioms on texts that are made from a document, and LNC2: a text against itself written several times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from whyrank.core import Codes, Flags, Ints, Progress, WhyrankError, check_whole
from whyrank.studies.axioms.axiom import Axiom, Sampler
from whyrank.studies.axioms.view import View, Views, spelled
from whyrank.studies.contrasts import Contrasts, Label, Pair
from whyrank.studies.pools import Pool

_TOO_LONG = "too long to be copied"
_CHARACTERS = 1 << 24  # of a text with its copies: a token may be megabytes long


class Made(NamedTuple):
    """Two texts made from one document, the winner first, with an id for each; `query` where it is written anew."""

    texts: tuple[str, str]
    doc_ids: tuple[str, str]
    labels: Mapping[str, Label] = {}
    query: str = ""


@dataclass(frozen=True, kw_only=True)
class Synthetic(Axiom):
    """An axiom on texts made from one document; between two documents as they are it has no preference."""

    compares: ClassVar[str]

    def sources(self, view: View) -> Codes:
        """The documents of a view that texts can be made from."""
        raise NotImplementedError(f"axiom {self.name} does not say which documents it takes")

    def texts(self, view: View, documents: Codes) -> Iterator[Made | str]:
        """For each of these documents the two texts, or the reason why there are none."""
        raise NotImplementedError(f"axiom {self.name} does not say how it makes texts")

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Nothing follows for two documents: an error that says so."""
        raise WhyrankError(
            f"axiom {self.name} compares {self.compares}, so it has no preference between two documents; "
            "ask for its contrasts, and leave it out of combinations"
        )

    def contrasts(self, collection: Any) -> Contrasts:
        """The made texts of all documents; of a sample of the documents where they are more than `most`."""
        views, sampler = self.views(collection), Sampler(self.most, self.seed)
        for view in views:
            sampler.offer(view, self.sources(view)[:, None])
        dropped: Counter[str] = Counter(self.remarks(views))
        pairs = list(self._pairs(views, sampler, dropped))
        return Contrasts.from_pairs(pairs, dropped={**+dropped, **sampler.dropped()})

    def _pairs(self, views: Views, sampler: Sampler, dropped: Counter[str]) -> Iterator[Pair]:
        drawn = {pool.query_id: rows[:, 0] for pool, rows in sampler.blocks()}
        with Progress(f"making texts for {self.name}", sampler.held) as progress:
            for view in views:
                documents = drawn.get(view.pool.query_id, np.empty(0, np.int32))
                yield from _kept(view.pool, documents, self.texts(view, documents), dropped)
                progress.step(len(documents))


@dataclass(frozen=True, kw_only=True)
class LNC2(Synthetic):
    """A text written k times does not score lower than the text itself.

    Original: for any k > 1, |D1| = k |D2| and c(w, D1) = k c(w, D2) for all words w imply S(Q, D1) >= S(Q, D2).
    Adapted: D1 is made: D2 written k times, with blanks between, as often as fits into `max_tokens` tokens (twice
    where there is no such limit); `copies` fixes k. Texts for which k would be below 2 are left out, and so are those
    of which the analyzer does not find k times the tokens in D1, or whose copies exceed 16 million characters.
    Formula: 1 <= |D| <= max_tokens / 2, k = floor(max_tokens / |D|), D1 = D D ... D (k times), D2 = D.
    Conclusion: S(Q, D1) >= S(Q, D2).
    Compat: every token is repeated k times in its place; both texts and the query are tokens joined by blanks, pieces
    of words without their mark `##`. A piece that the analyzer splits when it stands alone counts as what it becomes,
    so that the copies fit into `max_tokens`. The published figure for DistilBERT asks for a higher score, that for
    query likelihood does not: `conclusion=strict` gives the former.
    Paper: Fang, Tao and Zhai, "A formal study of information retrieval heuristics", SIGIR 2004; adapted in Câmara and
    Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020.
    """

    copies: int | None = None

    name: ClassVar[str] = "LNC2"
    favours: ClassVar[str] = "the text written several times"
    compares: ClassVar[str] = "a text with copies of itself"
    strict: ClassVar[bool] = False
    not_filled: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.copies is not None:
            check_whole("copies", self.copies, 2)

    def sources(self, view: View) -> Codes:
        """The documents that fit at least twice."""
        return np.flatnonzero(self._times(view.lengths)).astype(np.int32)

    def texts(self, view: View, documents: Codes) -> Iterator[Made | str]:
        """Each text after its copies."""
        return self._in_turn(view, documents) if self.compat is None else self._in_place(view, documents)

    def remarks(self, views: Views) -> Mapping[str, int]:
        """Texts without tokens, and those that are too long to be copied."""
        empty = sum(int((view.lengths == 0).sum()) for view in views)
        taken = sum(len(self.sources(view)) for view in views)
        return {"without tokens": empty, _TOO_LONG: sum(map(len, views)) - taken - empty}

    def _times(self, lengths: Ints) -> Ints:
        """How often each text is written; 0 for one that is left out."""
        room = np.full(len(lengths), self.copies or 2)
        if self.max_tokens is not None:
            room = self.max_tokens // np.maximum(lengths, 1)
        times = room if self.copies is None else np.where(room >= self.copies, self.copies, 0)
        return np.where((lengths > 0) & (times >= 2), times, 0)

    def _in_turn(self, view: View, documents: Codes) -> Iterator[Made | str]:
        """Copies of the whole text, one after the other."""
        texts = [view.pool.texts[i] for i in documents.tolist()]
        times = _writable(self._times(view.lengths)[documents], texts)
        copied = [" ".join([text] * k) for text, k in zip(texts, times, strict=True)]
        right = _repeated(view, documents, times, copied)
        for i, k, both, same in zip(documents.tolist(), times, zip(copied, texts, strict=True), right, strict=True):
            odd = "analysed otherwise when copied" if k else _TOO_LONG
            yield _copied(view, i, k, both) if k and same else odd

    def _in_place(self, view: View, documents: Codes) -> Iterator[Made | str]:
        """Copies of each token beside it; tokens that become several when they stand alone take room as these."""
        analyzer = view.pool.pools.analyzer
        query = " ".join(map(spelled, analyzer.query_terms(view.pool.query)))
        words = [[spelled(analyzer.vocabulary.terms[token]) for token in view.tokens(i)] for i in documents.tolist()]
        texts = [" ".join(each) for each in words]
        alone = np.diff(analyzer.docs(texts).offsets)
        times = _writable(self._times(np.maximum(view.lengths[documents], alone)), texts)
        for i, k, each, text in zip(documents.tolist(), times, words, texts, strict=True):
            copied = " ".join(word for word in each for _ in range(k))
            yield _copied(view, i, k, (copied, text))._replace(query=query) if k else _TOO_LONG


def _writable(times: Ints, texts: list[str]) -> list[int]:
    """How often each text is written; 0 for those that would become too large."""
    sizes = np.array([len(text) for text in texts], dtype=np.int64)
    kept: list[int] = np.where(times * sizes <= _CHARACTERS, times, 0).tolist()
    return kept


def _copied(view: View, document: int, k: int, texts: tuple[str, str]) -> Made:
    doc_id = view.pool.doc_ids[document]
    return Made(texts, (f"{doc_id}*{k}", doc_id), {"copies": k})


def _repeated(view: View, documents: Codes, times: list[int], copied: list[str]) -> list[bool]:
    """Whether the analyzer finds in each copied text the tokens of the document so many times over."""
    found = view.pool.pools.analyzer.docs(copied)
    rows = zip(documents.tolist(), times, pairwise(found.offsets), strict=True)
    return [np.array_equal(np.tile(view.tokens(i), k), found.ids[a:b]) for i, k, (a, b) in rows]


def _kept(pool: Pool, documents: Codes, made: Iterator[Made | str], dropped: Counter[str]) -> Iterator[Pair]:
    for document, each in zip(documents.tolist(), made, strict=True):
        if isinstance(each, str):
            dropped[each] += 1
            continue
        labels = {"query_id": pool.query_id, "doc_ids": each.doc_ids, **_relevance(pool, document), **each.labels}
        yield Pair(each.query or pool.query, each.texts, labels)


def _relevance(pool: Pool, document: int) -> dict[str, Any]:
    """The grade of the document that both texts are made from."""
    grade, grades = float(pool.relevance[document]), pool.pools.collection.grades
    if math.isnan(grade):
        return {"relevance": (grade, grade), "relevance_group": "unjudged"}
    return {"relevance": (int(grade), int(grade)), "relevance_group": grades.group(int(grade))}
