"""The results of bias studies as people read them, and their files in a result folder.

bias.json                                the settings, and all results
values.csv, pairs.csv, correlations.csv  a row per value, per pair of values, per correlation
NAME.svg                                 effects per value, a panel per ranker
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from whyrank.core import BadInput, read_sealed_json, sealed_json, write_text
from whyrank.report.arrow import csv_of, encodable
from whyrank.report.views import significant
from whyrank.report.words import slug
from whyrank.studies.bias import BiasResult, PairRow, ValueRow

JSON = "bias.json"
FOLDER = "bias"  # of the result folder of an audit
PAIRS_SHOWN = 10


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


def significant_pairs(result: BiasResult, alpha: float) -> int:
    """How many pairs of values differ after correction."""
    return sum(significant(row, alpha) for row in result.pairs)


def largest_differences(result: BiasResult, most: int = PAIRS_SHOWN) -> list[PairRow]:
    """The pairs of values that lie furthest apart, the higher one first."""
    found = []
    for row in sorted(result.pairs, key=lambda row: -abs(row.difference))[:most]:
        low, high, deltas = (None if x is None else -x for x in (row.high, row.low, row.deltas))
        turned: dict[str, Any] = {"first": row.second, "second": row.first, "difference": -row.difference}
        turned |= {"low": low, "high": high, "deltas": deltas}
        found.append(row if row.difference >= 0 else replace(row, **turned))
    return found


def dropped_of(result: BiasResult) -> str:
    """How many templates were left out, by reason, in the order of the filters; empty where none were."""
    return "; ".join(f"{reason} {count:,}" for reason, count in result.dropped.items())


def write_figures(folder: Path, results: Sequence[BiasResult], settings: Mapping[str, Any], alpha: float) -> None:
    """Write the folder; each file is whole or not there."""
    from whyrank.report.charts import bias_svg

    record = {"settings": dict(settings), "results": [result.as_dict() for result in results]}
    write_text(folder / JSON, sealed_json(record, indent=1))
    for kind in ("values", "pairs", "correlations"):
        rows = [
            {"study": result.study, "ranker": result.ranker, **asdict(row)}
            for result in results
            for row in getattr(result, kind)
        ]
        write_text(folder / f"{kind}.csv", csv_of(pa.Table.from_pylist(rows)) if rows else "")
    for study, found in by_study([result for result in results if result.values]).items():
        write_text(folder / f"{slug(study, '')}.svg", encodable(bias_svg(found, alpha)))


def read_bias_results(path: str | os.PathLike[str]) -> list[BiasResult]:
    """The results of a folder that `whyrank audit --out` wrote, or of the result folder of an audit."""
    file = next((file for file in (Path(path) / JSON, Path(path) / FOLDER / JSON) if file.is_file()), None)
    if file is None:
        remedy = "give a folder that `whyrank audit --out` wrote, or an audit that asked bias studies"
        raise BadInput(path, f"has no {JSON}", remedy)
    try:
        record = read_sealed_json(file, "ask the studies again")
        return [BiasResult.from_dict(row) for row in record["results"]]
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(file, f"does not hold results of bias studies ({error})", "ask the studies again") from None
