"""Findings as tables for papers, pages and programs: Markdown, LaTeX, JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase

from whyrank.report.arrow import plain
from whyrank.report.themes import label_of
from whyrank.report.views import Row, collections_of, delta_words, differs, rankers_of, rows_of, significant, standing
from whyrank.report.words import (
    DASH,
    bias_range,
    correction_words,
    count,
    difference,
    one_line,
    share,
    short_names,
    signed,
)
from whyrank.studies import Finding

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|&~])")
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "`": r"\textasciigrave{}", "[": "{[}", "]": "{]}", "*": "{*}",
    "δ": r"$\delta$", "†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$", "−": "$-$", "–": "--",
}  # fmt: skip
_HYPHENS = re.compile("-(?=-)")
_FIGURES = ("n", "queries", "agreement")  # columns that are no text
_STANDING = {1: "†", 0: "", -1: "‡"}


def to_json(findings: Sequence[Finding], indent: int | None = 2) -> str:
    """A list of objects, one per finding; an undefined figure is null."""
    return json.dumps([plain(f.as_dict()) for f in findings], indent=indent, ensure_ascii=False, allow_nan=False)


def to_markdown(findings: Sequence[Finding], alpha: float = 0.05, correction: str = "") -> str:
    """A pipe table, one row per study and one column per ranker, and what its marks and deltas mean.

    Axioms have a table of their own, with the share of instances that a ranker satisfies.
    """
    return "\n".join(_markdown(part, alpha, correction) for part in _parts(findings))


def _markdown(findings: Sequence[Finding], alpha: float, correction: str) -> str:
    rankers, rows = rankers_of(findings), rows_of(findings)
    lead, compared = _lead(rows), _compared(findings)
    head = [*lead, *rankers, *compared]
    body = [
        [
            *(show(row) for show in lead.values()),
            *(_plain_cell(row, ranker, alpha) for ranker in rankers),
            *(_difference_cell(row.cells.get(ranker), alpha) for ranker in compared.values()),
        ]
        for row in rows
    ]
    rules = ["---:" if name in _FIGURES or name not in lead else "---" for name in head]
    lines = [map(escape_markdown, head), rules, *(map(escape_markdown, row) for row in body)]
    table = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([*table, "", escape_markdown(legend(findings, alpha, correction)), ""])


def to_latex(
    findings: Sequence[Finding],
    alpha: float = 0.05,
    caption: str | None = None,
    label: str = "tab:findings",
    correction: str = "",
    studies: Sequence[str] = ("*",),
) -> str:
    """A booktabs table, one row per study and one column per ranker, with short names.

    A dagger marks what is significant; bold is what differs significantly from the baseline, where there is one.
    `caption` is plain text that stands before the words on marks and deltas. `studies` are the rows: names or shell
    patterns. Axioms have a table of their own, with the share of instances that a ranker satisfies.
    """
    chosen = [f for f in findings if any(fnmatchcase(f.study, pattern) for pattern in studies)]
    tables = []
    for part in _parts(chosen):
        own = f"{label}-axioms" if part and part[0].conclusion else label
        tables.append(_latex(part, alpha, caption, own, correction))
    return "\n".join(tables)


def _latex(findings: Sequence[Finding], alpha: float, caption: str | None, label: str, correction: str) -> str:
    rows, names = rows_of(findings), short_names(rankers_of(findings))
    lead, taken = _lead(rows), Counter(label_of(row.study) for row in rows if row.group is None)
    first = next(iter(lead))
    lead[first] = lambda row: label_of(row.study, full=taken[label_of(row.study)] > 1)
    safe = re.sub(r"[^A-Za-z0-9:._-]+", "-", label)
    head = ["$n$" if name == "n" else escape_latex(name.capitalize()) for name in lead]
    words = " ".join(filter(None, [caption, legend(findings, alpha, correction, names)]))
    if baseline := next((row.baseline for row in rows if row.baseline), ""):
        words += f" Bold: differs from {names.get(baseline, baseline)}, p < {alpha:g}."
    compared = _compared(findings, names)
    columns = "".join("r" if name in _FIGURES else "l" for name in lead) + "r" * (len(names) + len(compared))
    body = []
    for row in rows:
        cells = [_latex_cell(row.cells.get(ranker), alpha) for ranker in names]
        cells += [escape_latex(_difference_cell(row.cells.get(ranker), alpha)) for ranker in compared.values()]
        body.append([*(escape_latex(show(row)) for show in lead.values()), *cells])
    titles = [*head, *map(escape_latex, [*names.values(), *compared])]
    top, *rest = [" & ".join(cells) + r" \\" for cells in (titles, *body)]
    lines = [
        r"\begin{table}", r"\centering", rf"\caption{{{escape_latex(words)}}}", rf"\label{{{safe}}}",
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule", top, r"\midrule", *rest, r"\bottomrule",
        r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip
    return "\n".join([*lines, ""])


def legend(
    findings: Sequence[Finding], alpha: float, correction: str = "", names: Mapping[str, str] | None = None
) -> str:
    """What a table must say beside its figures: scale, marks, correction, delta per ranker, called by its name."""
    where = f" ({', '.join(collections_of(findings))})" if findings else ""
    if any(finding.conclusion for finding in findings):
        said = (
            f"Share of an axiom's instances that the ranker satisfies{where}: the winner scores higher (strict), or "
            "not lower (weak). † marks a share above chance, ‡ one below it: 95% interval by query, and "
            f"p < {alpha:g} after {correction_words(correction)}. Agreement: among the instances that relevance "
            f"decides, the share in which it sides with the axiom. {DASH}: no answer. "
        )
    else:
        said = (
            f"Score: share of contrasts with a positive effect less share with a negative one, from −1 to +1{where}. "
            f"† marks p < {alpha:g}, tested by query, after {correction_words(correction)}. {DASH}: no answer. "
        )
    if any(finding.range is not None for finding in findings):
        said += "Bias studies: highest mean score of a value less the lowest, in δ or, without one, in scores; "
        said += "† where any value differs. "
    if any(finding.control is not None for finding in findings):
        said += "In brackets: the score of the control, a copy of the text that only joins its tokens by blanks. "
    if _compared(findings):
        said += (
            "Differences are taken on the same contrasts: of scores, of shares satisfied in percentage points, of "
        )
        said += "ranges in δ; † where they are significant. "
    deltas = "; ".join(f"{(names or {}).get(ranker, ranker)} {delta}" for ranker, delta in delta_words(findings))
    return (said + (f"δ per ranker: {deltas}." if deltas else "")).strip()


def escape_markdown(text: str) -> str:
    """A text on one line whose characters mean themselves in a Markdown table."""
    return _MARKDOWN.sub(r"\\\1", one_line(text))


def escape_latex(text: str) -> str:
    """A text on one line whose characters mean themselves in LaTeX."""
    return "".join(_LATEX.get(c, c) for c in _HYPHENS.sub("-\0", one_line(text))).replace("\0", "{}")


def _parts(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings of studies with scores, and those of axioms; what is empty is left out, but for one."""
    scored, axioms = ([f for f in findings if bool(f.conclusion) is kind] for kind in (False, True))
    return [part for part in (scored, axioms) if part] or [[]]


def _lead(rows: Sequence[Row]) -> dict[str, Callable[[Row], str]]:
    """The columns before those of the rankers; collection and group only where they tell rows apart."""
    axioms = any(row.conclusion for row in rows)
    columns: dict[str, Callable[[Row], str]] = {"axiom" if axioms else "study": lambda row: row.study}
    if len({row.collection for row in rows}) > 1:
        columns["collection"] = lambda row: row.collection
    if any(row.group is not None for row in rows):
        columns["group"] = lambda row: "all" if row.group is None else row.group
    if axioms:
        columns["conclusion"] = lambda row: row.conclusion
    columns |= {"n": lambda row: count(row.n), "queries": lambda row: count(row.n_queries)}
    if axioms:
        columns["agreement"] = lambda row: share(row.judged.agreement if row.judged else None)
    return columns


def _compared(findings: Sequence[Finding], names: Mapping[str, str] | None = None) -> dict[str, str]:
    """The heads of the columns of differences, with the rankers that they are of."""
    named = {name: name for f in findings for name in (f.ranker, f.baseline)} | dict(names or {})
    return {f"{named[f.ranker]} − {named[f.baseline]}": f.ranker for f in findings if f.baseline}


def _difference_cell(finding: Finding | None, alpha: float) -> str:
    """The difference from the baseline: of scores, of shares in percentage points, of ranges in deltas."""
    if finding is None or finding.difference is None:
        return DASH
    return difference(finding) + "†" * differs(finding, alpha)


def _plain_cell(row: Row, ranker: str, alpha: float) -> str:
    finding = row.cells.get(ranker)
    if finding is None or not finding.n:
        return DASH
    if finding.conclusion:
        return share(finding.satisfied) + _STANDING[standing(finding, alpha)]
    control = "" if finding.control is None else f" ({signed(finding.control)})"
    shown = signed(finding.score) if finding.range is None else bias_range(finding)
    return shown + ("†" if significant(finding, alpha) else "") + control


def _latex_cell(finding: Finding | None, alpha: float) -> str:
    if finding is None or not finding.n or finding.score is None:
        return "--"
    bold = differs(finding, alpha)
    if finding.conclusion:
        text = escape_latex(share(finding.satisfied) + _STANDING[standing(finding, alpha)])
        return rf"\textbf{{{text}}}" if bold else text
    number = signed(finding.score, minus="-")
    if finding.range is not None:
        number = bias_range(finding).replace(" δ", r"\,\delta")
    mark = r"^{\dagger}" if significant(finding, alpha) else ""
    control = "" if finding.control is None else f" (${signed(finding.control, minus='-')}$)"
    return (rf"$\mathbf{{{number}}}{mark}$" if bold else f"${number}{mark}$") + control
