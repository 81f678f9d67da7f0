"""Figures in a fixed form, and what they say in words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from whyrank.contrasts.finding import Finding
from whyrank.report.grid import deltas_of, rankers_of, significant

DASH = "–"
MINUS = "−"
_REASON = re.compile(r".+ ([0-9][0-9,]*)", re.DOTALL)
_CORRECTIONS = {"holm": "Holm", "bh": "Benjamini–Hochberg", "bonferroni": "Bonferroni", "none": "no"}


def signed(value: float | None, minus: str = MINUS) -> str:
    """A score with two decimals and its sign; a dash where it is undefined; zero has no sign."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{abs(value):.2f}"
    if float(text) == 0:
        return text
    return ("+" if value > 0 else minus) + text


def count(value: int) -> str:
    """A whole number with commas between thousands."""
    return f"{value:,}"


def figure(value: float | None) -> str:
    """A difference or a delta with four significant digits."""
    return DASH if value is None or not math.isfinite(value) else f"{value:.4g}".replace("-", MINUS)


def p_value(value: float | None) -> str:
    """A p-value with three decimals."""
    if value is None or not math.isfinite(value):
        return DASH
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def interval(finding: Finding) -> str:
    """The confidence interval in brackets."""
    if finding.ci_low is None or finding.ci_high is None:
        return DASH
    return f"[{signed(finding.ci_low)}, {signed(finding.ci_high)}]"


def dropped_words(dropped: str) -> str:
    """How many questions could not be asked and why, as a sentence; `dropped` is the field of a finding."""
    found = [_REASON.fullmatch(part) for part in dropped.split("; ")]
    counts = [int(part[1].replace(",", "")) for part in found if part]
    if not dropped or len(counts) < len(found):
        return f"Questions that could not be asked: {dropped}." if dropped else ""
    total = sum(counts)
    return f"{count(total)} {'question' if total == 1 else 'questions'} could not be asked: {dropped}."


def correction_words(method: str) -> str:
    """How p-values were corrected, as a noun phrase."""
    return f"{_CORRECTIONS.get(method, method)} correction" if method else "correction for the number of tests"


def delta_words(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """Each ranker and its delta (or deltas) in figures."""
    return [(ranker, ", ".join(map(figure, values))) for ranker, values in deltas_of(findings).items()]


@dataclass(frozen=True)
class Claim:
    """One thing that a ranker does, in words, with the finding that shows it."""

    text: str
    finding: Finding


@dataclass(frozen=True)
class Verdict:
    """The strongest significant findings of one ranker; `str` gives the sentence."""

    ranker: str
    claims: Sequence[Claim]
    otherwise: str

    def __str__(self) -> str:
        said = "; ".join(f"{claim.text} ({signed(claim.finding.score)})" for claim in self.claims)
        return f"{self.ranker} {said or self.otherwise}."


def verdicts(
    findings: Sequence[Finding], alpha: float = 0.05, symmetric: Iterable[str] = (), most: int = 3
) -> list[Verdict]:
    """One verdict per ranker: its strongest significant findings, one per thing preferred, both signs.

    Studies named in `symmetric` have no direction and are left out.
    """
    directed = [f for f in findings if f.group is None and f.study not in set(symmetric)]
    return [_verdict(name, [f for f in directed if f.ranker == name], alpha, most) for name in rankers_of(findings)]


def _verdict(ranker: str, findings: list[Finding], alpha: float, most: int) -> Verdict:
    tested = [f for f in findings if f.p_adjusted is not None]
    otherwise = f"shows no significant preference (α = {alpha:g})" if tested else "could not be tested"
    sure = [f for f in tested if significant(f, alpha) and f.score]
    claims = _distinct(sorted(sure, key=lambda f: -abs(f.score or 0.0)))
    return Verdict(ranker, _both_signs(claims, most), otherwise)


def _distinct(findings: Iterable[Finding]) -> list[Claim]:
    """One claim for each thing preferred, whatever was held equal: the first, which is the strongest."""
    claims: dict[str, Claim] = {}
    for finding in findings:
        text = in_words(finding)
        claims.setdefault(text.partition(",")[0], Claim(text, finding))
    return list(claims.values())


def _both_signs(claims: list[Claim], most: int) -> list[Claim]:
    """The first claims; the last of them gives way to the first of the other sign where all have the same one."""
    kept, rest = claims[:most], claims[most:]
    signs = {(claim.finding.score or 0.0) > 0 for claim in kept}
    other = [claim for claim in rest if ((claim.finding.score or 0.0) > 0) not in signs]
    return [*kept[:-1], other[0]] if other and most > 1 else kept


def in_words(finding: Finding) -> str:
    """What the sign of a score says: the study's own words, or their opposite."""
    meaning = finding.meaning or f"agrees with {finding.study}"
    if (finding.score or 0.0) >= 0:
        return meaning
    if meaning.startswith("prefers the "):
        return "disfavours" + meaning.removeprefix("prefers")
    return f"does the opposite of this: {meaning}"
