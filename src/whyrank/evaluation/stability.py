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
        rows = [spread for study in _studies(findings) if (spread := _spread(findings, group, members, study))]
        found += rows + _families(group, rows)
    return found


def _studies(findings: Sequence[Finding]) -> list[str]:
    return list(dict.fromkeys(finding.study for finding in findings))


def _spread(findings: Sequence[Finding], group: str, members: Sequence[str], study: str) -> Spread | None:
    chosen = [f for f in findings if f.study == study and f.group is None and f.ranker in members]
    scores = np.array([f.score for f in chosen if f.score is not None])
    if len(scores) < 2:
        return None
    low, high = float(scores.min()), float(scores.max())
    return Spread(group, study, 1, len(scores), float(scores.mean()), float(scores.std(ddof=1)), low, high)


def _families(group: str, rows: Sequence[Spread]) -> list[Spread]:
    families = dict.fromkeys(row.study.partition("/")[0] for row in rows)
    return [_family(group, name, [row for row in rows if row.study.partition("/")[0] == name]) for name in families]


def _family(group: str, name: str, rows: Sequence[Spread]) -> Spread:
    deviation = float(np.sqrt(np.mean([row.deviation**2 for row in rows])))
    low, high = min(row.low for row in rows), max(row.high for row in rows)
    rankers = max(row.rankers for row in rows)  # one may lack a score in some study, whichever comes first
    return Spread(group, f"{name}/*", len(rows), rankers, None, deviation, low, high)
