"""`whyrank tune`: search a ranker's parameters on a development split, or fit the weights of a fuse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whyrank.cli.command import refuse
from whyrank.cli.console import figure, plural, say, table
from whyrank.cli.options import Input, Lexical
from whyrank.core import NonNegative, Whole, WhyrankError

if TYPE_CHECKING:
    from whyrank.evaluation import Runner, Split
    from whyrank.evaluation.fusion import Fusion


@dataclass(frozen=True, kw_only=True)
class TuneCommand(Lexical, Input):
    """Search parameters on the judged queries of a development split, such as --collection PATH:dev.

    Without a grid, the weights of a fuse(of=[...]) are fitted by coordinate ascent; --out FILE.json keeps them.

    Attributes:
        ranker: a ranker's call string, such as bm25(k1=1.2); bm25 by default.
        grid: k1=0.6,0.9,1.2 or k1=0.6:1.2:0.3; repeat for several. Default: for bm25, ql, bm25t, qlt and model1.
        measure: what to maximise.
        candidates: a run file, or the name of a run of the collection.
        depth: documents per query.
        fit_on: for the weights of a fuse: the best N candidates per query; 20.
        dev_share: tune on this share of the queries, drawn at random; measure the rest too.
        restarts: of coordinate ascent, for the weights of a fuse; 10.
        least_gain: an ascent ends with a pass that gains less; 0.00001.
        seed: seed of everything random.
        out: where all settings, or the weights, are written.
        json: print JSON on standard output.
    """

    ranker: tuple[str, ...] = ()
    grid: tuple[str, ...] = ()
    measure: str = "nDCG@10"
    candidates: str | None = None
    depth: Whole = 1000
    fit_on: Whole | None = None
    dev_share: float = 1.0
    restarts: Whole | None = None
    least_gain: NonNegative | None = None
    seed: int = 0
    out: str | None = None
    json: bool = False

    def run(self) -> None:
        """Search or fit, print and write."""
        from whyrank.core import parse_call
        from whyrank.evaluation import Runner, parse_grid, split_queries
        from whyrank.evaluation.fusion import DEPTH
        from whyrank.rankers import Setting
        from whyrank.scoring import Engine

        specs, grids = self.ranker or ("bm25",), dict(map(parse_grid, self.grid))
        if len(specs) > 1 or len(grids) < len(self.grid):
            raise WhyrankError("tune takes one --ranker, and one --grid for each of its parameters")
        fitting = parse_call(specs[0]).name == "fuse" and not grids
        if not fitting:
            why = "is for the weights of a fuse(of=[...]) without --grid; leave it out"
            refuse(self, ("restarts", "least_gain", "fit_on"), why)
        else:
            refuse(self, ("depth",), "is for parameters; weights are fitted on --fit-on N candidates per query")
        collection = self.open_collection()
        given = self.open_run(collection, self.candidates) if self.candidates else None
        depth = self.fit_on or DEPTH if fitting else self.depth
        runner = Runner(Engine(), Setting(collection, self.analyzer, self.stats), given, depth)
        split = split_queries(collection, self.dev_share, self.seed)
        if fitting:
            self._fit(specs[0], split, runner)
        else:
            self._search(specs[0], grids, split, runner, collection.name)

    def _search(self, spec: str, grids: Mapping[str, Any], split: Split, runner: Runner, name: str) -> None:
        from whyrank.core import write_text
        from whyrank.evaluation import tune

        trials = tune(spec, grids, split, self.measure, runner)
        text = json.dumps([trial._asdict() for trial in trials], indent=1)
        if self.out:
            write_text(self.out, text + "\n")
        if self.json:
            print(text)
        else:
            held_out = trials[0].test is not None
            rows = [[each.ranker, f"{each.dev:.4f}", *[figure(each.test, ".4f")] * held_out] for each in trials]
            table("", ["ranker", f"{self.measure} dev", *["held out"] * held_out], rows)
        settings, queries = plural(len(trials), "setting"), plural(len(split.dev.queries), "query", "queries")
        where = f"; all settings: {self.out}" if self.out else ""
        say(f"best of {settings} on {queries} of {name}: {trials[0].ranker}{where}")

    def _fit(self, spec: str, split: Split, runner: Runner) -> None:
        from whyrank.evaluation.fusion import fit_fusion

        given: dict[str, Any] = {"restarts": self.restarts, "tolerance": self.least_gain}
        chosen = {name: value for name, value in given.items() if value is not None}
        found = fit_fusion(spec, split, self.measure, runner, seed=self.seed, **chosen)
        use = found.save(self.out) if self.out else found.spec
        if self.json:
            rows = [row._asdict() for row in found.rows]
            print(json.dumps({"ranker": found.spec, "choices": rows, **found.facts}, indent=1))
        else:
            _show_fusion(found, self.measure)
        ascents = plural(len(found.fitted.ascents), "ascent")
        queries = plural(len(split.dev.queries), "query", "queries")
        say(f"best of {ascents} on {queries} of {split.dev.name}: {use}")


def _show_fusion(found: Fusion, measure: str) -> None:
    held_out, parts = found.rows[0].test is not None, len(found.config.parts)
    header = ["", "weights", *map(str, range(1, 1 + parts)), f"{measure} dev", *["held out"] * held_out]
    rows = [
        [str(i) if i <= parts else "", row.name, *(f"{w:.4f}" for w in row.weights), f"{row.dev:.4f}",
         *[figure(row.test, ".4f")] * held_out]
        for i, row in enumerate(found.rows, 1)
    ]  # fmt: skip
    table("", header, rows, 2)
