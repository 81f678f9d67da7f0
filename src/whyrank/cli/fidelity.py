"""`whyrank fidelity`: how well one ranker stands in for another."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whyrank.cli import options as o
from whyrank.cli import setup
from whyrank.core import BadInput, UnknownName, WhyrankError

if TYPE_CHECKING:
    from whyrank.core import Ranker
    from whyrank.evaluation import Effectiveness
    from whyrank.evaluation.fidelity import Compared, FidelityDifference, FidelityRow
    from whyrank.scoring import Engine

SUFFIXES = (".parquet", ".json")
Targets = Annotated[
    list[str],
    typer.Option(
        "--target",
        "-t",
        metavar="SPEC",
        help="The ranker to be explained, or run:FILE; repeat for several.",
        callback=o.hide_secrets,
        show_default=False,
    ),
]
Surrogates = Annotated[
    list[str],
    typer.Option(
        "--surrogate",
        "-s",
        metavar="SPEC",
        help="A ranker that is to stand in for it; repeat for several.",
        callback=o.hide_secrets,
        show_default=False,
    ),
]
Collections = Annotated[
    list[str] | None,
    typer.Option("--collection", "-c", metavar="SPEC", help="Repeat for several. Default: sample."),
]
Candidates = Annotated[
    list[str] | None,
    typer.Option(
        "--candidates",
        metavar="RUN",
        help="The documents to score: a run file or a run of the collection; one for all collections, or one for "
        "each. Default: BM25 retrieves.",
    ),
]
Depth = Annotated[int, typer.Option("--depth", metavar="N", help="Candidates per query.", min=1)]
Ks = Annotated[
    list[int] | None, typer.Option("--k", metavar="K", help="Of the top-k overlaps; repeat. Default: 10, 100.", min=1)
]
Missing = Annotated[
    str, typer.Option("--missing", metavar="drop|zero", help="What becomes of documents that one side lacks.")
]
Measures = Annotated[
    list[str] | None,
    typer.Option("--measure", "-m", metavar="NAME", help="pearson, kendall, agreement, top10, ...; repeat for some."),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="SPEC",
        help="The surrogate that others are compared with. Default: the first.",
        callback=o.hide_secrets,
    ),
]


@dataclass(frozen=True, eq=False)
class Found:
    """All that the command prints and writes."""

    settings: dict[str, Any]
    compared: Sequence[Compared]
    rows: Sequence[FidelityRow]
    differences: Sequence[FidelityDifference]
    effectiveness: Sequence[tuple[str, Effectiveness]]
    notes: Sequence[str] = field(default_factory=list)


def fidelity(
    target: Targets,
    surrogate: Surrogates,
    collection: Collections = None,
    candidates: Candidates = None,
    depth: Depth = 1000,
    k: Ks = None,
    missing: Missing = "drop",
    measure: Measures = None,
    baseline: Baseline = None,
    analyzer: o.AnalyzerOption = "lucene",
    stats: o.StatsOption = None,
    precision: o.PrecisionOption = None,
    correction: o.CorrectionOption = "holm",
    alpha: o.AlphaOption = 0.05,
    seed: o.SeedOption = 0,
    executor: o.ExecutorOption = "serial",
    batch_size: o.BatchOption = None,
    store: o.StoreOption = None,
    fresh: o.FreshOption = False,
    timeout: o.TimeoutOption = None,
    out: o.OutOption = None,
    json_: o.JsonOption = False,
    strict: o.StrictOption = False,
) -> None:
    """Compare surrogates with targets: correlation and order of their scores per query, with intervals and tests."""
    from whyrank.cli import show_fidelity

    start = time.perf_counter()
    o.check_filled(baseline=baseline, analyzer=analyzer, stats=stats, precision=precision, store=store, out=out)
    asked = Asked(
        target, surrogate, collection or ["sample"], candidates or [], depth, tuple(k or (10, 100)), missing,
        measure or [], baseline or surrogate[0], analyzer, stats, precision, correction, seed, strict,
    )  # fmt: skip
    asked.check(out)
    found = _found(asked, setup.make_engine(executor, batch_size, store, fresh, timeout))
    if out:
        show_fidelity.write(found, out)
    print(show_fidelity.json_text(found)) if json_ else show_fidelity.tables(found, alpha, correction)
    for note in found.notes:
        setup.say(f"note: {note}")
    setup.say(_closing(found, time.perf_counter() - start) + (f": {out}" if out else ""))
    _check_scored(found.compared)


@dataclass(frozen=True)
class Asked:
    """The request, whose parts are checked before anything is opened."""

    targets: Sequence[str]
    surrogates: Sequence[str]
    collections: Sequence[str]
    candidates: Sequence[str]
    depth: int
    ks: tuple[int, ...]
    missing: str
    some: Sequence[str]
    baseline: str
    analyzer: str
    stats: str | None
    precision: str | None
    correction: str
    seed: int
    strict: bool

    @property
    def measures(self) -> list[str]:
        """The measures that are asked for, all by default."""
        from whyrank.evaluation.fidelity import measures_of

        return list(dict.fromkeys(self.some or measures_of(self.ks)))

    def check(self, out: str | None) -> None:
        """Raise an error for what cannot be done, or cannot be written."""
        from whyrank.core import adjust, check_place
        from whyrank.evaluation.fidelity import check_settings, measures_of

        check_settings(self.ks, self.missing)
        adjust([], self.correction)
        for name in (name for name in self.some if name not in measures_of(self.ks)):
            raise UnknownName("measure of fidelity", name, measures_of(self.ks))
        if out is not None and not out.endswith(SUFFIXES):
            raise BadInput(out, "fidelity cannot be written so", f"end the name in {' or '.join(SUFFIXES)}")
        if out is not None:
            check_place(out)
        if self.baseline not in self.surrogates:
            raise UnknownName("baseline among the surrogates", self.baseline, self.surrogates)
        self._check_lists()

    def _check_lists(self) -> None:
        named = {"--target": self.targets, "--surrogate": self.surrogates, "--collection": self.collections}
        for option, values in named.items():
            for value in (value for value in values if not value.strip() or values.count(value) > 1):
                raise WhyrankError(f"{option} {value!r} is empty or given twice; give each one once")
        if len(self.candidates) not in (0, 1, len(self.collections)):
            raise WhyrankError(
                f"{len(self.candidates)} --candidates for {len(self.collections)} collections; "
                "give one for all, or one for each, in their order"
            )

    def runs(self) -> Iterator[tuple[str, str | None]]:
        """Every collection with the run that its candidates come from."""
        given: list[str | None] = list(self.candidates) or [None]
        yield from zip(self.collections, given * len(self.collections) if len(given) == 1 else given, strict=True)


def _found(asked: Asked, engine: Engine) -> Found:
    from whyrank.evaluation.fidelity import common_pairs, differences, effectiveness, summarise

    compared, rankers = _compared(asked, engine)
    cells = {each.collection.name: each.cells for each in compared}
    baseline = rankers[asked.baseline]
    rows = summarise(cells, asked.measures)
    dropped = compared if asked.missing == "drop" else []
    common = {each.collection.name: common_pairs(each, baseline, asked.ks) for each in dropped}
    tested = differences(cells, baseline, asked.measures, asked.correction, asked.seed, common)
    measured = [
        (each.collection.name, row)
        for each in compared
        for row in effectiveness(each, baseline, correction=asked.correction, seed=asked.seed)
    ]
    return Found(_settings(asked, baseline), compared, rows, tested, measured, _notes(asked, compared))


def _compared(asked: Asked, engine: Engine) -> tuple[list[Compared], dict[str, str]]:
    """What was found on every collection, and the name of the ranker of each call string."""
    found: list[Compared] = []
    names: dict[str, str] = {}
    for spec, run in asked.runs():
        rankers = _rankers(asked, spec)
        names |= {given: ranker.name for given, ranker in rankers[1].items()}
        found.append(_on(asked, rankers, run, engine))
        setup.report_failures(found[-1].failures)
    known = [each.collection.name for each in found]
    for name in (name for name in known if known.count(name) > 1):
        raise WhyrankError(f"two collections are called {name!r}; give one of them another name in collection.yaml")
    return found, names


def _rankers(asked: Asked, spec: str) -> tuple[Any, dict[str, Ranker]]:
    """A collection, and the rankers over it by their call strings."""
    opened = setup.open_collection(spec, asked.strict)
    specs = list(dict.fromkeys([*asked.targets, *asked.surrogates]))
    made = setup.open_rankers(specs, opened, asked.analyzer, asked.stats, asked.precision)
    return opened, dict(zip(specs, made, strict=True))


def _on(asked: Asked, rankers: tuple[Any, dict[str, Ranker]], run: str | None, engine: Engine) -> Compared:
    from whyrank.evaluation.fidelity import compare_rankers
    from whyrank.scoring import candidates_for

    opened, made = rankers
    given = setup.open_run(opened, run, asked.strict) if run else None
    candidates = candidates_for(opened, opened.queries, asked.depth, given, asked.analyzer)
    if not any(candidates.values()):
        raise WhyrankError(f"{opened.name}: no query has candidates; give --candidates RUN or another --analyzer")
    targets, surrogates = ([made[spec] for spec in specs] for specs in (asked.targets, asked.surrogates))
    found = compare_rankers(opened, targets, surrogates, candidates, engine, asked.ks, asked.missing)
    for line in setup.computed(list(made.values())):
        setup.say(f"note: {line}")
    return found


def _settings(asked: Asked, baseline: str) -> dict[str, Any]:
    names = ("depth", "missing", "analyzer", "stats", "correction", "seed")
    return {name: getattr(asked, name) for name in names} | {
        "candidates": list(asked.candidates) or "bm25",
        "k": list(asked.ks),
        "baseline": baseline,
    }


def _notes(asked: Asked, compared: Sequence[Compared]) -> list[str]:
    """Documents that one side lacks, what zero means for scores below zero, and queries without candidates."""
    notes = [
        note for each in compared for note in _one_sided(each, "left out" if asked.missing == "drop" else "given 0")
    ]
    if asked.missing == "zero":
        notes += [
            f"{each.collection.name}: {name} has scores below 0: what it lacks counts as better than these"
            for each in compared
            for name, run in each.runs.items()
            if any(score < 0 for docs in run.values() for score in docs.values())
        ]
    return [*notes, *filter(None, map(_unranked, compared))]


def _unranked(found: Compared) -> str:
    """A line on judged queries that no ranker could rank a document for; they pull the effectiveness of all down."""
    if not (bare := sum(not found.candidates.get(query) for query in found.collection.qrels)):
        return ""
    queries = setup.plural(bare, "judged query", "judged queries")
    return f"{found.collection.name}: {queries} without candidates, counted as zero in the effectiveness"


def _one_sided(found: Compared, done: str) -> Iterator[str]:
    """A line for each target that shares no score of some documents with its surrogates."""
    counts: dict[tuple[str, int], list[str]] = {}
    for (target, surrogate), values in found.cells.items():
        counts.setdefault((target, int(values.one_sided.sum())), []).append(surrogate)
    for (target, count), surrogates in counts.items():
        if count:
            docs, names = setup.plural(count, "document"), ", ".join(surrogates)
            yield f"{found.collection.name}: {docs} scored by one alone, {done}: {target} and {names}"


def _check_scored(compared: Sequence[Compared]) -> None:
    """Raise an error for a ranker that nothing could be compared with; what the others gave is out by then."""
    from math import isfinite

    for each in compared:
        for name, run in each.runs.items():
            if not any(isfinite(score) for docs in run.values() for score in docs.values()):
                raise WhyrankError(f"{name!r} has no finite score for any candidate of {each.collection.name}")


def _closing(found: Found, seconds: float) -> str:
    cells = found.compared[0].cells
    targets = setup.plural(len({target for target, _ in cells}), "target")
    surrogates = setup.plural(len({surrogate for _, surrogate in cells}), "surrogate")
    queries = sum(len(each.candidates) for each in found.compared)
    docs = sum(len(each) for one in found.compared for each in one.candidates.values())
    where = setup.plural(len(found.compared), "collection")
    counted = f"{setup.plural(queries, 'query', 'queries')} with {setup.plural(docs, 'candidate')}"
    return f"{targets}, {surrogates} on {counted} of {where} in {seconds:.1f} s"
