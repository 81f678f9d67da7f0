"""`whyrank rank`: a TREC run from a ranker, or from an axiom and the candidates of another run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whyrank.cli import options as o
from whyrank.cli import setup
from whyrank.core import WhyrankError, printable

if TYPE_CHECKING:
    from whyrank.core import Ranker
    from whyrank.data import Collection, Run
    from whyrank.scoring import Engine
    from whyrank.studies.axioms import Axiom

Depth = Annotated[
    int,
    typer.Option(
        "--depth",
        metavar="K",
        help="Documents per query when retrieving; with --axiom, how many are re-ranked.",
        min=1,
    ),
]
AxiomOption = Annotated[
    str | None,
    typer.Option(
        "--axiom",
        metavar="EXPR",
        help="Re-rank the candidates by an axiom in place of a ranker, such as 'TFC1' or '(TFC1 & M-AND) | -DIV'.",
    ),
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        "--method", metavar="NAME", help="From preferences of an axiom to an order: kwiksort (default), tournament."
    ),
]


def rank(
    collection: o.CollectionOption = "sample",
    ranker: o.RankerOption = None,
    axiom: AxiomOption = None,
    method: MethodOption = None,
    max_tokens: o.MaxTokensOption = None,
    analyzer: o.AnalyzerOption = "lucene",
    stats: o.StatsOption = None,
    precision: o.PrecisionOption = None,
    candidates: o.CandidatesOption = None,
    depth: Depth = 1000,
    seed: o.SeedOption = 0,
    executor: o.ExecutorOption = "serial",
    batch_size: o.BatchOption = None,
    store: o.StoreOption = None,
    fresh: o.FreshOption = False,
    timeout: o.TimeoutOption = None,
    out: o.OutOption = None,
    strict: o.StrictOption = False,
) -> None:
    """Retrieve from the collection with BM25, or re-rank the candidates of a run with any ranker or axiom."""
    o.check_filled(
        method=method,
        analyzer=analyzer,
        stats=stats,
        precision=precision,
        candidates=candidates,
        store=store,
        out=out,
    )
    processes = executor if executor != "serial" else None
    scoring: dict[str, Any] = {"ranker": ranker, "precision": precision, "executor": processes}
    scoring |= {"batch-size": batch_size, "store": store, "fresh": fresh, "timeout": timeout}
    _check(axiom, candidates, {"method": method, "max-tokens": max_tokens}, scoring)
    preferred = None if axiom is None else _axiom(axiom, analyzer, stats, max_tokens)
    opened = setup.open_collection(collection, strict)
    if preferred is not None:
        given = setup.open_run(opened, candidates or "", strict)
        run, tag = _by_axiom(preferred, opened, given, method or "kwiksort", seed, depth), axiom or ""
    else:
        [asked] = setup.open_rankers(ranker or ["bm25"], opened, analyzer, stats, precision)
        engine, tag = setup.make_engine(executor, batch_size, store, fresh, timeout), asked.name
        candidate_run = setup.open_run(opened, candidates, strict) if candidates else None
        run = _by_ranker(asked, opened, candidate_run, analyzer, stats, depth, engine)
        for line in (*setup.computed([asked]), *_undecided(run)):
            setup.say(f"note: {line}")
    _write(run, tag, out)


def _check(
    axiom: str | None, candidates: str | None, ordering: Mapping[str, Any], scoring: Mapping[str, Any]
) -> None:
    """Raise an error for options that do not go together."""
    if axiom is None:
        for option in (name for name, value in ordering.items() if value is not None):
            raise WhyrankError(f"--{option} is for the order that an axiom prefers; name one with --axiom EXPR")
        if len(scoring["ranker"] or []) > 1:
            raise WhyrankError("rank takes one --ranker at a time")
        return
    for option in (name for name, value in scoring.items() if value):
        raise WhyrankError(f"--axiom orders candidates without scoring them; leave out --{option}, or --axiom")
    if not candidates:
        raise WhyrankError("--axiom re-ranks the documents of a run; name it with --candidates RUN")


def _axiom(text: str, analyzer: str, stats: str | None, max_tokens: str | None) -> Axiom:
    """The axiom of an expression; an error for one that compares no two documents, before a collection is read."""
    from whyrank.studies.axioms import Axiom, check_pairs, parse_expression

    made = parse_expression(text, analyzer=analyzer, stats=stats, **o.token_limit(max_tokens))
    check_pairs(made)
    if made.pairs != Axiom.pairs:
        raise WhyrankError(
            f"--axiom takes the documents of --candidates, up to --depth; leave out pairs={made.pairs}"
        )
    return made


def _by_axiom(axiom: Axiom, collection: Collection, given: Run, method: str, seed: int, depth: int) -> Run:
    from whyrank.studies.axioms import rerank

    return rerank(axiom, collection, given, method, seed, depth)


def _by_ranker(
    ranker: Ranker, collection: Collection, given: Run | None, analyzer: str, stats: str | None, depth: int,
    engine: Engine,
) -> Run:  # fmt: skip
    from whyrank.scoring import rerank, retrieve

    if given is not None:
        run, failures = rerank(engine, ranker, collection, given)
    else:
        run, failures = retrieve(engine, ranker, collection, depth, analyzer, stats)
    setup.report_failures(failures)
    if failures and not any(run.values()):
        raise WhyrankError(
            f"{ranker.name!r} has no finite score for any document, so there is no run; mend the ranker"
        )
    return run


def _undecided(run: Run) -> list[str]:
    """A line on the queries that give no order, such as those whose words the ranker drops or does not know."""
    alike = [q for q, scores in run.items() if len(scores) > 1 and len(set(scores.values())) == 1]
    if not alike:
        return []
    few = ", ".join(alike[:5]) + ", ..." * (len(alike) > 5)
    whose = "its documents" if len(alike) == 1 else "their documents"
    queries = f"{setup.plural(len(alike), 'query', 'queries')} ({few})"
    return [f"{queries}: all of {whose} have the same score; perhaps the ranker knows no word of the query"]


def _write(run: Run, tag: str, out: str | None) -> None:
    from whyrank.data import run_lines, write_run

    if out:
        write_run(out, run, tag)
    else:
        shown = printable if sys.stdout.isatty() else str  # in a file, ids stay as they are
        sys.stdout.writelines(shown(line) + "\n" for line in run_lines(run, tag))
    lines = setup.plural(sum(map(len, run.values())), "line")
    queries = setup.plural(len(run), "query", "queries")
    setup.say(f"{lines} for {queries} by {tag}" + (f": {out}" if out else ""))
