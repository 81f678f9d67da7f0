"""The result of one bias study and one ranker: rows per value, per pair of values and per correlation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from whyrank.core import adjust
from whyrank.studies.bias.correlation import Correlation

NAMED = 3  # values that share the highest or the lowest mean and are named


@dataclass(frozen=True)
class ValueRow:
    """One value: its mean score, and its effect, the mean difference from all values in the same templates.

    `deltas` and `sds` are the effect in units of the ranker's delta, and of the standard deviation of its mean scores
    over templates. `weight` is what the table says, `count` how often the collection has the value.
    """

    value: str
    mean: float
    mean_low: float | None
    mean_high: float | None
    effect: float
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: float | None
    deltas: float | None
    sds: float | None
    weight: float | None = None
    count: int | None = None


@dataclass(frozen=True)
class PairRow:
    """Two values: how much higher the first scores in the same templates."""

    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: float | None
    deltas: float | None


@dataclass(frozen=True)
class BiasResult:
    """What one ranker answered to one bias study.

    `p_value` is that of the omnibus test (any value differs), `p_adjusted` corrected over all studies and rankers
    asked at once. `nonfinite` templates have no finite score for some value and are left out; `unscored` says in how
    many templates a value has none, and one that has none in any is not in `values`, of which `n_values` were asked.
    With `changes`, scores are changes from the text without a value.
    """

    study: str
    call: str
    ranker: str
    collection: str
    n_templates: int
    n_clusters: int
    nonfinite: int
    dropped: Mapping[str, int]
    delta: float | None
    sd: float | None
    seed: int
    correction: str
    changes: bool
    values: Sequence[ValueRow]
    pairs: Sequence[PairRow]
    correlations: Sequence[Correlation]
    notes: Sequence[str] = ()
    p_value: float | None = None
    p_adjusted: float | None = None
    friedman: float | None = None
    p_friedman: float | None = None
    kendall_w: float | None = None
    seconds: float = 0.0
    unscored: Mapping[str, int] = field(default_factory=dict)
    n_values: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values by field name, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> BiasResult:
        """The result of a row that `as_dict` made."""
        kinds = {"values": ValueRow, "pairs": PairRow, "correlations": Correlation}
        rows = {name: [kind(**each) for each in row[name]] for name, kind in kinds.items()}
        return cls(**{**row, **rows})

    @property
    def range(self) -> float | None:
        """How far the highest mean score of a value lies above the lowest; None without values."""
        effects = [row.effect for row in self.values]
        return max(effects) - min(effects) if effects else None

    @property
    def range_deltas(self) -> float | None:
        """The same in units of the ranker's delta; None where there is none."""
        return None if self.range is None or not self.delta else self.range / self.delta

    @property
    def favoured(self) -> str:
        """The value with the highest mean, or the values that share it; empty where all are equal."""
        return self._at(max((row.effect for row in self.values), default=0.0))

    @property
    def disfavoured(self) -> str:
        """The value with the lowest mean, or the values that share it; empty where all are equal."""
        return self._at(min((row.effect for row in self.values), default=0.0))

    def _at(self, effect: float) -> str:
        """The names of the values with this effect, but for rounding, in the order of the values."""
        names = [row.value for row in self.values if abs(row.effect - effect) <= 1e-9 * (self.range or 0.0)]
        if not self.range:
            return ""
        if 1 < len(names) == len(self.values) - 1:
            return "all others"
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        kind = ("ending " if len(names) == 1 else "endings ") if self.changes else ""
        return f"{kind}{', '.join(names[:NAMED])}{more}"

    def value(self, name: str) -> ValueRow:
        """The row of one value, in whatever case of letters."""
        return next(row for row in self.values if row.value.lower() == name.lower())

    def significant(self, alpha: float = 0.05) -> list[ValueRow]:
        """The values that differ from the others after correction, the largest effects first."""
        found = [row for row in self.values if row.p_adjusted is not None and row.p_adjusted < alpha]
        return sorted(found, key=lambda row: -abs(row.effect))


def with_adjusted_omnibus(results: Sequence[BiasResult], method: str) -> list[BiasResult]:
    """The same results with the p-values of their omnibus tests corrected over all of them."""
    raw = np.array([np.nan if r.p_value is None else r.p_value for r in results])
    corrected = adjust(raw, method)
    return [replace(r, p_adjusted=None if np.isnan(p) else float(p)) for r, p in zip(results, corrected, strict=True)]
