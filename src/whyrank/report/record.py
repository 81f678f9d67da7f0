"""The record of a result: what was asked, with which settings and versions, and what went wrong."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import whyrank
from whyrank.core import Study, sealed_json
from whyrank.scoring import Failure, one_line
from whyrank.studies import Threshold, reading_of

KIND = "whyrank result folder"
FORMAT = 1
_PACKAGES = ("numpy", "scipy", "numba", "pyarrow", "bm25s", "ir-measures")
_PERCENTILES = (5, 25, 50, 75, 95)


def record_of(
    settings: Mapping[str, Any],
    studies: Mapping[str, Study],
    thresholds: Mapping[str, Threshold],
    failures: Mapping[str, Any],
    notes: Sequence[str],
) -> dict[str, Any]:
    """Everything but the figures, as plain values that JSON can hold."""
    record = {
        "kind": KIND,
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": dict(settings),
        "studies": [_study(name, study) for name, study in studies.items()],
        "thresholds": {ranker: _threshold(given) | _exact(given, studies) for ranker, given in thresholds.items()},
        "failures": dict(failures),
        "notes": list(notes),
        "versions": versions(),
    }
    return {key: plain(value) for key, value in record.items()}


def versions() -> dict[str, str]:
    """Versions of all that can change a figure."""
    own = {"whyrank": whyrank.__version__, "python": platform.python_version()}
    return own | {name: _version(name) for name in _PACKAGES} | {"platform": platform.platform()}


def failure_row(study: str, ranker: str, failure: Failure) -> dict[str, str]:
    """A failure as a row of the record, its texts shortened."""
    texts = {"query": failure.query, "doc": failure.doc, "reason": failure.reason}
    return {"study": study, "ranker": ranker} | {name: one_line(text, 200) for name, text in texts.items()}


def plain(value: Any) -> Any:
    """The value in terms of JSON: mappings, lists, strings, numbers; what is undefined or infinite is None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return plain(value.item()) if hasattr(value, "item") else str(value)


def to_text(record: Mapping[str, Any]) -> str:
    """The record as JSON, in characters that any encoding can hold."""
    return sealed_json(plain(record), indent=2, allow_nan=False)


def _study(name: str, study: Study) -> dict[str, Any]:
    found = {"name": name, "call": study.id, "positive": study.positive, "symmetric": study.symmetric}
    conclusion = reading_of(study).conclusion
    return found | ({"conclusion": conclusion} if conclusion else {})


def _threshold(threshold: Threshold) -> dict[str, Any]:
    calibration = threshold.calibration
    if calibration is None:
        return {"delta": threshold.delta, "source": threshold.source}
    return {
        "delta": threshold.delta,
        "source": threshold.source,
        "differences": len(calibration.diffs),
        "chance": threshold.chance,
        "percentiles": {f"p{p}": calibration.quantile(p / 100) for p in _PERCENTILES},
    }


def _exact(threshold: Threshold, studies: Mapping[str, Study]) -> dict[str, Any]:
    """The delta of axioms, where there are any."""
    return {"axioms": threshold.exact} if any(reading_of(study).exact for study in studies.values()) else {}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
