"""Axioms on texts that are made from a document, and LNC2: a text against itself written several times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from whyrank.core import Codes, Flags, Ints, Progress, Range, WhyrankError
from whyrank.studies.axioms.axiom import Axiom, Sampler
from whyrank.studies.axioms.view import View, Views, surface_form
from whyrank.studies.contrasts import Contrasts, Label, Pair

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
    makes_texts: ClassVar[bool] = True

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
        drawn = {pool.query_id: rows[:, 0] for pool, rows in sampler.blocks()}
        dropped: Counter[str] = Counter(self.remarks(views))
        pairs: list[Pair] = []
        with Progress(f"making texts for {self.name}", sampler.held) as progress:
            for view in views:
                documents = drawn.get(view.pool.query_id, np.empty(0, np.int32))
                for document, made in zip(documents.tolist(), self.texts(view, documents), strict=True):
                    if isinstance(made, str):
                        dropped[made] += 1
                        continue
                    grade, group = view.pool.judgement(document)  # of the document that both are made from
                    ids: dict[str, Any] = {"query_id": view.pool.query_id, "doc_ids": made.doc_ids}
                    labels = {**ids, "relevance": (grade, grade), "relevance_group": group, **made.labels}
                    pairs.append(Pair(made.query or view.pool.query, made.texts, labels))
                progress.step(len(documents))
        return Contrasts.from_pairs(pairs, dropped={**+dropped, **sampler.drop_counts()})


@dataclass(frozen=True, kw_only=True)
class LNC2(Synthetic):
    """A text written k times does not score lower than the text itself.

    Original: for any k > 1, |D1| = k |D2| and c(w, D1) = k c(w, D2) for all words w imply S(Q, D1) >= S(Q, D2).
    Adapted: D1 is made: D2 written k times, with blanks between, as often as fits into `max_tokens` tokens (twice
    where there is no such limit); `copies` fixes k. Texts for which k would be below 2 are left out. So are those
    of which the analyzer does not find k times the tokens in D1, or whose copies exceed 16 million characters.
    Formula: 1 <= |D| <= max_tokens / 2, k = floor(max_tokens / |D|), D1 = D D ... D (k times), D2 = D.
    Conclusion: S(Q, D1) >= S(Q, D2).
    Compat: every token is repeated k times at its position; both texts and the query are tokens joined by blanks,
    those inside words without their mark `##`. A token that the analyzer splits when it stands alone counts as what
    it becomes, so that the copies fit into `max_tokens`. The published figure for DistilBERT asks for a higher score,
    that for query likelihood does not: `conclusion=strict` gives the former.
    Paper: Fang, Tao and Zhai, "A formal study of information retrieval heuristics", SIGIR 2004; adapted in Câmara and
    Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020.

    Attributes:
        copies: how many copies; `None` takes as many as fit into `max_tokens`.
    """

    copies: Annotated[int, Range(2)] | None = None

    name = "LNC2"
    favours = "the text written several times"
    compares = "a text with copies of itself"
    strict = False
    not_filled = ()

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
        """Copies of the whole text, one after the other; the analyzer must find its tokens so many times over."""
        texts = [view.pool.texts[i] for i in documents.tolist()]
        times = _writable(self._times(view.lengths)[documents], texts)
        copied = [" ".join([text] * k) for text, k in zip(texts, times, strict=True)]
        ids, offsets = view.pool.pools.analyzer.docs(copied)
        for n, (i, k) in enumerate(zip(documents.tolist(), times, strict=True)):
            if not k:
                yield _TOO_LONG
            elif not np.array_equal(np.tile(view.tokens(i), k), ids[offsets[n] : offsets[n + 1]]):
                yield "analysed otherwise when copied"
            else:
                yield _pair_with_copies(view, i, k, (copied[n], texts[n]))

    def _in_place(self, view: View, documents: Codes) -> Iterator[Made | str]:
        """Copies of each token beside it; tokens that become several when they stand alone take room as these."""
        analyzer = view.pool.pools.analyzer
        query = " ".join(map(surface_form, analyzer.query_terms(view.pool.query)))
        words = [
            [surface_form(analyzer.vocabulary.terms[token]) for token in view.tokens(i)] for i in documents.tolist()
        ]
        texts = [" ".join(each) for each in words]
        alone = np.diff(analyzer.docs(texts).offsets)
        times = _writable(self._times(np.maximum(view.lengths[documents], alone)), texts)
        for i, k, each, text in zip(documents.tolist(), times, words, texts, strict=True):
            copied = " ".join(word for word in each for _ in range(k))
            yield _pair_with_copies(view, i, k, (copied, text))._replace(query=query) if k else _TOO_LONG


def _writable(times: Ints, texts: list[str]) -> list[int]:
    """How often each text is written; 0 for those that would become too large."""
    sizes = np.array([len(text) for text in texts], dtype=np.int64)
    kept: list[int] = np.where(times * sizes <= _CHARACTERS, times, 0).tolist()
    return kept


def _pair_with_copies(view: View, document: int, k: int, texts: tuple[str, str]) -> Made:
    doc_id = view.pool.doc_ids[document]
    return Made(texts, (f"{doc_id}*{k}", doc_id), {"copies": k})
