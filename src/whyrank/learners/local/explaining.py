"""Local explanations of ranked lists: the words for which a ranker puts the best documents of a query on top.

`occlusion` and `lime` score texts with some of their terms taken out. A text is cut into words at white space; a word
belongs to the terms that the analyzer makes of it. To take a term out is to take out every word that belongs to it.
Words with a term of the query stay: else "tenant" would have the credit of the "landlord" that goes with it in
"landlord-tenant". `bm25` looks for the terms that a query lacks for BM25 to order the list in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whyrank.core import Codes, Flags, Floats, Ranker, generator
from whyrank.evaluation.fidelity import dense_ranks, greedy
from whyrank.rankers.lexical import LexicalRanker, Weights, kernels
from whyrank.scoring import Engine, Failure
from whyrank.text import Analyzer, Tokens

if TYPE_CHECKING:
    from whyrank.learners.local.learner import LocalToGlobal

WIDTH = 0.25  # of the kernel, in cosine distances from the whole text
ALPHA = 1.0  # of the ridge
ROUNDING = 1e-12  # of the largest score: a coefficient as small is rounding, as of scores that are all equal
CHARACTERS = 50_000_000  # of changed texts that are scored together: those of a long text would fill any memory
DIGITS = 6  # weights are compared with so many digits of the largest one; the rest depends on batches
GAIN = 1e-9  # a smaller rise of tau-b is rounding


@dataclass(frozen=True, eq=False)
class MaskedText:
    """A text and the terms that can be taken out of it, in the order in which they appear."""

    words: Sequence[str]
    owners: Sequence[Sequence[int]]
    terms: Sequence[str]

    @classmethod
    def of(cls, text: str, analyzer: Analyzer, kept: Collection[str]) -> MaskedText:
        """Cut a text into words; those with one of the terms `kept` cannot be taken out."""
        words = text.split()
        tokens = analyzer.docs(words)
        names, number = analyzer.vocabulary.terms, dict[str, int]()
        owners = []
        for i in range(len(words)):
            own = [names[t] for t in tokens.ids[tokens.offsets[i] : tokens.offsets[i + 1]].tolist()]
            stays = any(term in kept for term in own)
            owners.append([] if stays else [number.setdefault(term, len(number)) for term in own])
        return cls(words, owners, list(number))

    def keep(self, mask: Flags) -> str:
        """The text with those terms alone that the mask keeps."""
        return " ".join(
            word for word, own in zip(self.words, self.owners, strict=True) if all(mask[term] for term in own)
        )


def occlusion_masks(terms: int) -> Iterator[Flags]:
    """The whole text, and then one text without each term; a long text has too many to hold all masks at once."""
    yield np.ones(terms, np.bool_)
    for term in range(terms):
        yield np.arange(terms) != term


def occlusion_weights(scores: Floats) -> Floats:
    """How far the score falls without each term; 0 where a score is missing."""
    found: Floats = np.nan_to_num(scores[0] - scores[1:], nan=0.0, posinf=0.0, neginf=0.0)
    return found


def lime_masks(terms: int, samples: int, random: np.random.Generator) -> Flags:
    """The whole text, and then random ones: 1 to all terms are taken out, each number as likely as the others."""
    taken = random.integers(1, terms + 1, size=samples - 1)
    order = random.permuted(np.tile(np.arange(terms), (samples - 1, 1)), axis=1)
    return np.concatenate([np.ones((1, terms), np.bool_), order >= taken[:, None]])


def lime_weights(masks: Flags, scores: Floats) -> Floats:
    """Coefficients of a linear model of the scores around the whole text; texts without a score are left out.

    A text counts exp(-d^2 / (2 width^2)) with d = 1 - sqrt(share of terms kept), its cosine distance from the whole
    one. Ribeiro, Singh and Guestrin, "Why Should I Trust You?", KDD 2016.
    """
    finite = np.isfinite(scores)
    if not finite.any():
        return np.zeros(masks.shape[1])
    kept, known = masks[finite].astype(np.float64), scores[finite]
    distance = 1 - np.sqrt(kept.mean(axis=1))
    found = ridge(kept, known, np.exp(-(distance**2) / (2 * WIDTH**2)), ALPHA)
    return np.where(np.abs(found) > ROUNDING * np.abs(known).max(), found, 0.0)


def ridge(columns: Floats, values: Floats, weights: Floats, alpha: float) -> Floats:
    """The b of weighted ridge regression: sum of w (v - c - x b)^2 + alpha |b|^2 is smallest; c is free.

    The system has a line for each column or each value, whichever are fewer: a long text has thousands of columns.
    """
    share, root = weights / weights.sum(), np.sqrt(weights)
    x, v = root[:, None] * (columns - share @ columns), root * (values - share @ values)
    rows, wide = x.shape
    if wide <= rows:
        return np.asarray(np.linalg.solve(x.T @ x + alpha * np.eye(wide), x.T @ v))
    return np.asarray(x.T @ np.linalg.solve(x @ x.T + alpha * np.eye(rows), v))


class RankedList(NamedTuple):
    """A query with its terms as the analyzer writes them, and its documents, best first, with the target's scores."""

    query_id: str
    query: str
    terms: Sequence[str]
    texts: Sequence[str]
    scores: Floats


def explain_lists(
    lists: Sequence[RankedList], target: Ranker, engine: Engine, bm25: LexicalRanker, how: LocalToGlobal
) -> tuple[list[list[str]], list[Failure]]:
    """The words of each list, best first, and the pairs that the target has no finite score for.

    The analyzer and the statistics are those of `bm25`.
    """
    if how.method == "bm25":
        sizes = how.explained, how.pool, how.words
        return [expansion(bm25, each.query, each.texts, each.scores, *sizes) for each in lists], []
    docs = list(_changed_docs(lists, bm25, how))
    scores: list[list[float]] = [[] for _ in docs]
    failures: list[Failure] = []
    for some in _in_parts((i, text) for i, doc in enumerate(docs) for text in doc.texts()):
        query: Codes = np.array([docs[i].number for i, _ in some], np.int32)
        changed: Codes = np.arange(len(some), dtype=np.int32)
        found = engine.score(target, [each.query for each in lists], [text for _, text in some], query, changed)
        failures += found.failures
        for (i, _), score in zip(some, found.values.tolist(), strict=True):
            scores[i].append(score)
    totals: list[dict[str, float]] = [{} for _ in lists]
    for doc, values in zip(docs, scores, strict=True):
        total = totals[doc.number]
        for term, weight in zip(doc.text.terms, doc.weights(np.array(values)).tolist(), strict=True):
            total[term] = total.get(term, 0.0) + weight
    return [best_words(total, how.words) for total in totals], failures


def best_words(weights: Mapping[str, float], most: int) -> list[str]:
    """The terms of the largest positive weights; those that differ by rounding alone in alphabetical order."""
    largest = max(weights.values(), default=0.0)
    if not largest > 0:
        return []
    shares = {term: round(weight / largest, DIGITS) for term, weight in weights.items()}
    positive = [term for term, share in shares.items() if share > 0]
    return sorted(positive, key=lambda term: (-shares[term], term))[:most]


@dataclass(frozen=True, eq=False)
class _ChangedDoc:
    """One document of one list, and the terms to keep in each of its changed texts; None for occlusion."""

    number: int
    text: MaskedText
    masks: Flags | None

    def texts(self) -> Iterator[str]:
        masks = occlusion_masks(len(self.text.terms)) if self.masks is None else self.masks
        return (self.text.keep(mask) for mask in masks)

    def weights(self, scores: Floats) -> Floats:
        return occlusion_weights(scores) if self.masks is None else lime_weights(self.masks, scores)


def _changed_docs(lists: Sequence[RankedList], bm25: LexicalRanker, how: LocalToGlobal) -> Iterator[_ChangedDoc]:
    for number, each in enumerate(lists):
        for doc in each.texts[: how.explained]:
            text = MaskedText.of(doc, bm25.analyzer, frozenset(each.terms))
            if text.terms:
                random = generator(how.seed, "lime", each.query, doc)
                lime = how.method == "lime"
                masks = lime_masks(len(text.terms), how.samples, random) if lime else None
                yield _ChangedDoc(number, text, masks)


def _in_parts(texts: Iterable[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """As many texts at a time as memory holds with ease."""
    some: list[tuple[int, str]] = []
    size = 0
    for each in texts:
        some.append(each)
        size += len(each[1])
        if size > CHARACTERS:
            yield some
            some, size = [], 0
    if some:
        yield some


def expansion(
    bm25: LexicalRanker, query: str, texts: Sequence[str], scores: Floats, top: int, pool: int, most: int
) -> list[str]:
    """The terms, best first, that must be added to a query so that BM25 orders a list as another ranker does.

    The terms of the best documents are tried, and the one that raises Kendall's tau-b between BM25 and the ranker
    most is added, again and again, as long as there is one that raises it. Llordes et al., "Explain like I am BM25:
    Interpreting a Dense Model's Ranked-List with a Sparse Approximation", SIGIR 2023.

    Args:
        bm25: the ranker whose order is to be brought near.
        query: the query.
        texts: the list, best first.
        scores: what the ranker to be explained gave them.
        top: terms come from so many of the best texts.
        pool: so many of them are tried, by what they would add to the BM25 scores of these texts.
        most: so many are given at most.
    """
    if len(texts) < 2 or scores.min() == scores.max():
        return []
    tokens, rows, names = bm25.analyzer.docs(texts), np.arange(len(texts), dtype=np.int32), bm25.analyzer.vocabulary
    best = min(top, len(texts))
    query_terms = bm25.analyzer.queries([query]).ids
    terms = np.setdiff1d(tokens.ids[: tokens.offsets[best]], query_terms).astype(np.int32)
    total = _gains(bm25, tokens, rows[:best], terms).sum(axis=0)
    order = sorted(range(len(terms)), key=lambda i: (-round(float(total[i]), 9), names.terms[terms[i]]))
    terms = terms[order[:pool]]
    if not len(terms):
        return []
    base = bm25.scorer(tokens).score(query, rows)
    columns = np.ascontiguousarray(_gains(bm25, tokens, rows, terms).T)
    chosen = greedy(dense_ranks(scores), base, columns, min(most, len(terms)), GAIN)
    return [names.terms[terms[i]] for i in chosen]


def _gains(bm25: LexicalRanker, tokens: Tokens, rows: Codes, terms: Codes) -> Floats:
    """What each term adds to the BM25 score of each text."""
    names = [bm25.analyzer.vocabulary.terms[i] for i in terms]
    weights: Weights = bm25.formula.weights(bm25.background, names, np.ones(len(terms), np.int64))
    tf = np.zeros((len(rows), len(terms)), np.int32)
    slots = np.full(len(bm25.analyzer.vocabulary), -1, np.int32)
    kernels.scan(tokens.ids, tokens.offsets, rows, terms, slots, tf)
    norms = weights.a + weights.b * np.diff(tokens.offsets)[rows]
    found: Floats = weights.weights * (tf / (tf + norms[:, None]))
    return found
