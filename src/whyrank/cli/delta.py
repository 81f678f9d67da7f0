"""`whyrank delta`: calibrate the difference that matters to a ranker."""

from __future__ import annotations

import json
from dataclasses import dataclass

from whyrank.cli.console import table, tell_computed
from whyrank.cli.options import Input, Lexical, Scoring, open_rankers

MARKS = (10, 25, 50, 75, 90, 99)


@dataclass(frozen=True, kw_only=True)
class DeltaCommand(Scoring, Lexical, Input):
    """Calibrate delta: the median difference of neighbours in the top ten of a ranker's own rankings.

    Attributes:
        ranker: a ranker's call string, such as bm25(k1=1.2); repeat for several.
        candidates: a run file, or the name of a run of the collection.
        delta: the delta that is wanted, a number or a percentile; p50 is the median.
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
        rankers = open_rankers(self.ranker, collection, self.analyzer, self.stats, self.precision)
        source = candidates_for_delta(collection, self.candidates)
        found = thresholds(self.delta, rankers, source, self.engine())
        tell_computed(rankers)
        calibrated = {name: (t.delta, t.calibration) for name, t in found.items() if t.calibration is not None}
        curves = {name: dict(calibration.curve()) for name, (_, calibration) in calibrated.items()}
        if self.json:
            rows = [
                {"ranker": name, "delta": delta, "differences": len(calibration.diffs), "source": calibration.source,
                 "percentiles": curves[name]}
                for name, (delta, calibration) in calibrated.items()
            ]  # fmt: skip
            print(json.dumps(rows, indent=1))
            return
        if not calibrated:
            raise WhyrankError("no query has two candidates to compare; give --candidates RUN")
        header = ["ranker", f"delta ({self.delta})", *(f"p{mark}" for mark in MARKS), "differences"]
        shown = [
            [name, f"{delta:.6g}", *(f"{curves[name][mark]:.4g}" for mark in MARKS), f"{len(calibration.diffs):,}"]
            for name, (delta, calibration) in calibrated.items()
        ]
        where = next(calibration.source for _, calibration in calibrated.values())
        table("", header, shown, caption=f"differences of neighbours in the top 10, {where}")
