"""What a bias study says, as people read it: figures in words, a drawing of its values, and its files.

bias.json                                what was asked, and all results
values.csv, pairs.csv, correlations.csv  a row per value, per pair of values, per correlation
NAME.svg                                 effects per value, a panel per ranker
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from markupsafe import Markup

from whyrank.core import BadInput, read_sealed_json, sealed_json, write_text
from whyrank.report.arrow import csv_of, encodable
from whyrank.report.panels import line, number, words_at
from whyrank.report.sheets import svg_file
from whyrank.report.slugs import slug
from whyrank.report.tables import one_line
from whyrank.studies.bias import BiasResult, PairRow, ValueRow

JSON = "bias.json"
FOLDER = "bias"  # of the result folder of an audit
PAIRS_SHOWN = 10
_NAMES, _PLOT, _LINE, _HEAD, _FOOT, _GAP = 130, 300, 17, 52, 40, 24


def by_study(results: Sequence[BiasResult]) -> dict[str, list[BiasResult]]:
    """The results of each study, one per ranker."""
    found: dict[str, list[BiasResult]] = {}
    for result in results:
        found.setdefault(result.study, []).append(result)
    return found


def is_flat(result: BiasResult) -> bool:
    """Whether all values score the same, as for a ranker that does not see them; equal means alone are not enough."""
    return not any(figure for row in result.values for figure in (row.effect, row.low, row.high))


def ranked(result: BiasResult) -> list[ValueRow]:
    """The values from the most to the least favoured."""
    return sorted(result.values, key=lambda row: -row.effect)


def is_sure(row: BiasResult | ValueRow | PairRow, alpha: float) -> bool:
    """Whether the corrected p-value of a result, a value or a pair lies below alpha."""
    return row.p_adjusted is not None and row.p_adjusted < alpha


def sure_pairs(result: BiasResult, alpha: float) -> int:
    """How many pairs of values differ after correction."""
    return sum(is_sure(row, alpha) for row in result.pairs)


def largest_differences(result: BiasResult, most: int = PAIRS_SHOWN) -> list[PairRow]:
    """The pairs of values that lie furthest apart, the higher one first."""
    return [_upwards(row) for row in sorted(result.pairs, key=lambda row: -abs(row.difference))[:most]]


def _upwards(row: PairRow) -> PairRow:
    if row.difference >= 0:
        return row
    low, high, deltas = (None if x is None else -x for x in (row.high, row.low, row.deltas))
    return replace(
        row, first=row.second, second=row.first, difference=-row.difference, low=low, high=high, deltas=deltas
    )


def dropped_of(result: BiasResult) -> str:
    """How many templates were left out, by reason, in the order of the filters; empty where none were."""
    return "; ".join(f"{reason} {count:,}" for reason, count in result.dropped.items())


# The values as SVG: a line per value, its effect as a dot and the interval as a bar.


def bias_svg(results: Sequence[BiasResult], alpha: float = 0.05) -> str:
    """One study as a file: a panel per ranker, values by their effects, significant ones in another colour."""
    width = len(results) * (_NAMES + _PLOT + _GAP) + _GAP
    height = max(_height(result) for result in results)
    placed = [
        Markup('<g transform="translate({} 0)">{}</g>').format(_GAP + i * (_NAMES + _PLOT + _GAP), _panel(r, alpha))
        for i, r in enumerate(results)
    ]
    return svg_file("bias", f"{results[0].study}: effect per value", width, height, placed)


def bias_panel(result: BiasResult, alpha: float = 0.05) -> Markup:
    """The same for one ranker as a picture in a page, whose style sheet gives it its colours."""
    spoken = one_line(f"{result.study}: effect of each value on the scores of {result.ranker}")
    template = Markup('<svg class="bias" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return template.format(_NAMES + _PLOT + _GAP, _height(result), spoken, _panel(result, alpha))


def _height(result: BiasResult) -> int:
    return _HEAD + _LINE * len(result.values) + _FOOT


def _panel(result: BiasResult, alpha: float) -> Markup:
    rows = ranked(result)
    reach = _reach(rows)
    bottom = _HEAD + _LINE * len(rows)
    parts = [words_at(0, 18, f"{result.study}: {result.ranker}"[:64], "name head")]
    parts += [words_at(0, 34, f"{result.n_templates:,} templates, difference from the mean of all values", "told")]
    for x in (-reach, 0.0, reach):
        parts += [line("grid" if x else "origin", _x(x, reach), _x(x, reach), _HEAD - 6, bottom)]
        parts += [words_at(_x(x, reach), bottom + 16, f"{x:+.3g}" if x else "0", "tick", "middle")]
    parts += [_row(row, _HEAD + _LINE * i + 8, reach, alpha) for i, row in enumerate(rows)]
    return Markup("").join(parts)


def _row(row: ValueRow, y: float, reach: float, alpha: float) -> Markup:
    name = words_at(_NAMES - 10, y + 4, row.value[:20], "name", "end")
    dot = Markup('<circle class="dot" cx="{}" cy="{}" r="3.4"/>').format(number(_x(row.effect, reach)), number(y))
    band = Markup("")
    if row.low is not None and row.high is not None:
        band = line("band", _x(row.low, reach), _x(row.high, reach), y, y)
    told = f"{row.value}: {row.effect:+.4g}"
    template = Markup('<g class="{}"><title>{}</title>{}{}{}</g>')
    return template.format("value sure" if is_sure(row, alpha) else "value", one_line(told), name, band, dot)


def _reach(rows: Sequence[ValueRow]) -> float:
    """A round number that no end of an interval passes."""
    largest = max((abs(x) for row in rows for x in (row.effect, row.low, row.high) if x is not None), default=0.0)
    if largest <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(largest))
    return next(unit * step for step in (1, 2, 3, 4, 5, 6, 8, 10) if unit * step >= largest * (1 - 1e-9))


def _x(value: float, reach: float) -> float:
    return _NAMES + _PLOT * (min(max(value / reach, -1.0), 1.0) + 1) / 2


# The files.


def write_figures(folder: Path, results: Sequence[BiasResult], settings: Mapping[str, Any], alpha: float) -> None:
    """Write the folder; each file is whole or not there."""
    record = {"settings": dict(settings), "results": [result.as_dict() for result in results]}
    write_text(folder / JSON, sealed_json(record, indent=1))
    for kind in ("values", "pairs", "correlations"):
        write_text(folder / f"{kind}.csv", _csv(results, kind))
    for study, found in by_study([result for result in results if result.values]).items():
        write_text(folder / f"{slug(study, '')}.svg", encodable(bias_svg(found, alpha)))


def read_bias_results(path: str | os.PathLike[str]) -> list[BiasResult]:
    """The results of a folder that `whyrank bias --out` wrote, or of the result folder of an audit."""
    places = [Path(path) / JSON, Path(path) / FOLDER / JSON]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        remedy = "give a folder that `whyrank bias --out` wrote, or an audit that asked bias studies"
        raise BadInput(path, f"has no {JSON}", remedy)
    try:
        record = read_sealed_json(file, "ask the studies again")
        return [BiasResult.from_dict(row) for row in record["results"]]
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(file, f"does not hold results of bias studies ({error})", "ask the studies again") from None


def _csv(results: Sequence[BiasResult], kind: str) -> str:
    rows = [
        {"study": result.study, "ranker": result.ranker, **asdict(row)}
        for result in results
        for row in getattr(result, kind)
    ]
    return csv_of(pa.Table.from_pylist(rows)) if rows else ""
