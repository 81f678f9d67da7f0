"""Stability: how far rankers that differ by chance alone (such as the seed of their training) differ in findings.

The published measure per family of probes is 100 times the square root of the mean variance over its probes
(MacAvaney et al., ABNIRML, TACL 2022, table 4).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from whyrank.core import UnknownName, WhyrankError
from whyrank.studies import Finding


class Spread(NamedTuple):
    """The scores of a group of rankers on one study, or over all studies of a family (then `studies` > 1)."""

    group: str
    study: str
    studies: int
    rankers: int
    mean: float | None
    deviation: float
    low: float
    high: float


def group_rankers(patterns: Sequence[str], rankers: Sequence[str]) -> dict[str, list[str]]:
    """The rankers that each shell pattern matches; a group needs two at least."""
    groups = {pattern: fnmatch.filter(rankers, pattern) for pattern in patterns}
    for pattern, members in groups.items():
        if not members:
            raise UnknownName("ranker of a group", pattern, rankers)
        if len(members) < 2:
            raise WhyrankError(
                f"group {pattern!r} matches one ranker only ({members[0]}); a spread needs two or more"
            )
    return groups


def stability(findings: Sequence[Finding], groups: Mapping[str, Sequence[str]]) -> list[Spread]:
    """Mean and sample standard deviation of the scores per study, then per family the root of the mean variance."""
    found: list[Spread] = []
    for group, members in groups.items():
        scores: dict[str, list[float]] = {}
        for finding in findings:
            if finding.group is None and finding.ranker in members and finding.score is not None:
                scores.setdefault(finding.study, []).append(finding.score)
        studies = dict.fromkeys(finding.study for finding in findings)
        rows = [
            Spread(group, study, 1, len(own), float(np.mean(own)), float(np.std(own, ddof=1)), min(own), max(own))
            for study in studies
            if len(own := scores.get(study, [])) > 1
        ]
        families = dict.fromkeys(row.study.partition("/")[0] for row in rows)
        found += rows
        found += [
            _family(group, name, [row for row in rows if row.study.partition("/")[0] == name]) for name in families
        ]
    return found


def _family(group: str, name: str, rows: Sequence[Spread]) -> Spread:
    deviation = float(np.sqrt(np.mean([row.deviation**2 for row in rows])))
    low, high = min(row.low for row in rows), max(row.high for row in rows)
    rankers = max(row.rankers for row in rows)  # one may lack a score in some study, whichever comes first
    return Spread(group, f"{name}/*", len(rows), rankers, None, deviation, low, high)
