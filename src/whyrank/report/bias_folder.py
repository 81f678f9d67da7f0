"""The folder of bias studies: all figures as JSON and CSV, a drawing per study, and one page for people.

bias.json                              what was asked, and all results
values.csv, pairs.csv, correlations.csv  a row per value, per pair of values, per correlation
NAME.svg                               effects per value, a panel per ranker
report.html                            all of it in one file
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
from markupsafe import Markup

from whyrank.audit.bias_result import BiasResult
from whyrank.core.errors import BadInput
from whyrank.core.files import write_text
from whyrank.report.arrow import csv_of, encodable
from whyrank.report.bias_drawing import bias_svg
from whyrank.report.slugs import slug

_PAGE = Markup("""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Bias studies</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: 1rem 0; }} th, td {{ padding: .15rem .7rem; text-align: right; }}
th:first-child, td:first-child {{ text-align: left; }} tr:nth-child(even) {{ background: #8881; }}
svg {{ max-width: 100%; height: auto; }} .told {{ color: #777; }}
</style>
<h1>Bias studies</h1>
{}
</html>
""")


def write_bias(path: str, results: Sequence[BiasResult], settings: Mapping[str, Any], alpha: float) -> None:
    """Write the folder; each file is whole or not there."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise BadInput(path, "is a file, not a folder", "name another place for the results")
    drawings = {study: bias_svg(found, alpha) for study, found in _by_study(results).items()}
    record = {"settings": dict(settings), "results": [result.as_dict() for result in results]}
    write_text(folder / "bias.json", json.dumps(record, indent=1) + "\n")
    for kind in ("values", "pairs", "correlations"):
        write_text(folder / f"{kind}.csv", _csv(results, kind))
    for study, drawing in drawings.items():
        write_text(folder / f"{slug(study, '')}.svg", encodable(drawing))
    write_text(folder / "report.html", encodable(_page(results, drawings, alpha)))


def _by_study(results: Sequence[BiasResult]) -> dict[str, list[BiasResult]]:
    found: dict[str, list[BiasResult]] = {}
    for result in results:
        if result.values:
            found.setdefault(result.study, []).append(result)
    return found


def _csv(results: Sequence[BiasResult], kind: str) -> str:
    rows = [
        {"study": result.study, "ranker": result.ranker, **asdict(row)}
        for result in results
        for row in getattr(result, kind)
    ]
    return csv_of(pa.Table.from_pylist(rows)) if rows else ""


def _page(results: Sequence[BiasResult], drawings: Mapping[str, str], alpha: float) -> str:
    parts = []
    for study, found in _by_study(results).items():
        parts += [Markup("<h2>{}</h2>").format(study), Markup(drawings[study])]
        parts += [_section(result, alpha) for result in found]
    return str(_PAGE.format(Markup("\n").join(parts)))


def _section(result: BiasResult, alpha: float) -> Markup:
    omnibus = "undefined" if result.p_value is None else f"{result.p_value:.4g}"
    head = Markup("<h3>{}</h3><p>{}</p>").format(
        result.ranker,
        f"{result.n_templates:,} templates, {result.n_clusters:,} independent; omnibus p {omnibus}; "
        f"{len(result.significant(alpha)):,} of {len(result.values):,} values differ after correction",
    )
    notes = Markup("").join(Markup('<p class="told">{}</p>').format(note) for note in result.notes)
    names = ("value", "mean", "effect", "low", "high", "p_adjusted", "deltas", "weight", "count")
    values = [[getattr(row, name) for name in names] for row in sorted(result.values, key=lambda row: -row.effect)]
    about = ("first", "second", "given", "n", "pearson", "low", "high", "p_value", "p_shift", "spearman")
    correlations = [[getattr(row, name) for name in about] for row in result.correlations]
    return head + notes + _table(names, values) + (_table(about, correlations) if correlations else Markup(""))


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Markup:
    header = Markup("").join(Markup("<th>{}</th>").format(name.replace("_", " ")) for name in names)
    body = Markup("\n").join(
        Markup("<tr>{}</tr>").format(Markup("").join(Markup("<td>{}</td>").format(_shown(cell)) for cell in row))
        for row in rows
    )
    return Markup("<table><tr>{}</tr>\n{}</table>").format(header, body)


def _shown(cell: Any) -> str:
    if cell is None:
        return "–"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
