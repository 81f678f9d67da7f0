"""The result folder: figures, scores, texts, settings and the report, written as a whole or not at all.

settings.json           what was asked, versions, deltas, failures, notes
findings.parquet, .csv  one row per finding
scores/NAME.parquet     one row per contrast of one study and one ranker
texts.parquet           the texts that these rows name by index
report.html             all of it for people
tables/                 findings.md and findings.tex, on request
sweep.csv, sweep.svg    scores at every percentile of delta, on request
stability.csv           spread of scores within groups of rankers, on request
bias/                   the figures of bias studies, value by value: bias.json, CSV files, drawings
table.html              the term table that they are compared with, to search, sort and filter, where one is named
overlap.csv, .svg       effectiveness by overlap with the relevant document, where there are judgements
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from whyrank.core import BadInput, Codes, Study, UnknownName, WhyrankError, read_sealed_json, suggestion
from whyrank.data import read_parquet, write_parquet
from whyrank.evaluation import OverlapRow, Spread
from whyrank.report import record as records
from whyrank.report.arrow import (
    csv_of,
    encodable,
    findings_of,
    findings_table,
    overlap_table,
    scores_table,
    stability_table,
    sweep_table,
    texts_table,
    with_metadata,
)
from whyrank.report.bias import FOLDER as BIAS
from whyrank.report.bias import write_figures
from whyrank.report.examples import Examples, choose
from whyrank.report.html import render
from whyrank.report.overlap_drawing import overlap_svg
from whyrank.report.slugs import slug
from whyrank.report.swap import TABLE_PAGE, is_result_folder, place_for, restored, swapped
from whyrank.report.sweep_file import sweep_svg
from whyrank.report.table_page import write_page
from whyrank.report.tables import to_latex, to_markdown
from whyrank.studies import Answer, Contrasts, Finding, SweepPoint, Threshold
from whyrank.studies.bias import BiasResult
from whyrank.tables import TermTable

FORMATS = ("markdown", "latex", "csv")
FAILURES_KEPT = 100
_REMEDY = "give a folder that `whyrank audit --out` wrote"
_AGAIN = "run the audit again"


class ResultWriter:
    """Collects answers and writes a result folder; an older result at the same path is replaced as a whole.

    Use it in a `with` block: `add` every answer, then `finish`. When the block fails or is interrupted, what was
    at the path before is still there.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self.path, self.settings = check_result(path, settings.get("formats") or ()), dict(settings)
        self.findings: list[Finding] = []
        self._swap: AbstractContextManager[Path] = swapped(self.path)
        self._texts: dict[str, int] = {}
        self._indexed: tuple[Contrasts, Codes, Codes] | None = None
        self._studies: dict[str, Study] = {}
        self._examples: dict[tuple[str, str], Examples] = {}
        self._failures: list[dict[str, str]] = []
        self._failed: set[tuple[str, str, str]] = set()
        self._finished = False

    def __enter__(self) -> Self:
        self._folder = self._swap.__enter__()
        (self._folder / "scores").mkdir()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._finished:
            unfinished = WhyrankError(f"{self.path}: nothing was written, because the result was not finished")
            self._swap.__exit__(WhyrankError, unfinished, None)
            raise unfinished
        self._swap.__exit__(kind, error, trace)

    def add(self, answer: Answer) -> None:
        """Write the scores of one answer and keep its findings and a few examples."""
        key = (answer.name, answer.ranker)
        if key in self._examples:
            raise WhyrankError(f"study {key[0]} was put to {key[1]} twice; name it once")
        table = scores_table(answer.contrasts, answer.reading, *self._index(answer.contrasts))
        facts = {"study": answer.name, "call": answer.study.id, "ranker": answer.ranker}
        facts |= {"fingerprint": answer.contrasts.fingerprint}
        write_parquet(with_metadata(table, facts), _scores_file(self._folder, *key))
        self._examples[key] = choose(answer.contrasts, answer.reading)
        self._studies.setdefault(answer.name, answer.study)
        self.findings.extend(answer.findings)
        self._note_failures(answer)

    def finish(
        self,
        findings: Sequence[Finding],
        thresholds: Mapping[str, Threshold] | None = None,
        notes: Sequence[str] = (),
        sweep: Sequence[SweepPoint] = (),
        spreads: Sequence[Spread] | None = None,
        overlap: Sequence[OverlapRow] | None = None,
        details: Sequence[BiasResult] = (),
        table: TermTable | None = None,
    ) -> None:
        """Write everything but the scores: the findings (with corrected p-values), texts, settings and report.

        The report links to a page of `table`, the term table that bias studies were compared with.
        """
        failures = {"count": len(self._failed), "first": self._failures}
        record = records.record_of(self.settings, self._studies, thresholds or {}, failures, notes)
        write_parquet(findings_table(findings), self._folder / "findings.parquet")
        write_parquet(texts_table(list(self._texts)), self._folder / "texts.parquet")
        self._write_text("findings.csv", csv_of(findings_table(findings)))
        self._write_text("settings.json", records.to_text(record))
        if table is not None:
            write_page(table, self._folder / TABLE_PAGE, str(self.settings.get("table", "table")))
        linked = None if table is None else TABLE_PAGE
        page = render(findings, record, self._examples, sweep, spreads, overlap or (), details, linked)
        self._write_text("report.html", page)
        self._write_tables(findings)
        self._write_extras(sweep, spreads, overlap or ())
        if details:
            write_figures(self._folder / BIAS, details, record["settings"], self._alpha)
        self._finished = True

    def _index(self, contrasts: Contrasts) -> tuple[Codes, Codes]:
        """Indices of the texts of some contrasts among all texts of the result."""
        if self._indexed is None or self._indexed[0] is not contrasts:  # rankers share the contrasts of a study
            self._indexed = (contrasts, self._places(contrasts.queries), self._places(contrasts.docs))
        return self._indexed[1:]

    def _places(self, texts: Sequence[str]) -> Codes:
        known = self._texts
        return np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int32)

    def _note_failures(self, answer: Answer) -> None:
        """Count each pair once, however many studies ask about it; keep the first ones."""
        for failure in answer.failures:
            key = (answer.ranker, failure.query, failure.doc)
            if key in self._failed:
                continue
            self._failed.add(key)
            if len(self._failures) < FAILURES_KEPT:
                self._failures.append(records.failure_row(answer.name, answer.ranker, failure))

    def _write_tables(self, findings: Sequence[Finding]) -> None:
        alpha, correction = self._alpha, str(self.settings.get("correction", ""))
        formats = self.settings.get("formats") or ()
        if "markdown" in formats:
            self._write_text("tables/findings.md", to_markdown(findings, alpha, correction=correction))
        if "csv" in formats:
            self._write_text("tables/findings.csv", csv_of(findings_table(findings)))
        if "latex" in formats:
            self._write_text("tables/findings.tex", to_latex(findings, alpha, correction=correction))

    def _write_extras(
        self, sweep: Sequence[SweepPoint], spreads: Sequence[Spread] | None, overlap: Sequence[OverlapRow]
    ) -> None:
        if sweep:
            self._write_text("sweep.csv", csv_of(sweep_table(sweep)))
            self._write_text("sweep.svg", sweep_svg(sweep))
        if spreads is not None:
            self._write_text("stability.csv", csv_of(stability_table(spreads)))
        if overlap:
            self._write_text("overlap.csv", csv_of(overlap_table(overlap)))
            self._write_text("overlap.svg", overlap_svg(overlap))

    @property
    def _alpha(self) -> float:
        return float(self.settings.get("alpha", 0.05))

    def _write_text(self, name: str, text: str) -> None:
        path = self._folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(encodable(text), encoding="utf-8", newline="\n")


def read_findings(path: str | os.PathLike[str]) -> list[Finding]:
    """The findings of a result folder."""
    file = _folder(path) / "findings.parquet"
    try:
        return findings_of(_read(file))
    except TypeError as error:
        raise BadInput(file, f"does not hold findings ({error})", _REMEDY) from None


def read_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The record of a result folder: settings, studies, thresholds, failures, notes, versions, date."""
    found: dict[str, Any] = read_sealed_json(_folder(path) / "settings.json", _AGAIN)
    return found


def read_scores(path: str | os.PathLike[str], study: str, ranker: str) -> Any:
    """The scores of one study and one ranker as an Arrow table, one row per contrast."""
    file = _scores_file(_folder(path), study, ranker)
    if not file.exists():
        known = sorted({f"{f.study} by {f.ranker}" for f in read_findings(path)})
        raise BadInput(path, f"holds no scores of {study} by {ranker}", suggestion(f"{study} by {ranker}", known))
    return _read(file)


def read_texts(path: str | os.PathLike[str]) -> list[str]:
    """The texts of a result folder, in the order of their indices."""
    texts: list[str] = _read(_folder(path) / "texts.parquet").column("text").to_pylist()
    return texts


def check_result(path: str | os.PathLike[str], formats: Sequence[str]) -> Path:
    """The real path of a result folder; an error for a place or a format that cannot be written."""
    for name in formats:
        if name not in FORMATS:
            raise UnknownName("format of tables", str(name), FORMATS)
    return place_for(path)


def _scores_file(folder: Path, study: str, ranker: str) -> Path:
    return folder / "scores" / f"{slug(study, ranker)}.parquet"


def _folder(path: str | os.PathLike[str]) -> Path:
    if not restored(path).is_dir():
        raise BadInput(path, "is not a folder", _REMEDY)
    if not is_result_folder(Path(path)):
        raise BadInput(path, "is not a result folder of whyrank: its settings.json is missing or not ours", _REMEDY)
    return Path(path)


def _read(path: Path) -> Any:
    try:
        return read_parquet(path, _AGAIN)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(path, f"cannot be read ({reason})", _AGAIN) from None
