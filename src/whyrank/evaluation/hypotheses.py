"""Hypotheses about runs: a list of 'A > B', tested in pairs over queries and corrected together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from whyrank.core import BadInput, UnknownName
from whyrank.data import YAML_ERRORS, read_yaml
from whyrank.evaluation.effectiveness import Effectiveness, against, with_adjusted_p

_REMEDY = "write a YAML mapping, a line for each hypothesis: NAME: A > B"


class Hypothesis(NamedTuple):
    """The claim that one run or group is better than another."""

    name: str
    better: str
    worse: str


@dataclass(frozen=True)
class Tested:
    """A hypothesis for one measure: both means, their difference, and the p-values of two-sided tests."""

    hypothesis: str
    better: str
    worse: str
    measure: str
    mean: float
    other: float
    n_queries: int
    difference: float
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    p_t: float | None
    p_adjusted: float | None = None

    def verdict(self, alpha: float) -> str:
        """`holds` or `reversed` where the difference is significant after correction, else `open`."""
        if self.p_adjusted is None or self.p_adjusted >= alpha:
            return "open"
        return "holds" if self.difference > 0 else "reversed"


def read_hypotheses(path: str) -> list[Hypothesis]:
    """Read a YAML file: names with claims such as `A > B` or `B < A`."""
    try:
        content = read_yaml(Path(path).expanduser())
        _check_names(path, yaml.compose(Path(path).expanduser().read_bytes(), yaml.SafeLoader))
    except OSError as error:
        raise BadInput(path, f"cannot be read ({error.strerror or error})", _REMEDY) from None
    except (*YAML_ERRORS, ValueError) as error:
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        raise BadInput(path, f"malformed YAML ({problem})", _REMEDY) from None
    if not isinstance(content, dict) or not content:
        raise BadInput(path, "has no hypotheses", _REMEDY)
    return [_hypothesis(path, str(name), claim) for name, claim in content.items()]


def _hypothesis(path: str, name: str, claim: object) -> Hypothesis:
    sides = [side.strip() for side in str(claim).replace("<", ">").split(">")]
    if not isinstance(claim, str) or len(sides) != 2 or not all(sides) or sides[0] == sides[1]:
        raise BadInput(path, f"{name}: {claim!r} is not a claim about two runs", _REMEDY)
    return Hypothesis(name, *(sides if ">" in claim else reversed(sides)))


def _check_names(path: str, node: Any) -> None:
    """YAML itself would keep the last of two claims with one name, and drop the other."""
    seen: list[str] = []
    for key, _ in node.value if getattr(node, "id", "") == "mapping" else ():
        if key.value in seen:
            what = f"there are two hypotheses with the name {key.value!r}"
            raise BadInput(path, what, "give each a name of its own", key.start_mark.line + 1)
        seen.append(key.value)


def judge(
    rows: Sequence[Effectiveness], hypotheses: Sequence[Hypothesis], correction: str = "holm", seed: int = 0
) -> list[Tested]:
    """Test each hypothesis for each measure; the correction is over the whole table."""
    known = {(row.run, row.measure): row for row in rows}
    measures = list(dict.fromkeys(row.measure for row in rows))
    for name in (name for each in hypotheses for name in (each.better, each.worse)):
        if name not in {row.run for row in rows}:
            raise UnknownName("run of a hypothesis", name, sorted({row.run for row in rows}))
    found = []
    for each in hypotheses:
        for measure in measures:
            row, other = known[each.better, measure], known[each.worse, measure]
            compared = against(row, other, seed)
            figures = (compared.ci_low, compared.ci_high, compared.p_value, compared.p_t)
            difference = float(compared.difference or 0.0)
            found.append(Tested(*each, measure, row.mean, other.mean, row.n_queries, difference, *figures))
    return with_adjusted_p(found, correction)
