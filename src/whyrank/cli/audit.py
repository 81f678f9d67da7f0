"""`whyrank audit`: every study that the collection allows, for each ranker, and a report."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from whyrank.cli.bias import TableOption
from whyrank.cli.request import Request, with_request
from whyrank.cli.setup import audited_rankers, say

Patterns = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[GLOB]...",
        help="Names, call strings or patterns of probes, axioms and bias studies; all probes and axioms when none.",
    ),
]


@with_request(out="whyrank-results")
def audit(request: Request, patterns: Patterns = None, table: TableOption = None) -> None:
    """Run every study that the collection allows, or those that are named; write a result folder with a report.

    Without options: the bundled sample, and the bundled rankers bm25, ql and, where torch and transformers are
    installed, cross:bundled. All probes and axioms are asked, and on the sample also bias/car-brand. The sample is
    small, so texts count as matched there when they differ by at most 10%, unless --tolerance says otherwise.
    """
    from whyrank.cli.axioms import spelled
    from whyrank.cli.running import run
    from whyrank.cli.show_axioms import both_tables
    from whyrank.studies import DEMO_TOLERANCE, every_kind, usual_studies

    rankers, notes = (request.ranker, []) if request.ranker else audited_rankers()
    loose = request.collection == "sample" and request.tolerance is None
    asked = replace(request, ranker=rankers, tolerance=DEMO_TOLERANCE if loose else request.tolerance)
    catalogue = every_kind()
    named = [spelled(pattern, catalogue) for pattern in patterns or ()] or usual_studies(request.collection)
    run(asked, named, catalogue, "audit", both_tables, table)
    if loose:
        small = f"the sample is small, so texts count as matched within {DEMO_TOLERANCE} (--tolerance 0: exactly)"
        notes = [*notes, small]
    for note in notes:
        say(f"note: {note}")
