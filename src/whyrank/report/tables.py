"""Findings as tables for papers, pages and programs: Markdown, LaTeX, CSV, JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from whyrank.contrasts.finding import Finding
from whyrank.report.grid import Row, collections_of, rankers_of, rows_of, significant
from whyrank.report.words import DASH, correction_words, count, delta_words, signed

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|&~])")
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "`": r"\textasciigrave{}", "[": "{[}", "]": "{]}", "*": "{*}",
    "δ": r"$\delta$", "†": r"$^{\dagger}$", "−": "$-$", "–": "--",
}  # fmt: skip
_HYPHENS = re.compile("-(?=-)")


def to_json(findings: Sequence[Finding]) -> str:
    """A list of objects, one per finding; an undefined figure is null."""
    rows = [{name: _defined(value) for name, value in f.as_dict().items()} for f in findings]
    return json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False)


def to_csv(findings: Sequence[Finding]) -> str:
    """All fields with a header; strings are quoted, and an undefined figure is an empty cell."""
    from whyrank.report.arrow import csv_of, findings_table

    return csv_of(findings_table(findings))


def from_csv(text: str) -> list[Finding]:
    """The findings that `to_csv` wrote."""
    from whyrank.report.arrow import findings_of, table_of_csv

    return findings_of(table_of_csv(text))


def to_markdown(findings: Sequence[Finding], alpha: float = 0.05, correction: str = "") -> str:
    """A pipe table, one row per study and one column per ranker, and what its marks and deltas mean."""
    rankers, rows = rankers_of(findings), rows_of(findings)
    extra = _extra_columns(rows)
    head = ["study", *extra, "n", "queries", *rankers]
    rules = ["---"] * (1 + len(extra)) + ["---:"] * (2 + len(rankers))
    body = [
        [
            *_names(row, extra),
            count(row.n),
            count(row.n_queries),
            *(_plain_cell(row, r, alpha) for r in rankers),
        ]
        for row in rows
    ]
    lines = [
        _pipes(map(escape_markdown, head)),
        _pipes(rules),
        *(_pipes(map(escape_markdown, row)) for row in body),
    ]
    return "\n".join([*lines, "", escape_markdown(legend(findings, alpha, correction)), ""])


def to_latex(
    findings: Sequence[Finding],
    alpha: float = 0.05,
    caption: str | None = None,
    label: str = "tab:findings",
    correction: str = "",
) -> str:
    """A booktabs table, one row per study and one column per ranker.

    The largest score of a row is bold; a dagger marks the significant ones. `caption` is plain text that
    stands before the words on marks and deltas.
    """
    rankers, rows = rankers_of(findings), rows_of(findings)
    extra = _extra_columns(rows)
    head = [escape_latex(name) for name in ("Study", *map(str.capitalize, extra))] + ["$n$", "Queries"]
    body = [_latex_row(row, rankers, extra, alpha) for row in rows]
    words = " ".join(filter(None, [caption, legend(findings, alpha, correction)]))
    lines = [
        r"\begin{table}", r"\centering", rf"\caption{{{escape_latex(words)}}}", rf"\label{{{_label(label)}}}",
        rf"\begin{{tabular}}{{{'l' * (1 + len(extra))}{'r' * (2 + len(rankers))}}}", r"\toprule",
        _ampersands([*head, *map(escape_latex, rankers)]), r"\midrule", *body, r"\bottomrule",
        r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip
    return "\n".join([*lines, ""])


def legend(findings: Sequence[Finding], alpha: float, correction: str = "") -> str:
    """What a table of scores must say beside its figures: scale, mark, correction, delta per ranker."""
    deltas = "; ".join(f"{ranker} {delta}" for ranker, delta in delta_words(findings))
    where = ", ".join(collections_of(findings))
    return (
        f"Score: share of contrasts with a positive effect less share with a negative one, from −1 to +1"
        f"{f' ({where})' if where else ''}. "
        f"† marks p < {alpha:g}, tested by query, after {correction_words(correction)}. "
        f"{DASH}: no answer. {_control_words(findings)}" + (f"δ per ranker: {deltas}." if deltas else "")
    ).strip()


def escape_markdown(text: str) -> str:
    """A text on one line whose characters mean themselves in a Markdown table."""
    return _MARKDOWN.sub(r"\\\1", one_line(text))


def escape_latex(text: str) -> str:
    """A text on one line whose characters mean themselves in LaTeX."""
    return "".join(_LATEX.get(c, c) for c in _HYPHENS.sub("-\0", one_line(text))).replace("\0", "{}")


def one_line(text: str) -> str:
    """A text without line breaks and control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _defined(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _control_words(findings: Sequence[Finding]) -> str:
    """What the brackets mean, where there are any."""
    if all(finding.control is None for finding in findings):
        return ""
    return "In brackets: the score of the control, a copy of the text that only joins its tokens by blanks. "


def _extra_columns(rows: Sequence[Row]) -> list[str]:
    """Columns that are needed only where they tell rows apart."""
    several = len({row.collection for row in rows}) > 1
    grouped = any(row.group is not None for row in rows)
    return ["collection"] * several + ["group"] * grouped


def _names(row: Row, extra: Sequence[str]) -> list[str]:
    return [
        row.study,
        *(str(getattr(row, name) if getattr(row, name) is not None else "all") for name in extra),
    ]


def _plain_cell(row: Row, ranker: str, alpha: float) -> str:
    finding = row.cells.get(ranker)
    if finding is None or not finding.n:
        return DASH
    control = "" if finding.control is None else f" ({signed(finding.control)})"
    return signed(finding.score) + ("†" if significant(finding, alpha) else "") + control


def _latex_row(row: Row, rankers: Sequence[str], extra: Sequence[str], alpha: float) -> str:
    bold = row.strongest()
    cells = [_latex_cell(row.cells.get(ranker), ranker in bold, alpha) for ranker in rankers]
    sizes = [count(row.n), count(row.n_queries)]
    return _ampersands([*map(escape_latex, _names(row, extra)), *sizes, *cells])


def _latex_cell(finding: Finding | None, bold: bool, alpha: float) -> str:
    if finding is None or not finding.n or finding.score is None:
        return "--"
    number = signed(finding.score, minus="-")
    mark = r"^{\dagger}" if significant(finding, alpha) else ""
    control = "" if finding.control is None else f" (${signed(finding.control, minus='-')}$)"
    return (rf"$\mathbf{{{number}}}{mark}$" if bold else f"${number}{mark}$") + control


def _label(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9:._-]+", "-", text)


def _pipes(cells: Any) -> str:
    return "| " + " | ".join(cells) + " |"


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
