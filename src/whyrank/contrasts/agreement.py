"""Axioms and their conclusions: how often a ranker obeys, what chance gives, and whether judgements say the same.

The first text of a contrast is the winner; of three texts, the first step must be larger than the second. A strict
conclusion asks for a difference above delta, a weak one is content with none below -delta, so a tie obeys it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.contrasts.effect import Effects, differences
from whyrank.core.errors import UnknownName
from whyrank.core.protocols import Flags
from whyrank.data import Grades

CONCLUSIONS = ("strict", "weak")


class Obedience(NamedTuple):
    """Share of contrasts that obey a conclusion, and the share that chance gives."""

    share: float
    chance: float


class Agreement(NamedTuple):
    """Contrasts with a relevant document; those of them that relevance decides; the share of these for the winner."""

    with_relevant: int
    decided: int
    share: float


def obeys(effects: Effects, conclusion: str) -> Flags:
    """Whether each effect obeys the conclusion: +1 does, 0 only where it is weak."""
    if conclusion not in CONCLUSIONS:
        raise UnknownName("conclusion of a study", conclusion, CONCLUSIONS)
    return np.asarray(effects > 0 if conclusion == "strict" else effects >= 0)


def obedience(effects: Effects, conclusion: str) -> Obedience:
    """How often effects with finite scores obey; undefined (NaN) where there are none.

    Chance leaves ties as they are and the rest to a coin: (1 - tied) / 2 for a strict conclusion, and the ties in
    addition for a weak one.
    """
    if not len(effects):
        return Obedience(math.nan, math.nan)
    tied = float(np.mean(effects == 0))
    chance = (1 - tied) / 2 + (tied if conclusion == "weak" else 0.0)
    return Obedience(float(np.mean(obeys(effects, conclusion))), chance)


def agreement(relevance: npt.NDArray[Any], grades: Grades) -> Agreement:
    """How far judgements side with the winners; `relevance` has a grade per contrast and text, NaN where unjudged.

    An unjudged text counts as non-relevant. Two texts are decided where their grades differ, three where the steps
    between them do.
    """
    chosen = relevance[(relevance >= grades.relevant).any(axis=1)].astype(np.float64)
    diffs = differences(np.where(np.isnan(chosen), grades.nonrelevant, chosen))
    decided = int(np.count_nonzero(diffs))
    share = float(np.count_nonzero(diffs > 0) / decided) if decided else math.nan
    return Agreement(len(chosen), decided, share)
