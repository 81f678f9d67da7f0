"""Score one batch of pairs with a ranker, and find the pairs that it fails on by halving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from whyrank.core import Answered, Floats, Ranker, WhyrankError, apart_from_results, ask, printable


class Failure(NamedTuple):
    """A pair without a finite score; `reason` is the ranker's exception, or such as `score is nan`."""

    query: str
    doc: str
    reason: str


def one_line(text: str, limit: int = 300) -> str:
    """A text without line breaks and without characters that steer a terminal, cut where it gets too long."""
    joined = printable(" ".join(text.split()))
    return joined if len(joined) <= limit else joined[:limit] + "…"


class Batch(NamedTuple):
    """One batch of aligned texts.

    While nothing has succeeded, the batch is given up after `patience` single pairs have failed; None when
    the ranker is known to work.
    """

    number: int
    queries: list[str]
    docs: list[str]
    patience: int | None = None


class BatchScores(NamedTuple):
    """The scores of one batch; NaN where the ranker raised, with the reason by position in the batch.

    A batch that took longer than is allowed is `late` and has no score at all.
    """

    number: int
    values: Floats
    reasons: dict[int, str]
    succeeded: bool
    gave_up: bool = False
    late: bool = False


def score_batch(ranker: Ranker, batch: Batch) -> BatchScores:
    """Score a batch; where it raises, halve it until the single pairs that fail are found.

    A `WhyrankError` is the user's to mend and no property of a text: it is passed on. A `PartlyScored` says itself
    which pairs fail, so nothing is halved.
    """
    values, reasons, succeeded = np.full(len(batch.docs), np.nan), dict[int, str](), False
    parts = [(0, len(batch.docs))]
    while parts:
        start, end = parts.pop()
        found = _try(ranker, batch.queries[start:end], batch.docs[start:end])
        if isinstance(found, str) and end - start > 1:
            middle = (start + end) // 2
            parts += [(middle, end), (start, middle)]
            continue
        part = Answered(np.full(1, np.nan), {0: found}) if isinstance(found, str) else found
        values[start:end] = part.scores
        reasons |= {start + i: reason for i, reason in part.reasons.items()}
        succeeded |= part.in_order or len(part.reasons) < end - start
        if not succeeded and batch.patience is not None and len(reasons) >= batch.patience:
            return BatchScores(batch.number, values, reasons, succeeded, gave_up=True)
    return BatchScores(batch.number, values, reasons, succeeded)


def time_out(batch: Batch, seconds: float) -> BatchScores:
    """The result of a batch that took longer than so many seconds."""
    size = len(batch.docs)
    reasons = dict.fromkeys(range(size), f"TimeoutError: no answer within {seconds:g} s")
    return BatchScores(batch.number, np.full(size, np.nan), reasons, succeeded=False, late=True)


def _try(ranker: Ranker, queries: Sequence[str], docs: Sequence[str]) -> Answered | str:
    """The scores, with reasons where there are none; or the one reason why there are none at all."""
    try:
        with apart_from_results():
            return ask(ranker, list(queries), list(docs))
    except WhyrankError:
        raise
    except (Exception, SystemExit) as error:  # other people's code: whatever it raises is a failure of the pair
        return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
