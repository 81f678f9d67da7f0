"""`whyrank delta`: calibrate the difference that matters to a ranker."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from whyrank.cli.console import table, tell_computed
from whyrank.cli.options import Input, RankerOptions, Scoring

MARKS = (10, 25, 50, 75, 90, 99)


@dataclass(frozen=True, kw_only=True)
class DeltaCommand(Scoring, RankerOptions, Input):
    """Calibrate delta: the median difference of neighbours in the top ten of a ranker's own rankings.

    Attributes:
        ranker: a ranker's call string, such as bm25(k1=1.2), or NAME=SPEC to give it a name; repeat for several.
        candidates: a run file, or the name of a run of the collection.
        delta: score differences up to this are neutral, a number or a percentile; p50 is the median of the
            calibration. Default: p50, axioms 0.
        json: print JSON on standard output.
    """

    ranker: tuple[str, ...] = ()
    candidates: str | None = None
    delta: str = "p50"
    json: bool = False

    def run(self) -> None:
        """Calibrate and print."""
        from whyrank.core import WhyrankError
        from whyrank.studies import candidates_for_delta, thresholds

        collection = self.open_collection()
        rankers = self.open_rankers(self.ranker, collection)
        source = candidates_for_delta(collection, self.candidates)
        calibrated = thresholds(self.delta, rankers, source, self.engine())
        tell_computed(rankers)
        rows: list[dict[str, Any]] = [
            {"ranker": name, "delta": found.delta, "differences": len(found.calibration.diffs),
             "source": found.calibration.source, "percentiles": dict(found.calibration.curve())}
            for name, found in calibrated.items() if found.calibration is not None
        ]  # fmt: skip
        if self.json:
            print(json.dumps(rows, indent=1))
            return
        if not rows:
            raise WhyrankError("no query has two candidates to compare; give --candidates RUN")
        header = ["ranker", f"delta ({self.delta})", *(f"p{mark}" for mark in MARKS), "differences"]
        shown = [
            [row["ranker"], f"{row['delta']:.6g}", *(f"{row['percentiles'][mark]:.4g}" for mark in MARKS),
             f"{row['differences']:,}"]
            for row in rows
        ]  # fmt: skip
        table("", header, shown, caption=f"differences of neighbours in the top 10, {rows[0]['source']}")
