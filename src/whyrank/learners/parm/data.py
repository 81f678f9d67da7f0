"""What PaRM learns from: queries with candidate texts and the target's scores, and their terms in parts of BM25."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import Progress, WhyrankError, generator
from whyrank.training import BEST, Distillation, Examples, distillation_set

if TYPE_CHECKING:
    from whyrank.rankers.lexical import LexicalIndex

# Queries and candidate texts: the collections' own queries or cuts of texts, and what BM25 finds.

Numbers = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float32]
DRAWN = (3, 3, 1)  # of BM25's first ten, of its next ones, at random
DEPTH = 60
_CHUNK = 5000  # queries that are searched for at a time


class Asked(NamedTuple):
    """Queries, texts, and the text that each query belongs to."""

    queries: Sequence[str]
    docs: Sequence[str]
    source: Numbers


def asked(data: Mapping[str, Any], seed: int = 0) -> Asked:
    """The queries and texts that the `data` of a recipe names.

    The judged queries of `collection`, and queries cut from the texts of the collections that `cut` names (or of all,
    where it is a number), but none that the collections `without` have.
    """
    own = {name: data[name] for name in ("collection", "without", "limit") if data.get(name)}
    cut, names = data.get("cut", {}), data.get("collection") or []
    if not isinstance(cut, Mapping):
        cut = dict.fromkeys([names] if isinstance(names, str) else names, cut) if cut else {}
    cuts = {str(name): int(n) for name, n in cut.items()}
    found = distillation_set({**own, "cut": cuts, "teachers": {"": 1.0}}, seed)
    assert isinstance(found.sampler, Distillation)
    if len(found.docs) < 2:
        raise WhyrankError("data: there are fewer than two texts to compare; name a larger collection")
    return Asked(found.queries, found.docs, found.sampler.source)


def candidates(index: LexicalIndex, given: Asked, data: Mapping[str, Any], seed: int = 0) -> Numbers:
    """The candidates of each query, all different: its own text, BM25's best and next best, some at random."""
    drawn, depth = tuple(data.get("candidates", DRAWN)), int(data.get("depth", DEPTH))
    random, width = generator(seed, "parm", "candidates"), min(1 + sum(drawn), len(given.docs))
    found = np.empty((len(given.queries), width), np.int32)
    with Progress("finding candidates: queries", len(given.queries)) as progress:
        for number, ranked in enumerate(_ranked(index, given.queries, depth)):
            source = int(given.source[number])
            others = [doc for doc in ranked if doc != source]
            row = [source]
            for part, n in ((others[:BEST], drawn[0]), (others[BEST:], drawn[1])):
                row += [part[i] for i in random.permutation(len(part))[:n].tolist()]
            known = dict.fromkeys(row[:width])
            while len(known) < width:
                known.update(dict.fromkeys(random.integers(0, len(given.docs), width - len(known)).tolist()))
            found[number] = list(known)
            progress.step()
    return found


def _ranked(index: LexicalIndex, queries: Sequence[str], depth: int) -> Iterator[list[int]]:
    """BM25's best texts of each query."""
    for start in range(0, len(queries), _CHUNK):
        chunk = {str(i): query for i, query in enumerate(queries[start : start + _CHUNK])}
        yield from ([int(doc) for doc in found] for found in index.search(chunk, depth).values())


# The terms of queries and texts, and the parts of BM25 that phase 2 puts together again.


class Terms(NamedTuple):
    """The analysed terms of queries and texts, and what BM25 makes of them.

    Attributes:
        names: all terms.
        query: the distinct terms of each query, one after the other.
        weight: what BM25 gives each of these: idf * asked * (k1 + 1).
        query_ends: 0 and the end of each query's terms.
        absent: whether a text lacks the term: [query terms, candidates].
        doc: the distinct terms of each text, one after the other.
        doc_ends: 0 and the end of each text's terms.
        norm: K of each text: k1 (1 - b + b length / average length).
        value: what the terms that do occur give: [queries, candidates].
    """

    names: Sequence[str]
    query: Numbers
    weight: Scores
    query_ends: npt.NDArray[np.int64]
    absent: npt.NDArray[np.bool_]
    doc: Numbers
    doc_ends: npt.NDArray[np.int64]
    norm: Scores
    value: Scores


def terms_of(index: LexicalIndex, queries: Sequence[str], doc: Numbers) -> Terms:
    """The terms of all queries and texts; `doc` holds the candidates of each query by row of the index."""
    from whyrank.rankers.lexical import kernels, weighed

    vocabulary = index.ranker.analyzer.vocabulary
    flat, parts, absent, values = [np.zeros(0, np.int32)], [np.zeros(0)], [], []
    with Progress("analysing queries", len(queries)) as progress:
        for query, rows in zip(queries, doc, strict=True):
            terms, weights = index.ranker.query(query)
            tf = np.zeros((len(rows), len(terms)), np.int32)
            if len(terms):
                slots = np.full(len(vocabulary), -1, np.int32)
                kernels.scan(index.tokens.ids, index.tokens.offsets, rows, terms, slots, tf)
            flat.append(terms)
            parts.append(weights.weights)
            absent.append((tf == 0).T)
            values.append(weighed(weights, tf, index.lengths[rows]))
            progress.step()
    size = int(index.tokens.ids.max(initial=0)) + 1
    owner = np.repeat(np.arange(len(index.lengths)), index.lengths)
    distinct = np.unique(owner * size + index.tokens.ids)  # the distinct terms of each text
    counts = np.bincount(distinct // size, minlength=len(index.lengths))
    asked, norm = np.concatenate(flat), index.ranker.query(queries[0])[1]
    used, place = np.unique(np.concatenate([asked, (distinct % size).astype(np.int32)]), return_inverse=True)
    return Terms(
        [vocabulary.terms[i] for i in used], place[: len(asked)].astype(np.int32),
        np.concatenate(parts).astype(np.float32), _ends([len(one) for one in flat[1:]]),
        np.concatenate([np.zeros((0, doc.shape[1]), np.bool_), *absent]), place[len(asked) :].astype(np.int32),
        _ends(counts), (norm.a + norm.b * index.lengths).astype(np.float32),
        np.stack(values).astype(np.float32),
    )  # fmt: skip


def _ends(sizes: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))])


# Examples that are drawn from the candidates, in each epoch anew.

PARTS = 2
CUTS = 2  # uniform draws that cut a query


def draws_of(texts: int) -> int:
    """How many draws an example of so many texts needs: two for the query, one for each part and text."""
    return CUTS + PARTS * texts


class Candidates(NamedTuple):
    """Texts of each query, the first of which is the one that it belongs to, and what the target says of them.

    Attributes:
        doc: numbers of the texts, [queries, candidates].
        scores: the target's, of the same shape.
    """

    doc: Numbers
    scores: Scores

    def scaled(self) -> Candidates:
        """Scores in units of the spread of the differences between candidates of one query."""
        spread = float(np.sqrt(2 * self.scores.astype(np.float64).var(axis=1).mean()))
        return Candidates(self.doc, (self.scores / (spread or 1.0)).astype(np.float32))


class Drawn:
    """Draws examples from candidates: so many texts of each query and epoch, with the draws that phase 1 needs.

    The `doc` of an example holds positions in the table of candidates, counted row by row; behind the target's scores
    in `target` stand the draws. What a query gets in an epoch depends on the seed, the epoch and the set of queries
    alone, not on batches.
    """

    def __init__(
        self, given: Candidates, queries: npt.NDArray[np.int64], texts: int, positives: str, what: str,
        own: bool = True,
    ) -> None:  # fmt: skip
        """Draw for some of the queries; `what` names the phase, so that its draws are its own.

        Without `own`, a query's first candidate, the text that it belongs to, is never drawn.
        """
        self.given, self.queries, self.what, self.first = given, queries, what, int(not own)
        self.gold, self.texts = positives == "gold", min(texts, given.doc.shape[1] - self.first)

    def epoch(self, seed: int, epoch: int) -> Examples:
        """One example per query, in the order of this epoch."""
        random = generator(seed, "parm", self.what, str(epoch))
        n, width = len(self.queries), self.given.doc.shape[1]
        keys = random.random((n, width), dtype=np.float32)
        if self.gold:
            keys[:, 0] = -1
        keys[:, : self.first] = 2
        column = np.argsort(keys, axis=1)[:, : self.texts]
        draws = np.concatenate([random.random((n, 2)), random.standard_normal((n, draws_of(self.texts) - 2))], axis=1)
        order = random.permutation(n)
        scores = np.take_along_axis(self.given.scores[self.queries], column, axis=1)
        if not self.gold:
            best = np.argsort(-scores, axis=1, kind="stable")
            column, scores = np.take_along_axis(column, best, axis=1), np.take_along_axis(scores, best, axis=1)
        place = self.queries[:, None] * self.given.doc.shape[1] + column
        target = np.concatenate([scores, draws], axis=1).astype(np.float32)
        return Examples(self.queries[order].astype(np.int32), place[order].astype(np.int32), target[order])


def split_queries(n: int, share: float, seed: int = 0) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The queries to learn from and those that are held out, at most one in two."""
    order = generator(seed, "parm", "held out").permutation(n)
    held = min(round(share * n), n // 2)
    return np.sort(order[held:]), np.sort(order[:held])
