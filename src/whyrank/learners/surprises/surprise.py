"""What a surprise in a term table is, and what the table leaves out of it.

A surprise is a weight that should be like others and is not. Each kind is tested on its own (`values`, `appended`,
`evidence`), and p-values are corrected over all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import Flags, Floats, adjust
from whyrank.tables import TermTable, cut_at

VALUE, SPREAD, APPENDED, EVIDENCE = "value", "spread", "appended", "evidence"
NULLS = {
    VALUE: "over query terms, the value's difference from the rest of its class is symmetric about zero",
    SPREAD: "the class is as alike as random document terms of the same query term",
    APPENDED: "the weights of a word's forms that are one character longer are exchangeable",
    EVIDENCE: "the two terms are independent in the documents of the collection",
}
STANDS_OUT = 0.05


@dataclass(frozen=True)
class Surprise:
    """One odd thing.

    `value` is what the study varies, `weight` its weight in the table (a mean over `n` query terms or words), and
    `others` what the rest of its class has; for evidence, `n` is in how many documents both terms are, and `others`
    in how many they would be by chance. `direction` is +1 where the table weighs more than it should. `confirmed` is
    None until the study was run; `outcome` says what was found.
    """

    kind: str
    group: str
    query_term: str
    value: str
    weight: float
    others: float
    n: int
    direction: int
    p_value: float
    study: str
    p_adjusted: float = float("nan")
    confirmed: bool | None = None
    outcome: str = ""

    @property
    def null(self) -> str:
        """What is tested."""
        return NULLS[self.kind]

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        return asdict(self) | {"null": self.null}


class Unjudged(NamedTuple):
    """What could not be judged, and why."""

    what: str
    why: str


class TestedSurprises(NamedTuple):
    """Surprises, what could not be judged, and what was judged with some weights missing."""

    found: list[Surprise]
    unjudged: list[Unjudged]
    partly: Sequence[Unjudged] = ()


def rank_surprises(found: Sequence[Surprise], method: str) -> list[Surprise]:
    """The surprises with p-values corrected over all of them, the most significant first.

    Of equals the largest difference comes first; where differences are figures of other things, as for evidence, the
    larger weight.
    """

    def size(s: Surprise) -> float:
        return s.weight if s.kind == EVIDENCE else abs(s.weight - s.others)

    adjusted = adjust(np.array([s.p_value for s in found]), method).tolist()
    made = [replace(s, p_adjusted=p) for s, p in zip(found, adjusted, strict=True)]
    return sorted(made, key=lambda s: (s.p_adjusted, s.p_value, -size(s)))


def most_unseen(table: TermTable) -> Floats:
    """What an absent entry of each query term counts as: zero, or the least weight that its row of the best has.

    A row that was cut at its best `top` terms says of all others that they weigh no more than its last one. As zeros
    they would look low where the whole row is high.
    """
    lowest = np.zeros(len(table.query_terms))
    for row in np.flatnonzero(np.diff(table.indptr) == (cut_at(table) or -1)).tolist():
        lowest[row] = table.weights[table.indptr[row] : table.indptr[row + 1]].min()
    return lowest


def note_missing(table: TermTable, name: str, known: Flags) -> list[Unjudged]:
    """What is judged with weights missing, how many, and what they count as."""
    missing, top = 1 - float(known.mean()), cut_at(table)
    if missing == 0:
        return []
    last = f", or as the last of a query term's best {top:,} where it has so many" if top else ""
    return [Unjudged(name, f"{missing:.0%} of the weights are missing and count as zero{last}{absent_note(table)}")]


def absent_note(table: TermTable) -> str:
    """The end of a sentence about what a table leaves out; empty where nothing says so."""
    absent = absent_entries(table)
    return f"; {absent} are not in this table" if absent else ""


def absent_entries(table: TermTable) -> str:
    """Which entries a table leaves out, in words; empty where nothing says so."""
    limit, top = table.facts.get("threshold"), cut_at(table)
    weak = f"entries below {limit:g}" if isinstance(limit, int | float) and limit > 0 else ""
    more = f"entries after the best {top:,} of a query term" if top else ""
    return " and ".join(each for each in (weak, more) if each)
