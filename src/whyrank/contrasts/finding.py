"""A finding: one row of results, the answer of one ranker to one study."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Finding:
    """How often a ranker preferred the favoured text of a study's contrasts.

    `score` = (positive - negative) / (n - nonfinite); the interval and `p_value` are clustered by query and document;
    `p_t`, `p_wilcoxon` and `p_sign` treat contrasts as independent, as the published tables do.
    Figures that are undefined are None. `study` is the name that was asked for, `call` the full call string, with
    what came from options such as the analyzer. `dropped` counts the questions that could not be asked, by reason;
    `control` is the score of the study's control (for an edit: tokens joined by blanks and nothing else).

    For an axiom, `conclusion` is `strict` or `weak`, `satisfied` the share of contrasts with finite scores that obey
    it (with its interval) and `chance` what that share would be if the order of texts that are not tied were left to
    a coin. `with_relevant` counts the contrasts with a relevant document; of these, `decided` those in which grades
    decide between the texts, and `agreement` is the share of them in which they side with the axiom. `scale` is what
    the ranker declares its scores to be.

    For a bias study, `range` is the highest mean score of a value less the lowest, `range_deltas` the same in deltas;
    `favoured` and `disfavoured` name the values that have them, and `p_omnibus`, which is also its `p_value`, tests
    whether any value differs. `positive` counts the pairs of values that differ by more than delta.
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
