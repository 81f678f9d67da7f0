"""`whyrank fidelity`: how well one ranker stands in for another, as tables, and as .json and .parquet files."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyrank.cli.command import Share, Whole
from whyrank.cli.console import figure, interval, p_value, plural, say, star, table, tell_computed, tell_failures
from whyrank.cli.options import Input, Lexical, Scoring, open_rankers
from whyrank.core import BadInput, UnknownName, WhyrankError

if TYPE_CHECKING:
    from whyrank.evaluation import Effectiveness
    from whyrank.evaluation.fidelity import Compared, FidelityDifference, FidelityRow
    from whyrank.scoring import Engine

SUFFIXES = (".parquet", ".json")
LINES_SHOWN = 12  # of what is undefined


@dataclass(frozen=True, kw_only=True)
class FidelityCommand(Scoring, Lexical, Input):
    """Compare surrogates with targets: correlation and order of their scores per query, with intervals and tests.

    Attributes:
        target: the ranker to be explained, or run:FILE; repeat for several.
        surrogate: a ranker that is to stand in for it; repeat for several.
        collection: repeat for several. Default: sample.
        candidates: the documents to score: a run file or a run of the collection; one for all collections, or one for
            each. Default: BM25 retrieves.
        depth: candidates per query.
        k: of the top-k overlaps; repeat. Default: 10, 100.
        missing: what becomes of documents that one side lacks: drop or zero.
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
            _write(found, self.out)
        print(_json(found)) if self.json else _show(found, self.alpha, self.correction)
        for note in self._notes(found.compared):
            say(f"note: {note}")
        where = f": {self.out}" if self.out else ""
        say(f"{_counts(found.compared)} in {time.perf_counter() - start:.1f} s{where}")
        for each in found.compared:  # what the others gave is out by now
            for name, run in each.runs.items():
                if not any(isfinite(score) for docs in run.values() for score in docs.values()):
                    raise WhyrankError(f"{name!r} has no finite score for any candidate of {each.collection.name}")

    def _check(self) -> None:
        """Raise an error for what cannot be done, or cannot be written, before anything is opened."""
        from whyrank.core import adjust, check_writable
        from whyrank.evaluation.fidelity import check_settings, measures_of

        check_settings(self.k, self.missing)
        adjust([], self.correction)
        for name in (name for name in self.measure if name not in measures_of(self.k)):
            raise UnknownName("measure of fidelity", name, measures_of(self.k))
        if self.out is not None:
            if not self.out.endswith(SUFFIXES):
                remedy = f"end the name in {' or '.join(SUFFIXES)}"
                raise BadInput(self.out, "fidelity cannot be written so", remedy)
            check_writable(self.out)
        if self.baseline is not None and self.baseline not in self.surrogate:
            raise UnknownName("baseline among the surrogates", self.baseline, self.surrogate)
        for option in ("target", "surrogate", "collection"):
            values = getattr(self, option)
            for value in (value for value in values if not value.strip() or values.count(value) > 1):
                raise WhyrankError(f"--{option} {value!r} is empty or given twice; give each one once")
        if len(self.candidates) not in (0, 1, len(self.collection)):
            counts = f"{len(self.candidates)} --candidates for {len(self.collection)} collections"
            raise WhyrankError(f"{counts}; give one for all, or one for each, in their order")

    def _compare(self, engine: Engine) -> Found:
        from whyrank.evaluation.fidelity import common_pairs, differences, effectiveness, measures_of, summarise

        runs = self.candidates if len(self.candidates) > 1 else [*(self.candidates or [None])] * len(self.collection)
        names: dict[str, str] = {}
        compared = [
            self._compare_on(spec, run, engine, names) for spec, run in zip(self.collection, runs, strict=True)
        ]
        known = [each.collection.name for each in compared]
        for name in (name for name in known if known.count(name) > 1):
            remedy = "give one of them another name in collection.yaml"
            raise WhyrankError(f"two collections are called {name!r}; {remedy}")
        cells = {each.collection.name: each.cells for each in compared}
        measures = list(dict.fromkeys(self.measure or measures_of(self.k)))
        baseline = names[self.baseline or self.surrogate[0]]
        common = {
            each.collection.name: common_pairs(each, baseline, self.k) for each in compared if self.missing == "drop"
        }
        measured = [
            (each.collection.name, row)
            for each in compared
            for row in effectiveness(each, baseline, correction=self.correction, seed=self.seed)
        ]
        asked = ("depth", "missing", "analyzer", "stats", "correction", "seed")
        settings = {name: getattr(self, name) for name in asked} | {
            "candidates": list(self.candidates) or "bm25",
            "k": list(self.k),
            "baseline": baseline,
        }
        tested = differences(cells, baseline, measures, self.correction, self.seed, common)
        return Found(settings, compared, summarise(cells, measures), tested, measured)

    def _compare_on(self, spec: str, run: str | None, engine: Engine, names: dict[str, str]) -> Compared:
        """What is found on one collection; `names` learns the name of the ranker of each call string."""
        from whyrank.evaluation.fidelity import compare_rankers
        from whyrank.scoring import candidates_for

        collection = self.open_collection(spec)
        specs = list(dict.fromkeys([*self.target, *self.surrogate]))
        made = open_rankers(specs, collection, self.analyzer, self.stats, self.precision)
        rankers = dict(zip(specs, made, strict=True))
        names |= {given: ranker.name for given, ranker in rankers.items()}
        given = self.open_run(collection, run) if run else None
        candidates = candidates_for(collection, collection.queries, self.depth, given, self.analyzer)
        if not any(candidates.values()):
            remedy = "give --candidates RUN or another --analyzer"
            raise WhyrankError(f"{collection.name}: no query has candidates; {remedy}")
        targets, surrogates = ([rankers[each] for each in side] for side in (self.target, self.surrogate))
        found = compare_rankers(collection, targets, surrogates, candidates, engine, self.k, self.missing)
        tell_computed(made)
        tell_failures(found.failures)
        return found

    def _notes(self, compared: Sequence[Compared]) -> Iterator[str]:
        """Documents that one side lacks, what zero means for scores below zero, and queries without candidates."""
        done = "left out" if self.missing == "drop" else "given 0"
        for each in compared:
            name, counts = each.collection.name, dict[tuple[str, int], list[str]]()
            for (target, surrogate), values in each.cells.items():
                counts.setdefault((target, int(values.one_sided.sum())), []).append(surrogate)
            for (target, count), surrogates in counts.items():
                if count:
                    docs = plural(count, "document")
                    yield f"{name}: {docs} scored by one alone, {done}: {target} and {', '.join(surrogates)}"
        for each in compared if self.missing == "zero" else ():
            for ranker, run in each.runs.items():
                if any(score < 0 for docs in run.values() for score in docs.values()):
                    what = "has scores below 0: what it lacks counts as better than these"
                    yield f"{each.collection.name}: {ranker} {what}"
        for each in compared:
            if bare := sum(not each.candidates.get(query) for query in each.collection.qrels):
                queries = plural(bare, "judged query", "judged queries")
                yield f"{each.collection.name}: {queries} without candidates, counted as zero in the effectiveness"


@dataclass(frozen=True, eq=False)
class Found:
    """All that the command prints and writes."""

    settings: dict[str, Any]
    compared: Sequence[Compared]
    rows: Sequence[FidelityRow]
    differences: Sequence[FidelityDifference]
    effectiveness: Sequence[tuple[str, Effectiveness]] = field(default_factory=list)


def _counts(compared: Sequence[Compared]) -> str:
    cells = compared[0].cells
    targets = plural(len({target for target, _ in cells}), "target")
    surrogates = plural(len({surrogate for _, surrogate in cells}), "surrogate")
    queries = plural(sum(len(each.candidates) for each in compared), "query", "queries")
    docs = plural(sum(len(each) for one in compared for each in one.candidates.values()), "candidate")
    return f"{targets}, {surrogates} on {queries} with {docs} of {plural(len(compared), 'collection')}"


def _json(found: Found, per_query: bool = False) -> str:
    """All rows as JSON; with `per_query` also the value of every query, null where it is undefined."""
    whole: dict[str, Any] = {
        "settings": found.settings,
        "rankers": {each.collection.name: each.identities for each in found.compared},
        "fidelity": [asdict(row) for row in found.rows],
        "differences": [asdict(row) for row in found.differences],
        "effectiveness": [
            {"collection": name, **{k: v for k, v in asdict(row).items() if k != "per_query"}}
            for name, row in found.effectiveness
        ],
    }
    return json.dumps(whole | ({"per_query": list(_per_query(found))} if per_query else {}), indent=1)


def _per_query(found: Found) -> Iterable[dict[str, Any]]:
    for each in found.compared:
        for (target, surrogate), values in each.cells.items():
            counts = zip(values.queries, values.documents.tolist(), values.one_sided.tolist(), strict=True)
            for i, (query, documents, alone) in enumerate(counts):
                row = {"collection": each.collection.name, "target": target, "surrogate": surrogate}
                row |= {"query_id": query, "documents": documents, "one_sided": alone}
                figures = {name: float(column[i]) for name, column in values.values.items()}
                yield row | {name: value if isfinite(value) else None for name, value in figures.items()}


def _write(found: Found, out: str) -> None:
    """Write the values of every query, with all rows beside them, in one step."""
    from whyrank.core import replacing, write_text

    if out.endswith(".json"):
        write_text(Path(out), _json(found, per_query=True) + "\n")
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pa.Table.from_pylist(list(_per_query(found)))
    with replacing(out) as beside:
        pq.write_table(rows.replace_schema_metadata({"whyrank.fidelity": _json(found)}), beside)


def _show(found: Found, alpha: float, correction: str) -> None:
    """Print a matrix of targets and surrogates for each collection, the differences, and the effectiveness."""
    starred = {_key(row) for row in found.differences if star(row.p_adjusted, alpha) == "*"}
    for name in dict.fromkeys(row.collection for row in found.rows):
        rows = [row for row in found.rows if row.collection == name]
        _show_matrix(rows, starred, found.settings["baseline"], len(found.compared))
    if found.differences:
        header = ["collection", "measure", "target", "surrogate", "difference", "95% interval", "p", "p adj.",
                  "p (t)", "queries"]  # fmt: skip
        shown = [
            [row.collection, row.measure, row.target, row.surrogate,
             figure(row.difference, "+.3f") + star(row.p_adjusted, alpha), interval(row.ci_low, row.ci_high),
             *map(p_value, (row.p_value, row.p_adjusted, row.p_t)), f"{row.n_queries:,}"]
            for row in found.differences
        ]  # fmt: skip
        caption = "paired by query; p: two-sided randomisation test over queries, p (t): paired t-test\n"
        caption += f"* p < {alpha:g} after correction ({correction}) over this table"
        table(f"difference from {found.differences[0].baseline}", header, shown, 4, caption)
    if found.effectiveness:
        header = ["collection", "ranker", "", found.effectiveness[0][1].measure, "queries", "difference",
                  "95% interval", "p", "p adj."]  # fmt: skip
        targets = {target for each in found.compared for target, _ in each.cells}
        shown = [
            [name, row.run, "target" if row.run in targets else "surrogate", f"{row.mean:.4f}", f"{row.n_queries:,}",
             figure(row.difference, "+.4f") + star(row.p_adjusted, alpha), interval(row.ci_low, row.ci_high),
             p_value(row.p_value), p_value(row.p_adjusted)]
            for name, row in found.effectiveness
        ]  # fmt: skip
        caption = f"of the candidates, re-ranked; difference from {found.settings['baseline']}, paired by query\n"
        caption += f"* p < {alpha:g} after correction ({correction}), for each collection"
        table("effectiveness", header, shown, 3, caption)


def _show_matrix(rows: Sequence[FidelityRow], starred: set[tuple[str, ...]], baseline: str, collections: int) -> None:
    surrogates = list(dict.fromkeys(row.surrogate for row in rows))
    places = {(row.measure, row.target, row.surrogate): row for row in rows}
    shown = [
        [measure, target, *(_cell(places[measure, target, each], starred) for each in surrogates)]
        for measure, target in dict.fromkeys((row.measure, row.target) for row in rows)
    ]
    several = rows[0].collection == "average"
    title = f"average over {collections} collections" if several else rows[0].collection
    caption = "mean over queries, 95% interval over queries"
    caption += f"; * differs from {baseline}, after correction" if len(surrogates) > 1 else ""
    lacking: dict[str, list[str]] = {}  # what is missing of a measure, and the surrogates that lack it
    for row in rows:
        if several and row.collections < collections:
            where = (
                f"average over {row.collections} of {collections} collections alone: {row.measure} of {row.target}"
            )
            lacking.setdefault(where, []).append(row.surrogate)
    asked = rows[0].n_queries + rows[0].undefined
    for row in (row for row in rows if row.undefined):
        what = f"undefined and left out: {row.undefined:,} of {asked:,} queries, {row.measure} of {row.target}"
        lacking.setdefault(what, []).append(row.surrogate)
    lines = [f"{what} with {', '.join(names)}" for what, names in lacking.items()]
    more = len(lines) - LINES_SHOWN
    lines = [*lines[:LINES_SHOWN], *[f"and {more:,} more such lines"] * (more > 0)]
    table(title, ["measure", "target", *surrogates], shown, 2, "\n".join([caption, *lines]))


def _cell(row: FidelityRow, starred: set[tuple[str, ...]]) -> str:
    mean, low, high = (figure(value).replace("+", "") for value in (row.mean, row.ci_low, row.ci_high))
    return f"{mean}{'*' if _key(row) in starred else ' '}{'' if row.ci_low is None else f' [{low}, {high}]'}"


def _key(row: FidelityRow | FidelityDifference) -> tuple[str, ...]:
    return row.collection, row.target, row.surrogate, row.measure
