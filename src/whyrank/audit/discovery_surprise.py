"""A surprise in a term table: what is odd, under which null, how sure, and which study asks the ranker about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from whyrank.contrasts.correction import adjust

VALUE, SPREAD, APPENDED, EVIDENCE = "value", "spread", "appended", "evidence"
NULLS = {
    VALUE: "over query terms, the value's difference from the rest of its class is symmetric about zero",
    SPREAD: "the class is as alike as random document terms of the same query term",
    APPENDED: "the weights of a word's forms that are one character longer are exchangeable",
    EVIDENCE: "the two terms are independent in the documents of the collection",
}


@dataclass(frozen=True)
class Surprise:
    """One odd thing.

    `value` is what the study varies, `weight` its weight in the table (a mean over `n` query terms or words), and
    `others` what the rest of its class has; for evidence, `n` is in how many documents both terms are, and `others`
    in how many they would be by chance. `direction` is +1 where the table weighs more than it should. `confirmed` is
    None until the study was asked; `outcome` says what it answered.
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


def corrected(found: Sequence[Surprise], method: str) -> list[Surprise]:
    """The surprises with p-values corrected over all of them, the surest first; of equals the largest difference.

    Where differences are figures of other things, as for evidence, the larger weight.
    """
    adjusted = adjust(np.array([s.p_value for s in found]), method).tolist()
    made = [replace(s, p_adjusted=p) for s, p in zip(found, adjusted, strict=True)]
    return sorted(made, key=lambda s: (s.p_adjusted, s.p_value, -_size(s)))


def _size(surprise: Surprise) -> float:
    return surprise.weight if surprise.kind == EVIDENCE else abs(surprise.weight - surprise.others)
