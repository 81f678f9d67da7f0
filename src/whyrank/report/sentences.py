"""The findings that matter most, in sentences: chosen by difference between rankers and by surprise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from whyrank.report.themes import OTHER, OTHER_ONE, Words, words_for
from whyrank.report.views import differs, is_clear, rows_of
from whyrank.report.words import count, listed, share
from whyrank.studies import FEW_QUERIES, Finding

LEAST, MOST = 3, 4
_CONTROLLED = 1.5  # weight of differences where one text is a changed copy: only the change can be their cause
_WEAK = 0.12  # interest below which a finding says nothing new, where rankers are compared and three are told


@dataclass(frozen=True)
class Headline:
    """One finding in words; `finding` is that of the ranker it is about, `interest` what it was chosen by."""

    theme: str
    text: str
    finding: Finding
    interest: float
    trivial: bool = False

    def __str__(self) -> str:
        return f"{self.theme}. {self.text}"


def headlines(
    findings: Sequence[Finding],
    alpha: float = 0.05,
    symmetric: Iterable[str] = (),
    names: Mapping[str, str] | None = None,
) -> list[Headline]:
    """At most four sentences, one per theme, the most interesting first; none where nothing is significant.

    The interest of a study is the largest difference between two rankers, or from the baseline where there is one,
    which the sentence is then about; half more for changed copies of a text, plus half the surprise: how far a ranker
    goes where it should not, less where all of them do. What nobody doubts, such as a text with the query put in
    front, comes in only where there is nothing else. `symmetric` names studies whose texts have no order, `names`
    what rankers are called.
    """
    undirected, found = set(symmetric), list[Headline]()
    for row in rows_of(f for f in findings if f.group is None):
        answers = [f for f in row.cells.values() if f.score is not None and f.n_queries >= FEW_QUERIES]
        clear = [f for f in answers if is_clear(f, alpha) and (f.range is not None or f.score)]
        if not clear:
            continue
        about = words_for(row.study)
        odd = {f.ranker: _surprise(f, about, alpha) for f in answers}
        strength = {f.ranker: abs(_strength(f, alpha)) for f in clear}
        base = row.baseline
        apart = [
            (_distance(a, b, alpha), a, b) for a, b in combinations(answers, 2) if base in ("", a.ranker, b.ranker)
        ]
        spread, *farthest = max(apart, key=lambda pair: pair[0], default=(0.0,))
        if row.study in undirected and clear[0].range is None:
            subject = max(answers, key=lambda f: f.score or 0.0)
        else:
            told = [f for f in clear if base and spread and f in farthest] or clear
            subject = max(told, key=lambda f: (odd[f.ranker] + strength[f.ranker], abs(f.score or 0.0)))
        others = [f for f in row.cells.values() if f.n and f is not subject]
        text = _sentence(subject, others, about, alpha, row.study in undirected, names or {})
        shared = min(odd.values()) if len(odd) > 1 else 0.0
        controlled = _CONTROLLED if about and about.edited else 1.0
        interest = controlled * spread + max(odd.values()) / 2 - shared / 3 + max(strength.values()) / 10
        theme, trivial = (about.theme, about.trivial) if about else (OTHER, False)
        found.append(Headline(theme, text, subject, interest, trivial))
    best: dict[str, Headline] = {}
    for headline in sorted(found, key=lambda h: (h.trivial, -h.interest)):
        best.setdefault(headline.theme, headline)
    serious = [h for h in best.values() if not h.trivial] or list(best.values())[:1]
    alone = len({f.ranker for f in findings}) == 1
    return [h for i, h in enumerate(serious[:MOST]) if alone or i < LEAST or h.interest >= _WEAK]


def _strength(finding: Finding, alpha: float) -> float:
    """How strong an answer is at least, from -1 to 1: the end of its interval that is nearer to 0.

    A range of one rank step between the favoured and the disfavoured value of a bias study counts one half.
    """
    if not is_clear(finding, alpha):
        return 0.0
    if finding.range is not None:
        steps = 1.0 if finding.range_deltas is None else finding.range_deltas
        return steps / (1 + steps)
    low, high = finding.ci_low or 0.0, finding.ci_high or 0.0
    return max(low, 0.0) if (finding.score or 0.0) > 0 else min(high, 0.0)


def _distance(a: Finding, b: Finding, alpha: float) -> float:
    """How far two rankers differ at least: the end of the interval of their paired difference that is nearer to 0.

    It is 0 where that is not significant. Without a baseline it is the gap between the intervals of the two, or
    between one and 0 where the other ties all pairs: the paired differences are then the answers of the one.
    """
    paired = next((f for f, base in ((a, b), (b, a)) if f.baseline == base.ranker), None)
    if paired is not None and not differs(paired, alpha):
        return 0.0
    if a.range is not None or b.range is not None:
        return abs(_strength(a, alpha) - _strength(b, alpha))
    if paired is not None:
        ends = (paired.difference_low or 0.0, -(paired.difference_high or 0.0))
        return max(*ends, 0.0) * (2 if paired.conclusion else 1)  # a share moves half as far as a score
    bounds = (a.ci_low, a.ci_high, b.ci_low, b.ci_high)
    if None in bounds or not (is_clear(a, alpha) or is_clear(b, alpha)):
        return 0.0
    tied = [f.neutral == f.n - f.nonfinite for f in (a, a, b, b)]
    low_a, high_a, low_b, high_b = (
        0.0 if bound is None or none else bound for bound, none in zip(bounds, tied, strict=True)
    )
    return max(low_a - high_b, low_b - high_a, 0.0)


def _surprise(finding: Finding, about: Words | None, alpha: float) -> float:
    """How far an answer goes against what one would expect; 0 where opinions differ."""
    if about is None or about.expected is None:
        return 0.0
    strength = _strength(finding, alpha)
    return abs(strength) if about.expected == 0 else max(0.0, -about.expected * strength)


def _sentence(
    subject: Finding,
    others: Sequence[Finding],
    about: Words | None,
    alpha: float,
    undirected: bool,
    names: Mapping[str, str],
) -> str:
    """The answer of one ranker in full, then that of the baseline, or the ranker that differs most, and all alike."""
    name = names.get(subject.ranker, subject.ranker)
    said = _answer(subject, about, undirected, name)
    if others:
        base = next((f for f in others if f.ranker == subject.baseline), None)
        farthest = base or max(others, key=lambda f: abs((f.score or 0.0) - (subject.score or 0.0)))
        one, many = _tail(farthest, subject, about, alpha, undirected)
        alike = [f for f in others if _tail(f, subject, about, alpha, undirected) == (one, many)]
        said += f"; {listed([names.get(f.ranker, f.ranker) for f in alike])} {one if len(alike) == 1 else many}"
    return f"{said[:4].replace('the ', 'The ')}{said[4:]}."


def _answer(f: Finding, about: Words | None, undirected: bool, name: str) -> str:
    if f.range is not None:
        return f"{changed(about)}{name} {favours(f, f.range_deltas)}"
    up = (f.score or 0.0) > 0
    setting, does = prefers(f, about, up, undirected)
    wins = _share(f, f.positive if up else f.negative)
    return f"{setting}{name} {does} in {wins} of {where(f.n - f.nonfinite, f.n_queries)}"


def where(pairs: int, queries: int) -> str:
    """How many pairs a figure is from."""
    return f"{count(pairs)} pairs from {count(queries)} queries"


def changed(about: Words | None) -> str:
    """How a sentence on a bias study begins."""
    return f"With only the {about.setting if about else 'name'} changed, "


def favours(finding: Finding, steps: float | None) -> str:
    """Which value of a bias study a ranker favours, and how far."""
    text = f"favours {finding.favoured} over {finding.disfavoured}"
    return text if steps is None else f"{text}, by {steps:.1f} rank steps"


def prefers(finding: Finding, about: Words | None, up: bool, undirected: bool = False) -> tuple[str, str]:
    """How a sentence begins, and what is said of the ranker in pairs that the first text wins, or the second."""
    if undirected:
        return "", f"scores {about.label if about else 'two texts that should count the same'} differently"
    if about is None:
        meaning = finding.meaning or f"agrees with {finding.study}"
        return "", meaning if up else f"goes against “{meaning}”"
    rejects = not up and about.second == OTHER_ONE
    does = f"scores {about.first} lower" if rejects else f"prefers {about.first if up else about.second}"
    return f"{about.setting}, ", does


def _tail(f: Finding, subject: Finding, about: Words | None, alpha: float, undirected: bool) -> tuple[str, str]:
    """What another ranker does, for one and for several who do the same."""
    same, wins = (f.score or 0.0) * (subject.score or 0.0) > 0, max(f.positive, f.negative)
    if f.n == f.nonfinite:
        said = "has no scores", "have no scores"
    elif f.range is not None:
        steps = "" if f.range_deltas is None else f" by {f.range_deltas:.1f}"
        clear = (f"favours {f.favoured}{steps}",) * 2
        said = clear if is_clear(f, alpha) else ("makes no difference", "make no difference")
    elif f.neutral == f.n - f.nonfinite:
        edited = about is not None and about.edited
        said = ("never notices", "never notice") if edited else ("sees no difference", "see no difference")
    elif not undirected and not is_clear(f, alpha):
        said = "has no clear preference", "have no clear preference"
    elif same or undirected or about is None:
        said = (f"{'' if same or undirected else 'does the opposite '}in {_share(f, wins)}",) * 2
    else:
        rest = f"{about.first if (f.score or 0.0) > 0 else about.second} in {_share(f, wins)}"
        said = f"prefers {rest}", f"prefer {rest}"
    return said


def _share(finding: Finding, wins: int) -> str:
    return share(wins / (finding.n - finding.nonfinite), 0)
