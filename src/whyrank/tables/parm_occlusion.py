"""Alignments of any ranker by leaving words out: what a word of a text adds for each word of a query alone.

value(a, w) = score("a", text) - score("a", text without all its w), for every word a of the query and w of the text,
as the network's pieces spell them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from whyrank.core.errors import WhyrankError
from whyrank.core.protocols import Ranker
from whyrank.networks.pieces import Pieces
from whyrank.scoring import Engine
from whyrank.scoring.failures import one_line
from whyrank.training.examples import Texts
from whyrank.training.parm_prepared import Occlusion
from whyrank.training.parm_texts import PieceTexts


def occlusion(
    target: Ranker, engine: Engine, pieces: Pieces, queries: PieceTexts, docs: PieceTexts, doc: npt.NDArray[np.int32]
) -> Occlusion:
    """The alignments of all queries and candidates."""
    asked, told = queries.spelled(pieces), docs.spelled(pieces)
    words, texts, rows = Texts(), Texts(), []
    pairs = [(q, int(d)) for q, several in enumerate(doc) for d in several]
    for q, d in pairs:
        rows.append((words.numbers(asked[q]), _without(told[d], texts)))
    query = np.concatenate([np.repeat(a, len(t)) for a, t in rows])
    text = np.concatenate([np.tile(t, len(a)) for a, t in rows])
    scores = engine.score(target, list(words.found), list(texts.found), query, text)
    if scores.failures:
        reason = one_line(scores.failures[0].reason)
        failed = f"{len(scores.failures):,} shortened texts ({reason})"
        raise WhyrankError(f"alignment: the target {target.name!r} has no finite score for {failed}; mend it")
    return _gathered(scores.values, rows)


def _without(words: Sequence[str], texts: Texts) -> npt.NDArray[np.int32]:
    """The number of a text, and those of the text without each of its words in turn."""
    less = {word: " ".join(other for other in words if other != word) for word in dict.fromkeys(words)}
    known = {word: texts.number(text) for word, text in less.items()}
    return np.array([texts.number(" ".join(words)), *(known[word] for word in words)], np.int32)


def _gathered(scores: npt.NDArray[np.float64], rows: Sequence[tuple[npt.NDArray[np.int32], ...]]) -> Occlusion:
    found, sizes, start = [], [], 0
    for asked, told in rows:
        end = start + len(asked) * len(told)
        grid = scores[start:end].reshape(len(asked), len(told))
        found.append((grid[:, :1] - grid[:, 1:]).astype(np.float32).ravel())
        sizes.append(found[-1].size)
        start = end
    return Occlusion(np.concatenate(found), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
