"""`whyrank fidelity`: how well one ranker stands in for another, as tables, and as .json and .parquet files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from whyrank.cli.console import (
    Cell,
    figure,
    interval,
    plural,
    say,
    show_rows,
    star,
    table,
    tell_computed,
    tell_failures,
    test_columns,
)
from whyrank.cli.options import Input, RankerOptions, Scoring, check_file
from whyrank.core import Share, UnknownName, Whole, WhyrankError

if TYPE_CHECKING:
    from whyrank.evaluation.fidelity import Comparison, Fidelity, FidelityDifference, FidelityRow
    from whyrank.scoring import Engine

LINES_SHOWN = 12  # of what is undefined


@dataclass(frozen=True, kw_only=True)
class FidelityCommand(Scoring, RankerOptions, Input):
    """Compare surrogates with targets: correlation and order of their scores per query, with intervals and tests.

    Attributes:
        target: the ranker to be explained, or run:FILE; repeat for several.
        surrogate: a ranker that is to stand in for it; repeat for several.
        collection: repeat for several. Default: sample.
        candidates: the documents to score: a run file or a run of the collection; one for all collections, or one for
            each. Default: BM25 retrieves.
        depth: documents per query.
        k: of the top-k overlaps; repeat. Default: 10, 100.
        missing: documents that one side has not scored: drop leaves them out, zero gives them the score 0.
        measure: pearson, kendall, agreement, top10, ...; repeat for some.
        baseline: the surrogate that others are compared with. Default: the first.
        correction: over the whole table: holm, bonferroni, bh or none.
        alpha: level of significance, after correction.
        seed: seed of everything random.
        out: where the values of every query are written: .parquet or .json.
        json: print JSON on standard output.
    """

    target: tuple[str, ...]
    surrogate: tuple[str, ...]
    collection: tuple[str, ...] = ("sample",)  # type: ignore[assignment]
    candidates: tuple[str, ...] = ()
    depth: Whole = 1000
    k: tuple[Whole, ...] = (10, 100)
    missing: str = "drop"
    measure: tuple[str, ...] = ()
    baseline: str | None = None
    correction: str = "holm"
    alpha: Share = 0.05
    seed: int = 0
    out: str | None = None
    json: bool = False

    def run(self) -> None:
        """Compare, print and write."""
        start = time.perf_counter()
        self._check()
        found = self._compare(self.engine())
        if self.out:
            found.save(self.out)
        print(found.as_json()) if self.json else self._show(found)
        for note in self._notes(found.compared):
            say(f"note: {note}")
        candidates = [docs for each in found.compared for docs in each.candidates.values()]
        rankers = f"{plural(len(self.target), 'target')}, {plural(len(self.surrogate), 'surrogate')}"
        texts = f"{plural(len(candidates), 'query', 'queries')} with {plural(sum(map(len, candidates)), 'candidate')}"
        where = f": {self.out}" if self.out else ""
        took = f"{time.perf_counter() - start:.1f} s"
        say(f"{rankers} on {texts} of {plural(len(found.compared), 'collection')} in {took}{where}")
        for each in found.compared:  # the results of the others are out by now
            for name, run in each.runs.items():
                if not any(isfinite(score) for docs in run.values() for score in docs.values()):
                    raise WhyrankError(f"{name!r} has no finite score for any candidate of {each.collection.name}")

    def _check(self) -> None:
        """Raise an error for what cannot be done, or cannot be written, before anything is opened."""
        from whyrank.core import adjust, split_name
        from whyrank.evaluation.fidelity import SUFFIXES, check_settings, measures_of

        check_settings(self.k, self.missing)
        adjust([], self.correction)
        for name in self.measure:
            if name not in measures_of(self.k):
                raise UnknownName("measure of fidelity", name, measures_of(self.k))
        check_file(self.out, SUFFIXES, "fidelity")
        if self.baseline is not None:
            known = [each for surrogate in self.surrogate for each in (split_name(surrogate)[0], surrogate) if each]
            if self.baseline not in known:
                raise UnknownName("baseline among the surrogates", self.baseline, known)
        for option in ("target", "surrogate", "collection"):
            values = getattr(self, option)
            for value in values:
                if not value.strip() or values.count(value) > 1:
                    raise WhyrankError(f"--{option} {value!r} is empty or given twice; give each one once")
        if len(self.candidates) not in (0, 1, len(self.collection)):
            counts = f"{len(self.candidates)} --candidates for {len(self.collection)} collections"
            raise WhyrankError(f"{counts}; give one for all, or one for each, in their order")

    def _compare(self, engine: Engine) -> Fidelity:
        from whyrank.evaluation.fidelity import measure_fidelity

        runs = self.candidates if len(self.candidates) > 1 else [*(self.candidates or [None])] * len(self.collection)
        names: dict[str, str] = {}
        compared = [self._compare_on(*pair, engine, names) for pair in zip(self.collection, runs, strict=True)]
        chosen = self.baseline or self.surrogate[0]
        baseline = names.get(chosen, chosen)
        recorded = ("depth", "missing", "analyzer", "stats", "correction", "seed")
        settings = {name: getattr(self, name) for name in recorded} | {
            "candidates": list(self.candidates) or "bm25",
            "k": list(self.k),
            "baseline": baseline,
        }
        tests = (self.k, self.missing, self.measure, self.correction, self.seed)
        return measure_fidelity(compared, baseline, *tests, settings)

    def _compare_on(self, spec: str, run: str | None, engine: Engine, names: dict[str, str]) -> Comparison:
        """The comparison on one collection; the name of each call string's ranker is added to `names`."""
        from whyrank.evaluation.fidelity import compare_rankers
        from whyrank.scoring import candidates_for

        collection = self.open_collection(spec)
        specs = list(dict.fromkeys([*self.target, *self.surrogate]))
        opened = self.open_rankers(specs, collection)
        rankers = dict(zip(specs, opened, strict=True))
        names |= {given: ranker.name for given, ranker in rankers.items()}
        given = self.open_run(collection, run) if run else None
        candidates = candidates_for(collection, collection.queries, self.depth, given, self.analyzer)
        if not any(candidates.values()):
            remedy = "give --candidates RUN or another --analyzer"
            raise WhyrankError(f"{collection.name}: no query has candidates; {remedy}")
        targets, surrogates = ([rankers[each] for each in side] for side in (self.target, self.surrogate))
        found = compare_rankers(collection, targets, surrogates, candidates, engine, self.k, self.missing)
        tell_computed(opened)
        tell_failures(found.failures)
        return found

    def _notes(self, compared: Sequence[Comparison]) -> Iterator[str]:
        """Documents that one side lacks, what zero means for scores below zero, and queries without candidates."""
        treatment = "left out" if self.missing == "drop" else "given 0"
        for each in compared:
            one_sided: dict[tuple[str, int], list[str]] = {}
            for (target, surrogate), values in each.cells.items():
                one_sided.setdefault((target, int(values.one_sided.sum())), []).append(surrogate)
            for (target, count), surrogates in one_sided.items():
                if count:
                    rankers = f"{target} and {', '.join(surrogates)}"
                    docs = plural(count, "document")
                    yield f"{each.collection.name}: {docs} scored by one alone, {treatment}: {rankers}"
        for each in compared if self.missing == "zero" else ():
            for ranker, run in each.runs.items():
                if any(score < 0 for docs in run.values() for score in docs.values()):
                    what = "has scores below 0: what it lacks counts as better than these"
                    yield f"{each.collection.name}: {ranker} {what}"
        for each in compared:
            if bare := sum(not each.candidates.get(query) for query in each.collection.qrels):
                queries = plural(bare, "judged query", "judged queries")
                yield f"{each.collection.name}: {queries} without candidates, counted as zero in the effectiveness"

    def _show(self, found: Fidelity) -> None:
        """Print a matrix of targets and surrogates for each collection, the differences, and the effectiveness."""
        baseline, level = found.settings["baseline"], f"* p < {self.alpha:g} after correction ({self.correction})"
        starred = {_key(row) for row in found.differences if star(row.p_adjusted, self.alpha) == "*"}
        for name in dict.fromkeys(row.collection for row in found.rows):
            of_collection = [row for row in found.rows if row.collection == name]
            _show_matrix(of_collection, starred, baseline, len(found.compared))
        if found.differences:
            columns: dict[str, Cell] = {
                "collection": "collection", "measure": "measure", "target": "target",
                "surrogate": "surrogate",
                "difference": lambda row: figure(row.difference, "+.3f") + star(row.p_adjusted, self.alpha),
                **test_columns("+.3f"), "queries": ("n_queries", ","),
            }  # fmt: skip
            caption = (
                "paired by query; p: two-sided randomisation test over queries, p (t): paired t-test\n"
                f"{level} over this table"
            )
            show_rows(f"difference from {baseline}", found.differences, columns, 4, caption)
        if found.effectiveness:
            targets = {target for each in found.compared for target, _ in each.cells}
            rows = [{"collection": name, **vars(row)} for name, row in found.effectiveness]
            columns = {
                "collection": "collection", "ranker": "run",
                "": lambda row: "target" if row["run"] in targets else "surrogate",
                rows[0]["measure"]: ("mean", ".4f"), "queries": ("n_queries", ","),
                "difference": lambda row: figure(row["difference"], "+.4f") + star(row["p_adjusted"], self.alpha),
                "95% interval": lambda row: interval(row["ci_low"], row["ci_high"]),
                "p": ("p_value", "p"), "p adj.": ("p_adjusted", "p"),
            }  # fmt: skip
            caption = f"of the candidates, re-ranked; difference from {baseline}, paired by query\n"
            show_rows("effectiveness", rows, columns, 3, f"{caption}{level}, for each collection")


def _show_matrix(rows: Sequence[FidelityRow], starred: set[tuple[str, ...]], baseline: str, collections: int) -> None:
    surrogates = list(dict.fromkeys(row.surrogate for row in rows))
    known = {(row.measure, row.target, row.surrogate): row for row in rows}

    def cell(row: FidelityRow) -> str:
        mean, low, high = (figure(value).replace("+", "") for value in (row.mean, row.ci_low, row.ci_high))
        return f"{mean}{'*' if _key(row) in starred else ' '}{'' if row.ci_low is None else f' [{low}, {high}]'}"

    shown = [
        [measure, target, *(cell(known[measure, target, each]) for each in surrogates)]
        for measure, target in dict.fromkeys((row.measure, row.target) for row in rows)
    ]
    average = rows[0].collection == "average"
    undefined: dict[str, list[str]] = {}  # what is missing of a measure, and the surrogates that lack it
    for row in rows if average else ():
        if row.collections < collections:
            few = f"average over {row.collections} of {collections} collections alone"
            undefined.setdefault(f"{few}: {row.measure} of {row.target}", []).append(row.surrogate)
    for row in rows:
        if row.undefined:
            count = f"{row.undefined:,} of {row.n_queries + row.undefined:,} queries"
            what = f"undefined and left out: {count}, {row.measure} of {row.target}"
            undefined.setdefault(what, []).append(row.surrogate)
    lines = [f"{what} with {', '.join(names)}" for what, names in undefined.items()]
    if len(lines) > LINES_SHOWN:
        lines = [*lines[:LINES_SHOWN], f"and {len(lines) - LINES_SHOWN:,} more such lines"]
    caption = "mean over queries, 95% interval over queries"
    caption += f"; * differs from {baseline}, after correction" if len(surrogates) > 1 else ""
    title = f"average over {collections} collections" if average else rows[0].collection
    table(title, ["measure", "target", *surrogates], shown, 2, "\n".join([caption, *lines]))


def _key(row: FidelityRow | FidelityDifference) -> tuple[str, ...]:
    return row.collection, row.target, row.surrogate, row.measure
