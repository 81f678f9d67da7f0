"""The result folder: figures, scores, texts, settings and the report, written as a whole or not at all.

settings.json           the request, versions, deltas, failures, notes
findings.parquet, .csv  one row per finding
scores/NAME.parquet     one row per contrast of one study and one ranker
texts.parquet           the texts that these rows name by index
report.html             all of it for people
tables/                 findings.md and findings.tex, on request
sweep.csv, sweep.svg    scores at every percentile of delta, on request
stability.csv           spread of scores within groups of rankers, on request
bias/                   bias studies: bias.json with all results, values.csv, pairs.csv, correlations.csv, drawings
table.html, .parquet    the term table of the audit, to search, sort and filter, where one is named
effectiveness.parquet   measures of every query, re-ranking a first stage, where there is one and there are judgements
overlap.csv, .svg       effectiveness by overlap with the relevant document, where these are
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import whyrank
from whyrank.core import (
    BadInput,
    Codes,
    Study,
    UnknownName,
    WhyrankError,
    hidden,
    hidden_prefix,
    make_locked,
    read_sealed_json,
    sealed_json,
    suggestion,
    sweep,
    write_text,
)
from whyrank.data import read_parquet, write_parquet
from whyrank.evaluation import Effectiveness, OverlapRow, Spread
from whyrank.report.arrow import (
    csv_of,
    encodable,
    findings_of,
    findings_table,
    plain,
    rows_table,
    scores_table,
    strings,
    table_of_csv,
    values_table,
)
from whyrank.report.table_page import strongest_entries, write_page
from whyrank.report.tables import to_latex, to_markdown
from whyrank.report.views import by_study
from whyrank.report.words import slug
from whyrank.scoring import Failure, one_line
from whyrank.studies import Answer, Contrasts, Finding, SweepPoint, Threshold, reading_of
from whyrank.studies.bias import BiasResult

if TYPE_CHECKING:
    from whyrank.report.audit import Audit

KIND = "whyrank result folder"
FORMAT = 1
FORMATS = ("markdown", "latex")
FAILURES_KEPT = 100
TABLE_PAGE, TABLE, BIAS, BIAS_JSON = "table.html", "table.parquet", "bias", "bias.json"
SWEEP, STABILITY, OVERLAP, MEASURED = "sweep.csv", "stability.csv", "overlap.csv", "effectiveness.parquet"
_FILES = frozenset(
    ["settings.json", "findings.parquet", "findings.csv", "texts.parquet", "report.html", "scores", "tables",
     SWEEP, "sweep.svg", STABILITY, OVERLAP, "overlap.svg", MEASURED, BIAS, TABLE_PAGE, TABLE]
)  # fmt: skip
_PACKAGES = ("numpy", "scipy", "numba", "pyarrow", "ir-measures")  # whose versions can change a figure
_REMEDY = "give a folder that `whyrank audit --out` wrote"
_AGAIN = "run the audit again"


class ResultWriter:
    """Writes a result into an empty folder (see `swap_folder`): `add` every answer, then `finish`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "scores").mkdir()
        self._texts: dict[str, int] = {}
        self._indexed: tuple[Contrasts, Codes, Codes] | None = None

    def add(self, answer: Answer) -> None:
        """Write the scores of one answer."""
        key = (answer.name, answer.ranker)
        if has_scores(self._folder, *key):
            raise WhyrankError(f"study {key[0]} was put to {key[1]} twice; name it once")
        contrasts = answer.contrasts
        if self._indexed is None or self._indexed[0] is not contrasts:  # rankers share the contrasts of a study
            self._indexed = (contrasts, self._indices(contrasts.queries), self._indices(contrasts.docs))
        table = scores_table(contrasts, answer.reading, *self._indexed[1:])
        facts = {"study": answer.name, "call": answer.study.id, "ranker": answer.ranker}
        facts |= {"fingerprint": contrasts.fingerprint}
        named = table.replace_schema_metadata({name: encodable(fact) for name, fact in facts.items()})
        write_parquet(named, _scores_file(self._folder, *key))

    def finish(self, audit: Audit) -> None:
        """Write everything but the scores, in the end the report of what is in the folder."""
        from whyrank.report.audit import open_audit
        from whyrank.report.charts import overlap_svg, sweep_svg

        findings, settings = audit.findings, audit.settings
        rows = findings_table(findings)
        write_parquet(rows, self._folder / "findings.parquet")
        texts = pa.table({"index": pa.array(range(len(self._texts)), pa.int32()), "text": strings(list(self._texts))})
        write_parquet(texts, self._folder / "texts.parquet")
        self._write_text("findings.csv", csv_of(rows))
        self._write_text("settings.json", sealed_json(audit.record, indent=2, allow_nan=False))
        if audit.table is not None:
            write_page(audit.table, self._folder / TABLE_PAGE, str(settings.get("table", "table")))
            strongest_entries(audit.table).save(self._folder / TABLE)
        formats, marks = settings.get("formats") or (), (audit.alpha, audit.correction)
        if "markdown" in formats:
            self._write_text("tables/findings.md", to_markdown(findings, *marks))
        if "latex" in formats:
            self._write_text("tables/findings.tex", to_latex(findings, audit.alpha, correction=audit.correction))
        if audit.spreads is not None:
            self._write_text(STABILITY, csv_of(rows_table(audit.spreads, Spread)))
        if audit.sweep:
            self._write_text(SWEEP, csv_of(rows_table(audit.sweep, SweepPoint)))
            self._write_text("sweep.svg", sweep_svg(audit.sweep))
        if audit.effectiveness:
            write_parquet(values_table(audit.effectiveness), self._folder / MEASURED)
        if audit.overlap:
            self._write_text(OVERLAP, csv_of(rows_table(audit.overlap, OverlapRow)))
            self._write_text("overlap.svg", overlap_svg(audit.overlap))
        if audit.details:
            write_bias(self._folder / BIAS, audit.details, settings, audit.alpha)
        open_audit(self._folder).report(self._folder / "report.html")

    def _indices(self, texts: Sequence[str]) -> Codes:
        """The numbers of some texts among all texts of the result."""
        known = self._texts
        return np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int32)

    def _write_text(self, name: str, text: str) -> None:
        path = self._folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(encodable(text), encoding="utf-8", newline="\n")


def write_bias(folder: Path, results: Sequence[BiasResult], settings: Mapping[str, Any], alpha: float) -> None:
    """Write the figures of bias studies: all of them as JSON, CSV files of their rows, a drawing per study."""
    from whyrank.report.charts import bias_svg

    record = {"settings": dict(settings), "results": [result.as_dict() for result in results]}
    write_text(folder / BIAS_JSON, sealed_json(record, indent=1))
    for kind in ("values", "pairs", "correlations"):
        rows = [
            {"study": result.study, "ranker": result.ranker, **asdict(row)}
            for result in results
            for row in getattr(result, kind)
        ]
        write_text(folder / f"{kind}.csv", csv_of(pa.Table.from_pylist(rows)) if rows else "")
    for study, found in by_study([result for result in results if result.values]).items():
        write_text(folder / f"{slug(study, '')}.svg", encodable(bias_svg(found, alpha)))


def record_of(
    settings: Mapping[str, Any],
    studies: Mapping[str, Study],
    thresholds: Mapping[str, Threshold],
    failures: Sequence[tuple[str, str, Failure]],
    notes: Sequence[str],
) -> dict[str, Any]:
    """Settings, studies, deltas, failures (study, ranker, pair), notes and versions, as values that JSON can hold."""
    versions = {"whyrank": whyrank.__version__, "python": platform.python_version()}
    versions |= {package: version(package) for package in _PACKAGES}
    described = []
    for name, study in studies.items():
        row = {"name": name, "call": study.id, "positive": study.positive, "symmetric": study.symmetric}
        conclusion = reading_of(study).conclusion
        described.append(row | ({"conclusion": conclusion} if conclusion else {}))
    axioms = any(reading_of(study).exact for study in studies.values())
    deltas = {}
    for ranker, threshold in thresholds.items():
        deltas[ranker] = {"delta": threshold.delta, "source": threshold.source}
        if (calibration := threshold.calibration) is not None:
            percentiles = {f"p{p}": calibration.quantile(p / 100) for p in (5, 25, 50, 75, 95)}
            deltas[ranker] |= {"differences": len(calibration.diffs), "chance": threshold.chance}
            deltas[ranker] |= {"percentiles": percentiles}
        deltas[ranker] |= {"axioms": threshold.exact} if axioms else {}
    first = [
        {"study": study, "ranker": ranker}
        | {name: one_line(getattr(failure, name), 200) for name in ("query", "doc", "reason")}
        for study, ranker, failure in failures[:FAILURES_KEPT]
    ]
    record: dict[str, Any] = plain(
        {
            "kind": KIND,
            "format": FORMAT,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "settings": settings,
            "studies": described,
            "thresholds": deltas,
            "failures": {"count": len(failures), "first": first},
            "notes": notes,
            "versions": versions | {"platform": platform.platform()},
        }
    )
    return record


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


def read_scores(path: str | os.PathLike[str], study: str, ranker: str, columns: Sequence[str] | None = None) -> Any:
    """The scores of one study and one ranker as an Arrow table, one row per contrast; by default all columns."""
    file = _scores_file(_folder(path), study, ranker)
    if not file.exists():
        known = sorted({f"{f.study} by {f.ranker}" for f in read_findings(path)})
        asked = f"{study} by {ranker}"
        raise BadInput(path, f"holds no scores of {asked}", _AGAIN if asked in known else suggestion(asked, known))
    return _read(file, columns=columns)


def read_texts(path: str | os.PathLike[str]) -> list[str]:
    """The texts of a result folder, in the order of their indices."""
    texts: list[str] = _read(_folder(path) / "texts.parquet").column("text").to_pylist()
    return texts


def read_bias_results(path: str | os.PathLike[str]) -> list[BiasResult]:
    """The results of the bias studies of a result folder; none where no such study was put to a ranker."""
    file, again = _folder(path) / BIAS / BIAS_JSON, "run the studies again"
    if not file.exists():
        return []
    try:
        return [BiasResult.from_dict(row) for row in read_sealed_json(file, again)["results"]]
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(file, f"does not hold results of bias studies ({error})", again) from None


def read_effectiveness(path: str | os.PathLike[str]) -> list[Effectiveness]:
    """The measures of the rankers of a result folder; none where nothing was measured."""
    file, found = _folder(path) / MEASURED, dict[tuple[str, str], dict[str, float]]()
    for row in _read(file).to_pylist() if file.exists() else ():
        found.setdefault((row["run"], row["measure"]), {})[row["query_id"]] = row["value"]
    return [Effectiveness.of(*key, per_query) for key, per_query in found.items()]


def read_rows(path: str | os.PathLike[str], name: str, kind: type[Any]) -> list[Any]:
    """The records of a CSV file of a result folder; none where there is no such file."""
    file = _folder(path) / name
    if not file.exists():
        return []
    try:
        return [kind(**row) for row in table_of_csv(file.read_text(encoding="utf-8"), kind).to_pylist()]
    except (ValueError, TypeError) as error:  # errors of Arrow are ValueErrors
        raise BadInput(file, f"cannot be read ({str(error).splitlines()[0]})", _AGAIN) from None


def has_scores(folder: Path, study: str, ranker: str) -> bool:
    """Whether a result folder holds the scores of one study and one ranker."""
    return _scores_file(folder, study, ranker).exists()


def check_result(path: str | os.PathLike[str], formats: Sequence[str]) -> Path:
    """The real path of a result folder; an error for a path or a format that cannot be written."""
    for name in formats:
        if name not in FORMATS:
            raise UnknownName("format of tables", str(name), FORMATS)
    return target_folder(path)


def _scores_file(folder: Path, study: str, ranker: str) -> Path:
    return folder / "scores" / f"{slug(study, ranker)}.parquet"


def _folder(path: str | os.PathLike[str]) -> Path:
    if not restore(path).is_dir():
        raise BadInput(path, "is not a folder", _REMEDY)
    if not is_result_folder(Path(path)):
        raise BadInput(path, "is not a result folder of whyrank: its settings.json is missing or not ours", _REMEDY)
    return Path(path)


def _read(path: Path, **options: Any) -> Any:
    try:
        return read_parquet(path, _AGAIN, **options)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(path, f"cannot be read ({reason})", _AGAIN) from None


# The folder is built beside its path and replaces an older result as a whole.


def target_folder(path: str | os.PathLike[str]) -> Path:
    """The real path of a result folder; an error unless it is free or holds an older result."""
    target = restore(path)
    here = Path(os.path.realpath("."))
    if target == here or target in here.parents:
        raise WhyrankError(
            f"{path} holds the current folder, which results must not replace; name a folder inside it"
        )
    if target.is_dir():
        foreign = sorted(each.name for each in target.iterdir() if each.name not in _FILES)
        if foreign and is_result_folder(target):
            what = f"holds {foreign[0]!r} beside an older result, so it is left alone"
            raise BadInput(Path(path), what, "move that away, or name another folder")
        if any(target.iterdir()) and not is_result_folder(target):
            what = "is not empty and holds no whyrank result, so it is left alone"
            raise BadInput(Path(path), what, "name a new or an empty folder")
    elif target.exists():
        raise BadInput(path, "is a file, not a folder", "name another folder for the results")
    return target


def restore(path: str | os.PathLike[str]) -> Path:
    """The real path of a result folder; an older result that a killed process left hidden is put back first."""
    target = Path(os.path.realpath(path))
    if not target.exists() and (left := hidden(target, "old")):
        with _alone(target.parent), suppress(OSError):
            old = next((each for each in left if is_result_folder(each)), None)
            if old is not None and not target.exists():
                old.rename(target)
    return target


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process exchanges results in a folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def swap_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give an empty folder beside `path`; it replaces `path` only when the block succeeds."""
    target = target_folder(path)
    sweep(target)

    def folder_beside() -> str:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            return tempfile.mkdtemp(prefix=hidden_prefix(target), suffix=".tmp", dir=target.parent)
        except OSError as error:
            raise BadInput(path, f"cannot be written ({error.strerror or error})", "choose another path") from None

    made, handle = make_locked(folder_beside)
    beside = Path(made)
    try:
        yield beside
        mask = os.umask(0)
        os.umask(mask)
        beside.chmod(0o777 & ~mask)  # mkdtemp makes private folders; results are ordinary ones
        _exchange(beside, target_folder(path))
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        os.close(handle)


def is_result_folder(path: Path) -> bool:
    """Whether a folder holds a settings.json that says it is a result of ours."""
    try:
        record = json.loads((path / "settings.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and record.get("kind") == KIND


def _exchange(new: Path, target: Path) -> None:
    with _alone(target.parent):
        old = new.with_suffix(".old")
        try:
            if target.exists():
                target.rename(old)
            new.rename(target)
        except BaseException:
            if old.exists() and not target.exists():
                old.rename(target)
            raise
        for each in hidden(target, "old"):
            shutil.rmtree(each, ignore_errors=True)
