"""What the grades of a collection mean: their names, the lowest relevant one, the non-relevant one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from whyrank.core import WhyrankError


@dataclass(frozen=True)
class Grades:
    """Declared semantics of relevance grades."""

    names: Mapping[int, str] = field(default_factory=lambda: {0: "0", 1: "1"})
    relevant: int = 1
    nonrelevant: int = 0

    def __post_init__(self) -> None:
        """Refuse a scale that stands on its head."""
        if self.nonrelevant >= self.relevant:
            scale = f"non-relevant {self.nonrelevant}, lowest relevant {self.relevant}"
            raise WhyrankError(f"the non-relevant grade must lie below the relevant ones ({scale})")

    def group(self, grade: int) -> Literal["relevant", "non-relevant"]:
        """Which half of the scale a grade belongs to: relevant from the lowest relevant grade upwards."""
        return "relevant" if grade >= self.relevant else "non-relevant"

    def name(self, grade: int) -> str:
        """The grade in words, or the number where no word is declared."""
        return self.names.get(grade, str(grade))


# Craswell et al., Overview of the TREC Deep Learning track, 2019 to 2023: in the passage tasks a passage of
# grade 1 is on topic but does not answer, so binary measures start at 2; the document tasks start at 1.
TREC_DL = Grades({0: "irrelevant", 1: "related", 2: "highly relevant", 3: "perfectly relevant"}, relevant=2)

# Hashemi et al., ANTIQUE: A Non-Factoid Question Answering Benchmark, ECIR 2020: grades 3 and 4 are answers.
ANTIQUE = Grades(
    {1: "out of context", 2: "does not answer", 3: "possible answer", 4: "convincing answer"},
    relevant=3,
    nonrelevant=1,
)

# Ben Abacha et al., Overview of the Medical Question Answering Task at TREC 2017 LiveQA: 3 and 4 are correct answers.
LIVEQA = Grades({1: "incorrect", 2: "related", 3: "incomplete", 4: "excellent"}, relevant=3, nonrelevant=1)

_DL = re.compile(r"(?<![a-z0-9])dl[-_]?(20)?(19|2[0-3])(?![0-9])")
_DOCUMENT_TASK = re.compile(r"(?<![a-z])doc(ument)?s?(?![a-z])")
_ANTIQUE = re.compile(r"(?<![a-z])antique(?![a-z])")
_LIVEQA = re.compile(r"(?<![a-z])liveqa[-_]?med")


def known_grades(name: str) -> Grades | None:
    """The published scale of a collection known by name or ir_datasets id (TREC DL passages, ANTIQUE, LiveQA)."""
    lower = name.lower()
    if _DL.search(lower) and not _DOCUMENT_TASK.search(lower):
        return TREC_DL
    if _ANTIQUE.search(lower):
        return ANTIQUE
    return LIVEQA if _LIVEQA.search(lower) else None


def grades_for(
    name: str,
    qrels: Mapping[str, Mapping[str, int]],
    notes: list[str],
    declared: Grades | None = None,
    names: Mapping[int, str] | None = None,
) -> Grades:
    """The declared scale, else the one known for this name, else relevant from 1 and non-relevant 0 (as trec_eval).

    `names` are words for the grades of a scale that is neither declared nor known. A note says where no judgement is
    below the lowest relevant grade: such a collection lists relevant documents only.
    """
    present = {grade for grades in qrels.values() for grade in grades.values()}
    chosen = declared or known_grades(name)
    remedy = (
        "" if chosen else "; if some grades mean non-relevant, say so in collection.yaml, or files(..., relevant=2)"
    )
    if chosen is None:
        chosen = Grades({grade: str(grade) for grade in sorted(present | {0, 1})} | dict(names or {}))
    strange = sorted(present - set(chosen.names))
    if strange and chosen.names:
        notes.append(f"grades without a declared name: {', '.join(map(str, strange))}")
    if present and max(present) < chosen.relevant and not remedy:
        notes.append(f"no judgement reaches grade {chosen.relevant}, the lowest relevant: nothing counts as relevant")
    if present and min(present) >= chosen.relevant:
        only = "the collection lists relevant documents only"
        notes.append(f"no judgement is below grade {chosen.relevant}, the lowest relevant: {only}{remedy}")
    numbers = {grade: str(grade) for grade in sorted(present | {chosen.nonrelevant, chosen.relevant})}
    return chosen if chosen.names else replace(chosen, names=numbers)
