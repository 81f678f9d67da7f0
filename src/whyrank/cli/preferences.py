"""`whyrank preferences`: what axioms say of every pair of documents, as a table for analysis or learning to rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whyrank.cli import options as o
from whyrank.cli.setup import open_collection, open_run, plural, say
from whyrank.core import WhyrankError

if TYPE_CHECKING:
    from whyrank.data import Collection
    from whyrank.studies.axioms import Axiom

Patterns = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[AXIOM]...", help="Names, patterns such as 'PROX*' or expressions such as 'TFC1 & M-AND'; else all."
    ),
]
FeaturesOption = Annotated[
    bool,
    typer.Option("--features", help="One row per document: its mean, largest and least preference over the others."),
]


def preferences(
    axioms: Patterns = None,
    collection: o.CollectionOption = "sample",
    analyzer: o.AnalyzerOption = "lucene",
    pairs: o.PairsOption = None,
    candidates: o.CandidatesOption = None,
    stats: o.StatsOption = None,
    max_tokens: o.MaxTokensOption = None,
    features: FeaturesOption = False,
    out: o.OutOption = None,
    strict: o.StrictOption = False,
) -> None:
    """Write the preferences of axioms between all documents of each query (.parquet)."""
    from whyrank.studies.axioms import save_preferences

    o.check_filled(analyzer=analyzer, pairs=pairs, candidates=candidates, stats=stats)
    if out is None or not out.endswith(".parquet"):
        raise WhyrankError("preferences needs --out FILE.parquet")
    given = {"analyzer": analyzer, "pairs": pairs, "candidates": candidates, "stats": stats}
    common = {name: value for name, value in given.items() if value is not None} | o.token_limit(max_tokens)
    chosen = _chosen(axioms or ["*"], common)
    opened = open_collection(collection, strict)
    if candidates:  # no such run is an error, whether pairs come from it or not
        open_run(opened, candidates, strict)
    rows = save_preferences(out, chosen if pairs else _paired(chosen, opened, candidates), opened, features)
    what = plural(rows, "document") if features else plural(rows, "pair")
    say(f"{what} by {plural(len(chosen), 'axiom')}: {out}")


def _chosen(patterns: Sequence[str], given: dict[str, Any]) -> dict[str, Axiom]:
    """The axioms of names and expressions, and those that patterns find, each once and by the name of its column."""
    found: dict[str, Axiom] = {}
    for pattern in patterns:
        named = _named(pattern, given)
        found |= {name: axiom for name, axiom in named.items() if axiom not in found.values()}
    if not found:
        raise WhyrankError(f"no axiom that compares two documents matches {', '.join(map(repr, patterns))}")
    return found


def _paired(chosen: dict[str, Axiom], collection: Collection, run: str | None) -> dict[str, Axiom]:
    """The axioms, over the first documents of a run where nothing is judged."""
    from dataclasses import replace

    from whyrank.studies import unjudged_options

    if collection.qrels or {axiom.pairs for axiom in chosen.values()} != {"judged"}:
        return chosen
    options = unjudged_options(collection, run).get("axioms", {})
    if not options:
        say(f"note: {collection.name} has neither judgements nor a run to pair documents of; give --candidates RUN")
        return chosen
    where = f"{options['pairs']} of {options.get('candidates', 'the run')}"
    say(f"note: {collection.name} has no judgements, so axioms pair {where} (--pairs, --candidates)")
    return {name: replace(axiom, **options) for name, axiom in chosen.items()}


def _named(pattern: str, given: dict[str, Any]) -> dict[str, Axiom]:
    """The axiom of an expression, or those that a pattern finds and that compare two documents."""
    from whyrank.studies.axioms import axioms, column_name, is_pattern, parse_expression

    if is_pattern(pattern):
        names = axioms.match("axiom/" + pattern.removeprefix("axiom/"))
        return _usable({name.removeprefix("axiom/"): axioms.create(name, **given) for name in names})
    axiom = parse_expression(pattern, **given)
    return {column_name(pattern, axiom): axiom}


def _usable(found: Mapping[str, Axiom]) -> dict[str, Axiom]:
    """Those that can state preferences here; the others are named."""
    from whyrank.studies.axioms import check_pairs

    kept = {}
    for name, axiom in found.items():
        try:
            check_pairs(axiom)
        except WhyrankError as error:
            say(f"note: left out: {error}")
            continue
        if reason := getattr(axiom, "unavailable", ""):
            say(f"note: left out, because {reason}: {name}")
            continue
        kept[name] = axiom
    return kept
