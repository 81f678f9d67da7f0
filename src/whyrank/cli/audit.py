"""`whyrank audit`: every study that the collection allows, for each ranker, and a report."""

from __future__ import annotations

from dataclasses import replace

from whyrank.cli.request import Request, with_request
from whyrank.cli.setup import audited_rankers, say

DEMO_TOLERANCE = "10%"
_LOOSE = f"the sample is small, so texts count as matched within {DEMO_TOLERANCE} (--tolerance 0: exactly)"


@with_request(out="whyrank-results")
def audit(request: Request) -> None:
    """Run every study that the collection allows, probes and axioms; write a result folder with a report.

    Without options: the bundled sample, and the bundled rankers bm25, ql and, where torch and transformers are
    installed, cross:bundled. The sample is small, so texts count as matched there when they differ by at most 10%,
    unless --tolerance says otherwise.
    """
    from whyrank.audit.catalogue import everything
    from whyrank.cli.running import run
    from whyrank.cli.show_axioms import both_tables

    rankers, notes = (request.ranker, []) if request.ranker else audited_rankers()
    loose = request.collection == "sample" and request.tolerance is None
    asked = replace(request, ranker=rankers, tolerance=DEMO_TOLERANCE if loose else request.tolerance)
    run(asked, ["*"], everything(), "audit", both_tables)
    for note in [*notes, _LOOSE] if loose else notes:
        say(f"note: {note}")
