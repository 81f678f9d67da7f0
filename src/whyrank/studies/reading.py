"""Reading: how the scores of a study's contrasts become findings.

Each family of studies has one reading, its attribute `reading`. That of probes asks how often a ranker prefers the
first text; that of axioms adds how often it obeys, and whether judgements agree; that of bias studies, in
`studies.bias`, compares values. The runner calls `read` and never asks what kind of study it has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import (
    ALPHA,
    Codes,
    Flags,
    Floats,
    Interval,
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
from whyrank.tables import TermTable

CONCLUSIONS = ("strict", "weak")
FLIPS = 100_000  # of signs, in the test of a finding


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
        signs = np.where(usable, effects(diffs, delta), 0).astype(np.int8)
        clean = np.where(usable, diffs, np.nan)
        return cls(scores, clean, signs, usable, contrasts.clusters, contrasts.shared)

    def covariance(self, values: npt.ArrayLike, rows: Flags) -> float:
        """What the values of some of the contrasts, one for each, have in common because they share documents."""
        whole = np.zeros(len(rows))
        whole[rows] = values
        return self.shared.covariance(whole)

    def interval(self, rows: Flags, symmetric: bool, alpha: float = ALPHA) -> Interval:
        """The confidence interval of the mean effect of some of the contrasts, all of which have finite scores."""
        signs = self.effects[rows].astype(np.float64)
        shared = self.covariance(signs - signs.mean(), rows) if len(signs) else 0.0
        return mean_interval(signs, self.clusters[rows], shared, (0, 1) if symmetric else (-1, 1), alpha)


@dataclass(frozen=True)
class Context:
    """What a reading needs to know besides the scores.

    `unit` is delta where effects can be given in it, `chance` what calibration says of a symmetric study, `draws` the
    number of random draws of each test (None: its own default). No `grades` where nothing is judged. `share` is the
    part of the error rate that this look at a study may spend; it is less than 1 where a study is drawn in rounds.
    """

    ranker: str
    collection: str
    delta: float
    seed: int = 0
    chance: float = math.nan
    study: str = ""
    by: str | None = None
    control: float | None = None
    scale: str = ""
    grades: Grades | None = None
    unit: float | None = None
    table: TermTable | None = None
    correction: str = "holm"
    draws: int | None = None
    share: float = 1.0

    @property
    def alpha(self) -> float:
        """How often the intervals of this look may miss."""
        return ALPHA * self.share

    def p_value(self, p: npt.ArrayLike) -> Floats:
        """p-values of this look as those of all looks together: p / share, at most 1 (Bonferroni, weighted)."""
        return np.minimum(1.0, np.asarray(p, dtype=np.float64) / self.share)


class Read(NamedTuple):
    """Findings, and for studies that say more than a finding holds, a record with all figures."""

    findings: list[Finding]
    details: Any = None


class Part(NamedTuple):
    """Some of the contrasts: all of them, or a group with a name."""

    group: str | None
    rows: Flags


def parts_of(contrasts: Contrasts, by: str | None, grades: Grades | None) -> list[Part]:
    """All contrasts, then those of each value of the label `by` where they have it."""
    parts = [Part(None, np.ones(len(contrasts), np.bool_))]
    if by is not None and by in contrasts.labels:
        codes, names = _groups(contrasts, by, grades)
        parts += [Part(name, codes == i) for i, name in enumerate(names)]
    return parts


@dataclass(frozen=True)
class Preferences:
    """The reading of probes: how often the ranker prefers the first text by more than delta.

    Attributes:
        exact: whether every difference counts, so that delta is zero unless one is asked for.
        conclusion: what an axiom concludes, `strict` or `weak`; empty for other studies.
        family: tests of one family are corrected together; studies are asked family by family.
        has_groups: whether findings can be broken down by a label.
        has_table: whether values are compared with the weights of a term table.
        needs_delta: whether findings say nothing without a delta.
    """

    exact: bool = False
    conclusion: str = ""
    family: ClassVar[str] = ""
    has_groups: ClassVar[bool] = True
    has_table: ClassVar[bool] = False
    needs_delta: ClassVar[bool] = True

    def sample(self, contrasts: Contrasts, limit: int, seed: int) -> Contrasts:
        """At most `limit` of the contrasts, drawn at random."""
        return contrasts.sample(limit, seed)

    def needs_chance(self, study: Study) -> bool:
        """Whether a p-value says how far a study is from what chance gives, which a calibration knows."""
        return study.symmetric

    @np.errstate(over="ignore", invalid="ignore")  # differences of huge scores may be infinite
    def read(self, study: Study, contrasts: Contrasts, reading: Reading, context: Context) -> Read:
        """The finding over all contrasts, then one per value of the label `context.by` where the study has it."""
        parts = parts_of(contrasts, context.by, context.grades)
        return Read([self._finding(study, contrasts, reading, context, part) for part in parts])

    def more_figures(self, contrasts: Contrasts, reading: Reading, context: Context, part: Part) -> dict[str, Any]:
        """Figures of a finding that only this reading has."""
        return {}

    def _finding(self, study: Study, contrasts: Contrasts, reading: Reading, context: Context, part: Part) -> Finding:
        whole, keep = part.group is None, reading.finite & part.rows
        n = int(np.count_nonzero(part.rows))
        counts = [int(np.count_nonzero(reading.effects[keep] == sign)) for sign in (1, 0, -1)]
        dropped = "; ".join(f"{reason} {count:,}" for reason, count in sorted(contrasts.dropped.items()) if count)
        return Finding(
            study=context.study or study.id,
            ranker=context.ranker,
            collection=context.collection,
            n=n,
            positive=counts[0],
            neutral=counts[1],
            negative=counts[2],
            nonfinite=n - sum(counts),
            p_adjusted=None,
            delta=context.delta,
            n_queries=len(np.unique(reading.clusters[part.rows])),
            fingerprint=contrasts.fingerprint,
            seed=context.seed,
            group=part.group,
            meaning=study.positive,
            call=study.id,
            dropped=dropped if whole else "",
            control=context.control if whole else None,
            conclusion=self.conclusion,
            scale=context.scale,
            **_figures(reading, keep, context, study.symmetric),
            **self.more_figures(contrasts, reading, context, part),
        )


@dataclass(frozen=True)
class Conclusions(Preferences):
    """The reading of axioms: how often a ranker obeys, what chance gives, and whether judgements say the same.

    The first text of a contrast is the winner; of three texts, the first step must be larger than the second. A
    strict conclusion asks for a difference above delta, a weak one is content with none below -delta: a tie obeys it.
    """

    exact: bool = True
    conclusion: str = "strict"

    def more_figures(self, contrasts: Contrasts, reading: Reading, context: Context, part: Part) -> dict[str, Any]:
        """The share that obeys with its interval, chance, and agreement where the study gives the grades of texts."""
        keep = reading.finite & part.rows
        signs = reading.effects[keep]
        share, chance = obedience(signs, self.conclusion)
        obeyed = obeys(signs, self.conclusion)
        shared = reading.covariance(obeyed - share, keep)
        low, high = mean_interval(obeyed, reading.clusters[keep], shared, (0, 1), context.alpha)
        figures = _defined(satisfied=share, satisfied_low=low, satisfied_high=high, chance=chance)
        relevance = contrasts.labels.get("relevance")
        if context.grades is None or not isinstance(relevance, np.ndarray) or relevance.ndim != 2:
            return figures
        return figures | agreement(relevance[part.rows], context.grades)


def reading_of(study: Study) -> Preferences:
    """How the scores of a study are read: by its own `reading`, else as those of probes."""
    return getattr(study, "reading", None) or Preferences()


class Obedience(NamedTuple):
    """Share of contrasts that obey a conclusion, and the share that chance gives."""

    share: float
    chance: float


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


def agreement(relevance: npt.NDArray[Any], grades: Grades) -> dict[str, Any]:
    """How far judgements side with the winners; `relevance` has a grade per contrast and text, NaN where unjudged.

    Contrasts with a relevant document, those of them that relevance decides, and the share of these for the winner.
    An unjudged text counts as non-relevant. Two texts are decided where their grades differ, three where the steps
    between them do.
    """
    chosen = relevance[(relevance >= grades.relevant).any(axis=1)].astype(np.float64)
    diffs = differences(np.where(np.isnan(chosen), grades.nonrelevant, chosen))
    decided = int(np.count_nonzero(diffs))
    share = float(np.count_nonzero(diffs > 0) / decided) if decided else None
    return {"with_relevant": len(chosen), "decided": decided, "agreement": share}


def _groups(contrasts: Contrasts, by: str, grades: Grades | None) -> tuple[Codes, list[str]]:
    """A code per contrast for the values of a label column, and their names; per-text values are joined by a slash.

    What has no value, as the relevance of a text that nobody judged, is one group and not one for each contrast.
    """
    column = contrasts.labels[by]
    values = column.codes if isinstance(column, Categories) else column
    known, numbers = np.unique(values, return_inverse=True)  # in one dimension, NaN equals NaN
    keys = numbers.reshape(values.shape if values.ndim == 2 else (-1, 1))
    rows, codes = np.unique(keys, axis=0, return_inverse=True)
    words = [column.names[value] for value in known.tolist()] if isinstance(column, Categories) else []
    graded = {str(grade): word for grade, word in grades.names.items()} if by == "relevance" and grades else {}
    for value in known.tolist() if not words else ():
        # a missing value makes all of them floats: whole numbers stay whole
        shown = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        if math.isnan(value):
            shown = "unjudged" if by == "relevance" else "none"
        elif graded.get(shown, shown) != shown:
            shown = f"{shown} ({graded[shown]})"
        words.append(shown)
    return codes.astype(np.int32).ravel(), ["/".join(words[number] for number in row) for row in rows.tolist()]


def _figures(reading: Reading, keep: Flags, context: Context, symmetric: bool) -> dict[str, Any]:
    """The figures of a finding over some contrasts with finite scores.

    Score, interval and p-value are clustered by query and, where documents recur, by document. The tests of the
    published tables take contrasts as independent; on the absolute differences of a symmetric study they would be
    trivially true, so it has none.
    """
    signs, clusters = reading.effects[keep].astype(np.float64), reading.clusters[keep]
    score = float(signs.mean()) if len(signs) else math.nan
    tested = signs - context.chance if symmetric else signs
    interval = reading.interval(keep, symmetric, context.alpha)
    sums, counts = cluster_sums(signs, clusters)
    flips = context.draws or FLIPS
    if symmetric:
        p = share_p(sums, counts, context.chance, flips, context.seed, reading.covariance(tested, keep))
    else:
        p = sign_flip_p(sums, flips, context.seed, reading.covariance(tested, keep))
    diffs = np.sort(reading.diffs[keep])  # sorted, so that sums do not depend on the order of contrasts
    mean = float(diffs.mean()) if len(diffs) else math.nan
    figures = {"score": score, "ci_low": interval.low, "ci_high": interval.high, "p_value": float(context.p_value(p))}
    figures |= {"mean_diff": mean, "median_diff": median(diffs)}
    if len(diffs) and not symmetric:
        ups, downs = (int(np.count_nonzero(signs == sign)) for sign in (1, -1))
        figures |= {"p_t": paired_t_p(diffs), "p_wilcoxon": wilcoxon_p(diffs), "p_sign": sign_p(ups, downs)}
    return _defined(**figures)


def _defined(**figures: float) -> dict[str, Any]:
    return {name: or_none(value) for name, value in figures.items()}
