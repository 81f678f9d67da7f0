"""What callers may supply: any object with these methods fits; there is no base class to inherit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import iscoroutine
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from whyrank.core.errors import WhyrankError

if TYPE_CHECKING:
    from whyrank.data import Collection
    from whyrank.studies import Contrasts

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


@runtime_checkable
class Ranker(Protocol):
    """Maps (query text, document text) to a number; `repr` is its identity, hashes of weights and data included."""

    @property
    def name(self) -> str:
        """Short name for tables: the call string that the user wrote."""
        ...

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> npt.NDArray[Any]:
        """Score aligned pairs: one number per pair, higher is better."""
        ...


@runtime_checkable
class Study(Protocol):
    """Turns a collection into contrasts and says in words what a positive answer means.

    A study may also have an attribute `reading`, which says how scores become findings: `Preferences` (the default),
    `Conclusions` of axioms, or the reading of bias studies.
    """

    @property
    def id(self) -> str:
        """The call string: parses back to an equal study."""
        ...

    @property
    def positive(self) -> str:
        """What an effect of +1 means, in words."""
        ...

    @property
    def symmetric(self) -> bool:
        """Whether the order of the two texts carries no meaning."""
        ...

    def contrasts(self, collection: Collection) -> Contrasts:
        """Every contrast of this study that the collection allows."""
        ...


# What a ranker answers: one number per pair, checked; or the scores that it has, and why it lacks the others.


class PartlyScored(Exception):
    """Raised by `score` where some pairs failed for good: they are counted, and not tried again in smaller batches.

    Any other exception of a ranker makes the engine halve the batch until it finds the pair that causes it. That is
    the wrong way to treat a service that is down or an answer that lacks one text: here the ranker knows better.

    Attributes:
        scores: one number per pair; NaN where there is a reason.
        reasons: why a pair has no score, by its position.
        in_order: whether the ranker works, and these pairs have no score by definition; else a ranker that scores
            none of the first pairs is given up.
    """

    def __init__(self, scores: Floats, reasons: Mapping[int, str], in_order: bool = False) -> None:
        first = next(iter(reasons.values()), "")
        super().__init__(f"{len(reasons):,} of {len(scores):,} pairs have no score: {first}")
        self.reasons, self.in_order = dict(reasons), in_order
        self.scores = np.array(scores, dtype=np.float64)
        self.scores[list(self.reasons)] = np.nan

    def __reduce__(self) -> tuple[type[PartlyScored], tuple[object, ...]]:
        return type(self), (self.scores, self.reasons, self.in_order)


class Answered(NamedTuple):
    """Scores of some pairs, why some of them have none, by position, and whether that is in order."""

    scores: Floats
    reasons: dict[int, str]
    in_order: bool = False

    def concatenate(self, other: Answered) -> Answered:
        """The scores of these pairs and of others behind them."""
        later = {len(self.scores) + i: reason for i, reason in other.reasons.items()}
        scores = np.concatenate([self.scores, other.scores])
        return Answered(scores, self.reasons | later, self.in_order and other.in_order)

    def scores_or_raise(self) -> Floats:
        """The scores where none is missing; else they travel in a `PartlyScored`."""
        if self.reasons:
            raise PartlyScored(self.scores, self.reasons, self.in_order)
        return self.scores


def name_of(ranker: Ranker) -> str:
    """What to call a ranker in messages."""
    return str(getattr(ranker, "name", type(ranker).__name__))


def ask(ranker: Ranker, queries: Sequence[str], docs: Sequence[str]) -> Answered:
    """What a ranker answers to aligned pairs; an answer that is no number per pair is the ranker's fault."""
    try:
        given = ranker.score(queries, docs)
    except PartlyScored as partly:
        return Answered(check_scores(ranker, partly.scores, len(docs)), partly.reasons, partly.in_order)
    return Answered(check_scores(ranker, given, len(docs)), {})


def check_scores(ranker: Ranker, given: object, size: int) -> Floats:
    """What `score` returned for `size` pairs as numbers; an error that names the ranker where it is none."""
    try:
        scores = np.asarray(given)
    except Exception as error:  # anything can stand in for an array, and fail
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise _wrong(ranker, f"no array ({reason})") from error
    if scores.dtype.kind == "O" and not scores.ndim:
        thing = scores.item()
        if iscoroutine(thing):
            thing.close()  # else Python complains as well that nobody waited for it
        raise _wrong(ranker, "nothing" if thing is None else f"one thing of type {type(thing).__name__}")
    if scores.dtype.kind not in "biuf":
        raise _wrong(ranker, f"values of type {scores.dtype}")
    if scores.shape not in ((size,), (size, 1)):
        raise _wrong(ranker, f"shape {scores.shape} for {size} pairs")
    return scores.reshape(size).astype(np.float64)


def _wrong(ranker: Ranker, what: str) -> WhyrankError:
    return WhyrankError(f"ranker {name_of(ranker)!r} returned {what}; return one number per pair")
