"""`whyrank preferences`: what axioms say of every pair of documents, as a table for analysis or learning to rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whyrank.cli import options as o
from whyrank.cli.setup import open_collection, plural, say
from whyrank.core.errors import WhyrankError

if TYPE_CHECKING:
    from whyrank.axioms.axiom import Axiom

Patterns = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[AXIOM]...", help="Names, patterns such as 'PROX*' or expressions such as 'TFC1 & LNC1'; else all."
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
    features: FeaturesOption = False,
    out: o.OutOption = None,
    strict: o.StrictOption = False,
) -> None:
    """Write the preferences of axioms between all documents of each query (.parquet)."""
    from whyrank.axioms.preferences import save_preferences

    if out is None or not out.endswith(".parquet"):
        raise WhyrankError("preferences needs --out FILE.parquet")
    given = {"analyzer": analyzer, "pairs": pairs, "candidates": candidates}
    chosen = _chosen(axioms or ["*"], {name: value for name, value in given.items() if value is not None})
    rows = save_preferences(out, chosen, open_collection(collection, strict), features)
    what = plural(rows, "document") if features else plural(rows, "pair")
    say(f"{what} by {plural(len(chosen), 'axiom')}: {out}")


def _chosen(patterns: Sequence[str], given: dict[str, Any]) -> list[Axiom]:
    """The axioms of names and expressions, and those that patterns find and that compare two documents."""
    from whyrank.axioms import axioms
    from whyrank.axioms.expressions import is_pattern, parse_expression

    found: dict[str, Axiom] = {}
    for pattern in patterns:
        if is_pattern(pattern):
            names = axioms.match("axiom/" + pattern.removeprefix("axiom/"))
            found |= {axiom.id: axiom for axiom in _usable([axioms.create(name, **given) for name in names])}
        else:
            axiom = parse_expression(pattern, **given)
            found[axiom.id] = axiom
    if not found:
        raise WhyrankError(f"no axiom that compares two documents matches {', '.join(map(repr, patterns))}")
    return list(found.values())


def _usable(found: Sequence[Axiom]) -> list[Axiom]:
    """Those that can state preferences here; the others are named."""
    from whyrank.axioms.algebra import check_pairs

    kept = []
    for axiom in found:
        try:
            check_pairs(axiom)
        except WhyrankError as error:
            say(f"note: left out: {error}")
            continue
        if reason := getattr(axiom, "unavailable", ""):
            say(f"note: left out, because {reason}: {axiom.name}")
            continue
        kept.append(axiom)
    return kept
