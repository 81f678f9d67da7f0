"""Put one batch to a ranker, and find the pairs that it fails on by halving."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core.errors import WhyrankError
from whyrank.core.protocols import Floats, Ranker
from whyrank.scoring.failures import one_line, reason_of


class Task(NamedTuple):
    """One batch of aligned texts.

    While nothing has succeeded, the batch is given up after `patience` single pairs have failed; None when
    the ranker is known to work.
    """

    number: int
    queries: list[str]
    docs: list[str]
    patience: int | None = None


class Answer(NamedTuple):
    """The scores of one batch; NaN where the ranker raised, with the reason by position in the batch."""

    number: int
    values: Floats
    reasons: dict[int, str]
    succeeded: bool
    gave_up: bool = False


def name_of(ranker: Ranker) -> str:
    """What to call a ranker in messages."""
    return str(getattr(ranker, "name", type(ranker).__name__))


def answer(ranker: Ranker, task: Task) -> Answer:
    """Score a batch; where it raises, halve it until the single pairs that fail are found.

    A `WhyrankError` is the user's to mend and no property of a text: it is passed on.
    """
    values, reasons, succeeded = np.full(len(task.docs), np.nan), dict[int, str](), False
    parts = [(0, len(task.docs))]
    while parts:
        start, end = parts.pop()
        found = _try(ranker, task.queries[start:end], task.docs[start:end])
        if not isinstance(found, str):
            values[start:end], succeeded = found, True
        elif end - start > 1:
            middle = (start + end) // 2
            parts += [(middle, end), (start, middle)]
        else:
            reasons[start] = found
            if not succeeded and task.patience is not None and len(reasons) >= task.patience:
                return Answer(task.number, values, reasons, succeeded, gave_up=True)
    return Answer(task.number, values, reasons, succeeded)


def _try(ranker: Ranker, queries: Sequence[str], docs: Sequence[str]) -> Floats | str:
    """The scores, or the reason why there are none."""
    try:
        with redirect_stdout(sys.stderr):  # what a ranker prints must not mix with results
            given = ranker.score(list(queries), list(docs))
    except WhyrankError:
        raise
    except (Exception, SystemExit) as error:  # other people's code: whatever it raises is a failure of the pair
        return reason_of(error)
    return _checked(ranker, given, len(docs))


def _checked(ranker: Ranker, given: object, size: int) -> Floats:
    scores = _as_array(ranker, given)
    if scores.dtype.kind not in "biuf":
        raise _wrong(ranker, f"returned values of type {scores.dtype}", "return one number per pair")
    if scores.shape not in ((size,), (size, 1)):
        raise _wrong(ranker, f"returned shape {scores.shape} for {size} pairs", "return one number per pair")
    return scores.reshape(size).astype(np.float64)


def _as_array(ranker: Ranker, given: object) -> npt.NDArray[np.generic]:
    try:
        return np.asarray(given)
    except Exception as error:
        raise _wrong(
            ranker, f"returned no array ({one_line(reason_of(error))})", "return one number per pair"
        ) from error


def _wrong(ranker: Ranker, what: str, remedy: str) -> WhyrankError:
    return WhyrankError(f"ranker {name_of(ranker)!r} {what}; {remedy}")
