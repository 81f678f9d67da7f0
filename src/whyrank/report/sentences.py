"""What the findings of a ranker say, in a sentence or two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from whyrank.report.views import rankers_of, significant, standing
from whyrank.report.words import axiom_name, bias_range, instances, share, signed
from whyrank.studies import Finding


@dataclass(frozen=True)
class Claim:
    """One thing that a ranker does, in words; the finding that shows it; the figure that stands in brackets."""

    text: str
    finding: Finding
    figure: str

    def __str__(self) -> str:
        return f"{self.text} ({self.figure})"


@dataclass(frozen=True)
class Verdict:
    """The strongest significant findings of one ranker, and axioms that it obeys or breaks; `str` gives sentences.

    `obeyed` has the axioms that are obeyed most clearly more often than by chance, `broken` all that are obeyed less
    often; `favoured` has a claim for each bias study in which some value differs. `otherwise` is what to say without
    claims, empty where nothing but axioms or bias studies was studied.
    """

    ranker: str
    claims: Sequence[Claim]
    otherwise: str
    obeyed: Sequence[Claim] = ()
    broken: Sequence[Claim] = ()
    favoured: Sequence[Claim] = ()

    @property
    def sentences(self) -> list[tuple[str, Sequence[Claim]]]:
        """What is said, in order: the verb of a sentence, where its claims have none, and the claims."""
        rest = [("obeys", self.obeyed), ("breaks", self.broken), ("favours", self.favoured)]
        first = ("" if self.claims else self.otherwise, self.claims)
        return [first] * any(first) + [each for each in rest if each[1]]

    def __str__(self) -> str:
        said = [f"{verb} {'; '.join(map(str, claims))}".strip() for verb, claims in self.sentences]
        return f"{self.ranker} {'. It '.join(said)}."


def verdicts(
    findings: Sequence[Finding], alpha: float = 0.05, symmetric: Iterable[str] = (), most: int = 3
) -> list[Verdict]:
    """One verdict per ranker: its strongest significant findings, one per thing preferred, both signs; its axioms.

    Studies named in `symmetric` have no direction and are left out, but for bias studies.
    """
    undirected, whole = set(symmetric), [f for f in findings if f.group is None]
    return [
        _verdict([f for f in whole if f.ranker == name], name, alpha, undirected, most)
        for name in rankers_of(findings)
    ]


def _verdict(findings: Sequence[Finding], ranker: str, alpha: float, symmetric: set[str], most: int) -> Verdict:
    biased = [f for f in findings if f.range is not None]
    directed = [f for f in findings if f.range is None and f.study not in symmetric]
    axioms, others = ([f for f in directed if bool(f.conclusion) is kind] for kind in (True, False))
    clear = sorted((f for f in axioms if standing(f, alpha)), key=_clarity)
    obeyed = [
        Claim(f"{axiom_name(f.study)} in {_obedience(f)}", f, _chance(f)) for f in clear if standing(f, alpha) > 0
    ][:most]
    broken = [
        Claim(axiom_name(f.study), f, f"obeyed in {_obedience(f)}, {_chance(f)}")
        for f in clear
        if standing(f, alpha) < 0
    ]
    favoured = [f for f in biased if significant(f, alpha)]
    favoured.sort(key=lambda f: (-(f.range_deltas or 0.0), -(f.range or 0.0)))
    nothing = f"shows no significant preference (α = {alpha:g})"
    if any(f.p_adjusted is not None for f in others):
        otherwise = nothing
    elif not others and any(f.satisfied is not None for f in axioms):
        otherwise = "" if obeyed or broken else "obeys no axiom more often than by chance, and none less often"
    else:
        otherwise = "could not be tested"
    if otherwise in ("could not be tested", nothing) and any(f.p_adjusted is not None for f in biased):
        otherwise = "" if favoured else nothing
    return Verdict(
        ranker,
        _preferences(others, alpha, most),
        otherwise,
        obeyed,
        broken,
        [Claim(f"{f.favoured} over {f.disfavoured} in {f.study}", f, bias_range(f)) for f in favoured[:most]],
    )


def _preferences(findings: Sequence[Finding], alpha: float, most: int) -> list[Claim]:
    """The strongest significant findings, one for each thing preferred, whatever was held equal.

    Where all have the same sign, the last of them gives way to the strongest of the other sign.
    """
    claims: dict[str, Claim] = {}
    clear = [f for f in findings if significant(f, alpha) and f.score]
    for finding in sorted(clear, key=lambda f: -abs(f.score or 0.0)):
        text = in_words(finding)
        claims.setdefault(text.partition(",")[0], Claim(text, finding, signed(finding.score)))
    kept, rest = list(claims.values())[:most], list(claims.values())[most:]
    signs = {(claim.finding.score or 0.0) > 0 for claim in kept}
    other = [claim for claim in rest if ((claim.finding.score or 0.0) > 0) not in signs]
    return [*kept[:-1], other[0]] if other and most > 1 else kept


def _clarity(finding: Finding) -> tuple[float, int]:
    """Sorts by the distance from chance in whole percent, then by the number of instances, the largest first."""
    return -round(100 * abs((finding.satisfied or 0.0) - (finding.chance or 0.0))), -finding.n


def _obedience(finding: Finding) -> str:
    return f"{share(finding.satisfied, 0)} of {instances(finding)}"


def _chance(finding: Finding) -> str:
    return f"chance {share(finding.chance, 0)}"


def in_words(finding: Finding) -> str:
    """What the sign of a score says: the study's own words, or their opposite."""
    meaning = finding.meaning or f"agrees with {finding.study}"
    if (finding.score or 0.0) >= 0:
        return meaning
    if meaning.startswith("prefers the "):
        return "disfavours" + meaning.removeprefix("prefers")
    return f"does the opposite of this: {meaning}"
