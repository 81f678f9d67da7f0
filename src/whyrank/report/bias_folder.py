"""The folder of bias studies: all figures as JSON and CSV, a drawing per study, and one page for people.

bias.json                              what was asked, and all results
values.csv, pairs.csv, correlations.csv  a row per value, per pair of values, per correlation
NAME.svg                               effects per value, a panel per ranker
report.html                            all of it in one file
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from whyrank.core import BadInput, read_sealed_json, sealed_json, write_text
from whyrank.report.arrow import csv_of, encodable
from whyrank.report.bias_drawing import bias_svg
from whyrank.report.favours import by_study
from whyrank.report.slugs import slug
from whyrank.studies.bias import BiasResult

JSON = "bias.json"
FOLDER = "bias"  # of the result folder of an audit


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
