"""`whyrank evaluate --group`, `--hypotheses`: runs that belong together, and claims about them as one table."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from whyrank.core import WhyrankError

if TYPE_CHECKING:
    from whyrank.evaluation import Tested


def parse_groups(given: Sequence[str]) -> dict[str, list[str]]:
    """Groups from `NAME=RUN,RUN,...`; a pattern such as `runs/seed*.txt` stands for all files that it matches."""
    groups: dict[str, list[str]] = {}
    for text in given:
        name, _, members = (part.strip() for part in text.partition("="))
        found = [run for member in members.split(",") if member.strip() for run in _expanded(member.strip())]
        if not name or not found or name in groups:
            raise WhyrankError(f"--group {text!r}: write NAME=RUN,RUN,... with a name of its own for each group")
        groups[name] = found
    return groups


def show(rows: Sequence[Tested], alpha: float, correction: str) -> None:
    """Print hypotheses with verdicts."""
    from whyrank.cli.show import p_value, table

    header = [
        "hypothesis",
        "claim",
        "measure",
        "means",
        "difference",
        "95% interval",
        "p",
        "p adj.",
        "p (t)",
        "verdict",
    ]
    shown = [
        [row.hypothesis, f"{row.better} > {row.worse}", row.measure, f"{row.mean:.4f} {row.other:.4f}",
         f"{row.difference:+.4f}", _interval(row), *map(p_value, (row.p_value, row.p_adjusted, row.p_t)),
         row.verdict(alpha)]
        for row in rows
    ]  # fmt: skip
    caption = f"p: randomisation test over queries, two-sided; holds, reversed: p < {alpha:g} after correction "
    table("", header, shown, 3, f"{caption}({correction}); open: neither")


def _interval(row: Tested) -> str:
    return "–" if row.ci_low is None else f"[{row.ci_low:+.4f}, {row.ci_high:+.4f}]"


def _expanded(member: str) -> list[str]:
    matches = sorted(glob.glob(member)) if glob.has_magic(member) and not Path(member).exists() else []
    return matches or [member]
