"""A finding: one row of results, the answer of one ranker to one study."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from whyrank.core import Flags, Floats

# From scores to effects: does the ranker prefer the favoured text by more than delta?

Effects = npt.NDArray[np.int8]
_ROUNDING = 8 * np.finfo(np.float64).eps  # of the largest score: steps that are equal on paper may differ by less


def differences(scores: Floats) -> Floats:
    """Difference per contrast: R(q,d1) - R(q,d2); for three texts (R2 - R1) - (R3 - R2).

    The three-text form is that of TFC2, where the first addition must count more than the second. Steps that differ
    by rounding alone are equal: 0.1, 0.2, 0.3 has the steps of 1, 2, 3.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf is NaN and is counted as non-finite
        if scores.shape[1] == 3:
            steps = np.diff(scores, axis=1)
            found = np.asarray(steps[:, 0] - steps[:, 1], dtype=np.float64)
            return np.where(np.abs(found) < _ROUNDING * np.abs(scores).max(axis=1), 0.0, found)
        return np.asarray(scores[:, 0] - scores[:, 1], dtype=np.float64)


def effects(diffs: Floats, delta: float) -> Effects:
    """+1 if diff > delta, -1 if diff < -delta, else 0: the closed band [-delta, delta] is neutral."""
    return (diffs > delta).astype(np.int8) - (diffs < -delta).astype(np.int8)


def finite(scores: Floats) -> Flags:
    """Contrasts all of whose scores are finite numbers."""
    return np.asarray(np.isfinite(scores).all(axis=1))


@dataclass(frozen=True)
class Finding:
    """How often a ranker preferred the favoured text of a study's contrasts.

    `score` = (positive - negative) / (n - nonfinite). The interval and `p_value` are clustered by query and document;
    `p_t`, `p_wilcoxon` and `p_sign` treat contrasts as independent, as the published tables do.
    Figures that are undefined are None. `study` is the name that was asked for, `call` the full call string, with
    what came from options such as the analyzer. `dropped` counts the questions that could not be asked, by reason;
    `control` is the score of the study's control (for an edit: tokens joined by blanks and nothing else).

    For an axiom, `conclusion` is `strict` or `weak`. `satisfied` is the share of contrasts with finite scores that
    obey it, with its interval; `chance` is that share if a coin ordered all texts that are not tied. `with_relevant`
    counts the contrasts with a relevant document, `decided` those of them whose grades differ. `agreement` is the
    share of these in which the grades side with the axiom. `scale` is what the ranker declares its scores to be.

    For a bias study, `range` is the highest mean score of a value less the lowest, `range_deltas` the same in deltas.
    `favoured` and `disfavoured` name the values that have them. `p_omnibus`, which is also its `p_value`, tests
    whether any value differs. `positive` counts the pairs of values that differ by more than delta.

    Where contrasts were drawn, `drawn` units out of `available` were scored: contrasts, texts to edit, or templates.
    `share` is the part of the error rate that the interval and the p-value could spend, see `studies.sampling`.

    With a `baseline`, another ranker that scored the same contrasts, `difference` is the score less that of the
    baseline, with its interval and p-value by query. For an axiom it is the difference of `satisfied`. For a bias
    study it is that of `range_deltas`, and its p-value tests whether any value is favoured differently.

    Example:
        >>> import whyrank
        >>> [finding] = whyrank.audit("bm25", "sample", "edited/shuffle-words", limit=50)
        >>> finding.n, finding.positive, finding.neutral, finding.negative, finding.score
        (50, 0, 50, 0, 0.0)
    """

    study: str
    ranker: str
    collection: str
    n: int
    positive: int
    neutral: int
    negative: int
    nonfinite: int
    score: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    p_adjusted: float | None
    mean_diff: float | None
    median_diff: float | None
    delta: float
    n_queries: int
    fingerprint: str
    seed: int
    group: str | None = None
    seconds: float = 0.0
    p_t: float | None = None
    p_wilcoxon: float | None = None
    p_sign: float | None = None
    meaning: str = ""
    call: str = ""
    dropped: str = ""
    control: float | None = None
    conclusion: str = ""
    satisfied: float | None = None
    satisfied_low: float | None = None
    satisfied_high: float | None = None
    chance: float | None = None
    with_relevant: int | None = None
    decided: int | None = None
    agreement: float | None = None
    scale: str = ""
    range: float | None = None
    range_deltas: float | None = None
    favoured: str = ""
    disfavoured: str = ""
    p_omnibus: float | None = None
    drawn: int | None = None
    available: int | None = None
    share: float = 1.0
    baseline: str = ""
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    difference_p: float | None = None
    difference_adjusted: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values by field name, for JSON and tables."""
        return asdict(self)

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Finding:
        """The finding of a row that `as_dict` made; unknown fields are ignored."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in row.items() if name in known})


def or_none(value: float) -> float | None:
    """A figure for a finding: None where it is undefined."""
    return None if math.isnan(value) else float(value)
