"""Readout: from contrasts and their scores to findings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import (
    Codes,
    Flags,
    Floats,
    SharedDocuments,
    Study,
    UnknownName,
    cluster_sums,
    mean_interval,
    median,
    paired_t_p,
    share_p,
    sign_flip_p,
    sign_p,
    wilcoxon_p,
)
from whyrank.data import Grades
from whyrank.studies.contrasts import Categories, Contrasts
from whyrank.studies.findings import Effects, Finding, differences, effects, finite, or_none

# Axioms and their conclusions: how often a ranker obeys, what chance gives, and whether judgements say the same.
#
# The first text of a contrast is the winner; of three texts, the first step must be larger than the second. A strict
# conclusion asks for a difference above delta, a weak one is content with none below -delta, so a tie obeys it.

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


@dataclass(frozen=True)
class Reading:
    """What is read off the scores of one study and one ranker: a value per contrast."""

    scores: Floats
    diffs: Floats
    effects: Effects
    finite: Flags
    clusters: Codes
    shared: SharedDocuments

    @classmethod
    def of(cls, contrasts: Contrasts, scores: Floats, delta: float, symmetric: bool) -> Reading:
        """Differences and effects of all contrasts; absolute differences for a symmetric study."""
        diffs = np.abs(differences(scores)) if symmetric else differences(scores)
        usable = finite(scores)
        clean = np.where(usable, diffs, np.nan)
        return cls(
            scores,
            clean,
            np.where(usable, effects(diffs, delta), 0).astype(np.int8),
            usable,
            contrasts.clusters,
            contrasts.shared,
        )

    def covariance(self, values: npt.ArrayLike, rows: Flags) -> float:
        """What the values of some of the contrasts, one for each, have in common because they share documents."""
        whole = np.zeros(len(rows))
        whole[rows] = values
        return self.shared.covariance(whole)


@dataclass(frozen=True)
class Setting:
    """What the readout needs to know besides the scores; no `grades` where nothing is judged."""

    ranker: str
    collection: str
    delta: float
    seed: int = 0
    chance: float = math.nan
    flips: int = 100_000
    study: str = ""
    control: float | None = None
    scale: str = ""
    grades: Grades | None = None


class _Part(NamedTuple):
    """Some of the contrasts: all of them, or a group with a name."""

    group: str | None
    rows: Flags


@np.errstate(over="ignore", invalid="ignore")  # differences of huge scores may be infinite
def read_out(
    study: Study, contrasts: Contrasts, reading: Reading, setting: Setting, by: str | None = None
) -> list[Finding]:
    """The finding over all contrasts, then one per value of the label column `by` where the study has it."""
    whole = _finding(study, contrasts, reading, setting, _Part(None, np.ones(len(contrasts), np.bool_)))
    if by is None or by not in contrasts.labels:
        return [whole]
    codes, names = group_codes(contrasts, by)
    if by == "relevance" and setting.grades is not None:
        words = {
            str(grade): f"{grade} ({word})" for grade, word in setting.grades.names.items() if word != str(grade)
        }
        names = ["/".join(words.get(part, part) for part in name.split("/")) for name in names]
    parts = [_Part(name, codes == i) for i, name in enumerate(names)]
    return [whole, *(_finding(study, contrasts, reading, setting, part) for part in parts)]


def group_codes(contrasts: Contrasts, by: str) -> tuple[Codes, list[str]]:
    """A code per contrast for the values of a label column; per-text values are joined by a slash.

    What has no value, as the relevance of a text that nobody judged, is one group and not one for each contrast.
    """
    column = contrasts.labels[by]
    values = column.codes if isinstance(column, Categories) else column
    known, places = np.unique(values, return_inverse=True)  # in one dimension, NaN equals NaN
    keys = places.reshape(values.shape if values.ndim == 2 else (-1, 1))
    rows, codes = np.unique(keys, axis=0, return_inverse=True)
    names = [column.names[v] if isinstance(column, Categories) else _shown(v, by) for v in known.tolist()]
    return codes.astype(np.int32).ravel(), ["/".join(names[place] for place in row) for row in rows.tolist()]


def _shown(value: Any, by: str) -> str:
    """A value of a column of numbers; a missing one makes all of them floats, and whole numbers stay whole."""
    if isinstance(value, float) and math.isnan(value):
        return "unjudged" if by == "relevance" else "none"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _finding(study: Study, contrasts: Contrasts, reading: Reading, setting: Setting, part: _Part) -> Finding:
    whole, keep = part.group is None, reading.finite & part.rows
    n = int(np.count_nonzero(part.rows))
    counts = [int(np.count_nonzero(reading.effects[keep] == sign)) for sign in (1, 0, -1)]
    diffs = np.sort(reading.diffs[keep])  # sorted, so that sums do not depend on the order of contrasts
    figures = _clustered(reading, keep, setting, study.symmetric) | _independent(diffs, counts, study.symmetric)
    conclusion = str(getattr(study, "concludes", ""))
    if conclusion:
        figures |= _concluded(reading, keep, conclusion) | _judged(contrasts, setting.grades, part.rows)
    return Finding(
        study=setting.study or study.id,
        ranker=setting.ranker,
        collection=setting.collection,
        n=n,
        positive=counts[0],
        neutral=counts[1],
        negative=counts[2],
        nonfinite=n - len(diffs),
        p_adjusted=None,
        delta=setting.delta,
        n_queries=len(np.unique(reading.clusters[part.rows])),
        fingerprint=contrasts.fingerprint,
        seed=setting.seed,
        group=part.group,
        meaning=study.positive,
        call=study.id,
        dropped=_dropped(contrasts) if whole else "",
        control=setting.control if whole else None,
        conclusion=conclusion,
        scale=setting.scale,
        **figures,
    )


def _dropped(contrasts: Contrasts) -> str:
    return "; ".join(f"{reason} {count:,}" for reason, count in sorted(contrasts.dropped.items()) if count)


def _clustered(reading: Reading, keep: Flags, setting: Setting, symmetric: bool) -> dict[str, Any]:
    """Score, interval and p-value, clustered by query and, where documents recur, by document."""
    effects, clusters = reading.effects[keep].astype(np.float64), reading.clusters[keep]
    score = float(effects.mean()) if len(effects) else math.nan
    tested = effects - setting.chance if symmetric else effects
    shared = [reading.covariance(values, keep) for values in (effects - score, tested)]
    interval = mean_interval(effects, clusters, shared[0], (0, 1) if symmetric else (-1, 1))
    sums, counts = cluster_sums(effects, clusters)
    if symmetric:
        p = share_p(sums, counts, setting.chance, setting.flips, setting.seed, shared[1])
    else:
        p = sign_flip_p(sums, setting.flips, setting.seed, shared[1])
    return _defined(score=score, ci_low=interval.low, ci_high=interval.high, p_value=p)


def _independent(diffs: Floats, counts: list[int], symmetric: bool) -> dict[str, Any]:
    """Mean and median, and the tests of the published tables.

    On the absolute differences of a symmetric study these tests would be trivially true, so there are none.
    """
    mean = float(diffs.mean()) if len(diffs) else math.nan
    centre = _defined(mean_diff=mean, median_diff=median(diffs))
    if symmetric or not len(diffs):
        return centre
    tests = _defined(p_t=paired_t_p(diffs), p_wilcoxon=wilcoxon_p(diffs), p_sign=sign_p(counts[0], counts[2]))
    return centre | tests


def _concluded(reading: Reading, keep: Flags, conclusion: str) -> dict[str, Any]:
    """How often the ranker obeys, and what chance gives."""
    effects = reading.effects[keep]
    share, chance = obedience(effects, conclusion)
    satisfied = obeys(effects, conclusion)
    shared = reading.covariance(satisfied - share, keep)
    low, high = mean_interval(satisfied, reading.clusters[keep], shared, (0, 1))
    return _defined(satisfied=share, satisfied_low=low, satisfied_high=high, chance=chance)


def _judged(contrasts: Contrasts, grades: Grades | None, rows: Flags) -> dict[str, Any]:
    """How far judgements agree, where there are any and the study says which texts have which."""
    relevance = contrasts.labels.get("relevance")
    if grades is None or not isinstance(relevance, np.ndarray) or relevance.ndim != 2:
        return {}
    found = agreement(relevance[rows], grades)
    return {"with_relevant": found.with_relevant, "decided": found.decided} | _defined(agreement=found.share)


def _defined(**figures: float) -> dict[str, Any]:
    return {name: or_none(value) for name, value in figures.items()}
