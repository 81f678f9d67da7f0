"""Word Mover's Distance: how far the words of a query are from those of a text, `wmd:VECTORS`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from whyrank.core import Floats, Ints, MissingExtra, Range
from whyrank.rankers.base import Described, distinct, rows_by_code
from whyrank.rankers.opening import Setting
from whyrank.text import State
from whyrank.text.vectors import Vectors, open_vectors

Solver = Callable[..., tuple[Any, float, Any, Any, int]]

_LETTERS = re.compile(r"[^\W\d]+").findall
_MOST_STEPS = 1_000_000  # of the network simplex; texts of a thousand words take some ten thousand
_OPTIMAL = 1


def words(text: str) -> list[str]:
    """The words of a text: maximal runs of word characters of any script that are no digits, in lower case."""
    return _LETTERS(text.lower())


_texts = State(lambda texts: [words(text) for text in texts])


@dataclass(frozen=True, repr=False)
class WMD(Described):
    """Minus the Word Mover's Distance of query and text: `wmd:VECTORS`, any word vectors that can be opened.

    score = - min over T >= 0 of the sum of T(i, j) |x_i - x_j|, where T moves the words of the query to those of the
    text: the sum of T(i, .) is the share that word i has of the query, the sum of T(., j) the share that word j has
    of the text. The minimum is exact.

    Words are runs of letters in lower case; those without a vector are left out. A query or a text with no word left
    is infinitely far: its pairs score -inf and are counted as not finite, unless `unknown` gives them a score.
    Kusner, Sun, Kolkin and Weinberger, "From word embeddings to document distances", ICML 2015; the solver is the
    network simplex of Bonneel et al., "Displacement interpolation using Lagrangian mass transport", 2011.

    Attributes:
        resource: where the word vectors are.
        normalise: whether all vectors are given length 1.
        unknown: the score of a pair of which one side has no known word.
    """

    resource: str
    normalise: bool = True
    unknown: Annotated[float, Range(-math.inf)] = -math.inf

    registered: ClassVar[str] = "wmd"
    batch_size: ClassVar[int] = 10_000
    scale: ClassVar[str] = "minus a distance"
    tie_tolerance: ClassVar[float] = 1e-9  # the solver adds up in another order for a text and its copies

    def __repr__(self) -> str:
        return f"wmd(normalise={self.normalise},unknown={self.unknown}) vectors={self._vectors.digest}"

    def bind(self, setting: Setting) -> WMD:
        """Open the vectors and load the solver, so that what is missing shows at once."""
        _ = setting, self._vectors, self._solve
        return self

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Score aligned pairs of texts."""
        query, doc = distinct(queries), distinct(docs)
        query_bags, doc_bags = self._bags(query.texts), self._bags(doc.texts)
        found = np.empty(len(query.codes))
        for i, rows in enumerate(rows_by_code(query.codes, len(query.texts))):
            found[rows] = self._scores(query_bags[[i]], doc_bags[doc.codes[rows]])
        return found

    def _bags(self, texts: Sequence[str]) -> Any:
        """Texts as bags of words: a sparse matrix that counts each known word in each text."""
        tokens = _texts.docs.tokens(texts)
        seen, position = np.unique(tokens.ids, return_inverse=True)
        words = self._vectors.rows(_texts.vocabulary.terms[i] for i in seen)[position]
        text, known = np.repeat(np.arange(len(texts)), np.diff(tokens.offsets)), words >= 0
        counted = np.ones(int(known.sum())), (text[known], words[known])
        found = csr_array(counted, shape=(len(texts), len(self._vectors)))
        found.sum_duplicates()  # also sorts the words of each text
        return found

    def _scores(self, query: Any, texts: Any) -> Floats:
        """Scores of texts for one query; the distances of its words to theirs are computed once."""
        columns, position = np.unique(texts.indices, return_inverse=True)
        distances, n, found = self._distances(query.indices, columns), query.data.sum(), list[float]()
        for start, end in pairwise(texts.indptr.tolist()):
            counts = texts.data[start:end]
            if not len(query.data) or not len(counts):
                found.append(self.unknown)
                continue
            costs, m = distances.take(position[start:end], axis=1), counts.sum()
            if len(query.data) == 1 or len(counts) == 1 or not costs.any():
                found.append(float(-(query.data @ costs @ counts) / (n * m)))
                continue
            # masses are whole numbers, so that those of both sides add up to the same without rounding
            _, cost, _, _, outcome = self._solve(query.data * m, counts * n, costs, _MOST_STEPS, 1)
            found.append(-cost / float(n * m) if outcome == _OPTIMAL else math.nan)
        return np.array(found)

    def _distances(self, rows: Ints, columns: Ints) -> Floats:
        """The Euclidean distance of each word of `rows` to each of `columns`."""
        vectors = self._vectors
        x, y = (vectors.units(i.astype(np.int32)) if self.normalise else vectors.matrix[i] for i in (rows, columns))
        x, y = x.astype(np.float64), y.astype(np.float64)
        squares = (x * x).sum(axis=1)[:, None] + (y * y).sum(axis=1) - 2 * (x @ y.T)
        found = np.sqrt(np.maximum(squares, 0.0))
        found[rows[:, None] == columns] = 0.0
        return np.asarray(found)

    @cached_property
    def _vectors(self) -> Vectors:
        return open_vectors(self.resource)

    @cached_property
    def _solve(self) -> Solver:
        try:
            from ot.lp.emd_wrap import emd_c
        except ImportError:
            raise MissingExtra("the ranker 'wmd'", "wmd") from None
        solver: Solver = emd_c
        return solver
