"""GloVe: word vectors from how often words stand near one another.

    trained = GloVe(dims=50).train(analyzer.docs(texts), analyzer.vocabulary.terms)
    trained.vectors.rows(["cat"])

Pennington, Socher and Manning, "GloVe: global vectors for word representation", EMNLP 2014: the sum over all cells of
f(x) (w_i . c_j + b_i + b'_j - ln x)^2 is made small by AdaGrad, where x is the count of word j near word i and
f(x) = min(1, (x / x_max)^alpha); the vector of a word is w_i + c_i.

One thread, and no sum whose order could change: the same texts and seed give the same bits on one machine, in
whatever order the texts come, and on another machine the same up to how it rounds logarithms and powers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core import Checked, Codes, Floats, Ints, NonNegative, Positive, Range, Whole, generator, track
from whyrank.text.analyzer import Analyzer, Tokens
from whyrank.text.vectors.files import Matrix, Vectors, cached_vectors

SMALL = 10_000
"""Texts with fewer tokens than this in all keep the words that occur once."""

KEPT_FROM = 100
"""Vectors of fewer documents are trained in no time and not kept."""

Column = Matrix
_TILE, _CHUNK = 2048, 4096  # words of a tile, documents that are analysed at once


class Trained(NamedTuple):
    """Word vectors, and the mean loss of a cell in each epoch."""

    vectors: Vectors
    losses: list[float]


@dataclass(frozen=True, kw_only=True)
class GloVe(Checked):
    """How word vectors are trained.

    Attributes:
        dims: numbers per word.
        window: positions between two words that count as near.
        x_max: count from which a cell weighs 1.
        alpha: how fast the weight falls below it.
        rate: step size of AdaGrad.
        epochs: how often all cells are visited.
        min_count: rarer words are taken out first; None is 2, and 1 for texts of fewer than 10,000 tokens in all.
        most_words: of more words, the most frequent.
        most_tokens: of a longer collection, documents with so many tokens are drawn by `seed`.
        seed: of the first vectors, of the order in which cells are visited, and of that draw.
    """

    dims: Whole = 50
    window: Annotated[int, Range(1, 20)] = 10  # beyond it whole parts would overflow
    x_max: Positive = 100.0
    alpha: NonNegative = 0.75
    rate: Positive = 0.05
    epochs: Whole = 25
    min_count: Whole | None = None
    most_words: Whole = 50_000
    most_tokens: Whole = 5_000_000
    seed: int = 0

    def train(self, tokens: Tokens, terms: Sequence[str]) -> Trained:
        """Train on analysed texts; `terms` spells their ids. A word that stands near no other gets no vector."""
        words, kept = self._vocabulary(tokens, terms)
        cells = cooccurrences(kept, len(words), self.window)
        rng = generator(self.seed, "glove")
        parameters = first_parameters(len(words), self.dims, rng)
        order = visiting_order(cells, rng)
        counts = cells.counts[order]
        weight = np.minimum(1.0, (counts / self.x_max) ** self.alpha).astype(np.float32)
        visits = [cells.row[order], cells.column[order], np.log(counts).astype(np.float32), weight]
        given: list[Any] = [*visits, *parameters, np.float32(self.rate)]
        epochs = track(range(self.epochs), "training word vectors: epochs", self.epochs)
        losses = [visit(*given) / max(len(order), 1) for _ in epochs]
        near, table = np.unique(cells.row), parameters[0] + parameters[1]
        return Trained(Vectors("GloVe", [words[i] for i in near], table[near]), losses)

    def _vocabulary(self, tokens: Tokens, terms: Sequence[str]) -> tuple[list[str], Tokens]:
        """The words, frequent ones first and equally frequent ones by spelling, and the texts in their numbers."""
        counts = np.bincount(tokens.ids, minlength=len(terms))
        least = self.min_count or (1 if len(tokens.ids) < SMALL else 2)
        chosen = sorted(np.flatnonzero(counts >= least).tolist(), key=lambda i: (-counts[i], terms[i]))
        chosen = chosen[: self.most_words]
        number = np.full(len(terms), -1, np.int32)
        number[chosen] = np.arange(len(chosen), dtype=np.int32)
        ids = number[tokens.ids]
        before = np.concatenate([[0], np.cumsum(ids >= 0)])  # what stood on either side of a gap is then adjacent
        return [terms[i] for i in chosen], Tokens(ids[ids >= 0], before[tokens.offsets])


class Cooccurrences(NamedTuple):
    """The cells of a square table that are not zero, sorted by row and column."""

    row: Codes
    column: Codes
    counts: Floats


def cooccurrences(tokens: Tokens, n_words: int, window: int) -> Cooccurrences:
    """Count, for each word, the words at most `window` positions away in the same text; one d away counts 1/d.

    Ids are word numbers below `n_words`. The parts 1/d are added up as whole multiples of 1/lcm(1..window), so the
    counts are exact and do not depend on the order of the texts.
    """
    from scipy.sparse import coo_array

    unit, shape = math.lcm(*range(1, window + 1)), (n_words, n_words)
    text = np.repeat(np.arange(len(tokens.offsets) - 1, dtype=np.int32), np.diff(tokens.offsets))
    total = coo_array(shape, dtype=np.int64).tocsr()
    for distance in range(1, window + 1):
        same = text[:-distance] == text[distance:]
        pairs = tokens.ids[:-distance][same], tokens.ids[distance:][same]
        total = total + coo_array((np.full(len(pairs[0]), unit // distance), pairs), shape).tocsr()
    both = (total + total.T).tocsr()
    both.sort_indices()
    row = np.repeat(np.arange(n_words, dtype=np.int32), np.diff(both.indptr))
    return Cooccurrences(row, both.indices.astype(np.int32), both.data / unit)


def first_parameters(n_words: int, dims: int, rng: np.random.Generator) -> list[Any]:
    """Vectors of words and of contexts and their biases, small and random; and their squared gradients, all 1."""
    shapes = ((n_words, dims), (n_words, dims), (n_words,), (n_words,))
    drawn = [((rng.random(shape) - 0.5) / dims).astype(np.float32) for shape in shapes]
    return [*drawn, *map(np.ones_like, drawn)]


def visiting_order(cells: Cooccurrences, rng: np.random.Generator) -> Ints:
    """A random order: square tiles of the table in random order, and the cells of each in random order.

    The vectors of one tile stay in the processor's cache, which halves the time.
    """
    order = rng.permutation(len(cells.row))
    across = int(cells.row.max(initial=0)) // _TILE + 1
    tile = cells.row[order] // _TILE * np.int64(across) + cells.column[order] // _TILE
    return np.asarray(order[np.argsort(rng.permutation(across**2)[tile], kind="stable")])


# the numpy error model leaves out the check for a zero divisor (there is none), so the loops use vector registers
@njit(cache=True, nogil=True, error_model="numpy")
def visit(
    row: Codes, column: Codes, log: Column, weight: Column,
    words: Matrix, contexts: Matrix, word_bias: Column, context_bias: Column,
    words_seen: Matrix, contexts_seen: Matrix, word_bias_seen: Column, context_bias_seen: Column, rate: np.float32,
) -> float:  # fmt: skip
    """One epoch: a step of AdaGrad for each cell in turn; gives the sum of the losses before each step."""
    loss, dims = 0.0, words.shape[1]
    for cell in range(len(row)):
        i, j = row[cell], column[cell]
        w, c, w_seen, c_seen = words[i], contexts[j], words_seen[i], contexts_seen[j]
        difference = _dot(w, c) + word_bias[i] + context_bias[j] - log[cell]
        pull = weight[cell] * difference
        loss += pull * difference
        for k in range(dims):
            w_step, c_step = pull * c[k], pull * w[k]
            w[k] -= rate * w_step / np.sqrt(w_seen[k])
            c[k] -= rate * c_step / np.sqrt(c_seen[k])
            w_seen[k] += w_step * w_step
            c_seen[k] += c_step * c_step
        word_bias[i] -= rate * pull / np.sqrt(word_bias_seen[i])
        context_bias[j] -= rate * pull / np.sqrt(context_bias_seen[j])
        word_bias_seen[i] += pull * pull
        context_bias_seen[j] += pull * pull
    return loss


@njit(cache=True, nogil=True)
def _dot(a: Column, b: Column) -> np.float32:
    """The inner product in four sums, whose order is fixed: as fast as one whose order is left to the compiler."""
    s = t = u = v = np.float32(0)
    whole = len(a) - len(a) % 4
    for k in range(0, whole, 4):
        s += a[k] * b[k]
        t += a[k + 1] * b[k + 1]
        u += a[k + 2] * b[k + 2]
        v += a[k + 3] * b[k + 3]
    for k in range(whole, len(a)):
        s += a[k] * b[k]
    return (s + t) + (u + v)


# Vectors of a collection, which are kept in the cache for the next run.


def collection_vectors(docs: Mapping[str, str], analyzer: Analyzer, model: GloVe) -> Vectors:
    """Train on all documents in the analyzer's own terms; neither their order nor their ids make a difference.

    Of documents with more than `model.most_tokens` tokens in all, those are taken that a hash of seed and text puts
    first.
    """
    keys = _keys(docs, model.seed)
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    facts = hashlib.sha256(f"glove 1\x1f{analyzer.identity}\x1f{model!r}\x1f".encode("utf-8", "surrogatepass"))
    facts.update(np.ascontiguousarray(keys[order], dtype="<u8").data)
    name, key = f"{model!r} of {len(docs)} documents", facts.hexdigest()[:32]

    def train() -> Vectors:
        return model.train(_draw(docs, order, analyzer, model.most_tokens), analyzer.vocabulary.terms).vectors

    return cached_vectors(name, key, train) if len(docs) >= KEPT_FROM else replace(train(), name=name)


def _keys(docs: Mapping[str, str], seed: int) -> npt.NDArray[np.uint64]:
    """Two numbers per document, a hash of the seed and its text."""
    salt = hashlib.sha256(str(seed).encode()).digest()[:16]
    found = bytearray()
    for text in track(docs.values(), "reading documents", len(docs)):
        found += hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, salt=salt).digest()
    return np.frombuffer(found, dtype=">u8").astype(np.uint64).reshape(-1, 2)


def _draw(docs: Mapping[str, str], order: Ints, analyzer: Analyzer, most: int) -> Tokens:
    """The first documents in this order that have at most so many tokens in all."""
    ids, parts, lengths = list(docs), [np.empty(0, np.int32)], [0]
    for start in range(0, len(order), _CHUNK):
        tokens = analyzer.docs([docs[ids[i]] for i in order[start : start + _CHUNK].tolist()])
        ends = sum(lengths) + tokens.offsets[1:]
        fit = int(np.searchsorted(ends, most, side="right"))
        parts.append(tokens.ids[: tokens.offsets[fit]])
        lengths += np.diff(tokens.offsets[: fit + 1]).tolist()
        if fit < len(ends):
            break
    return Tokens(np.concatenate(parts), np.cumsum(lengths))
