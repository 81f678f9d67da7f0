"""`whyrank audit`: every study that the collection allows, for each ranker, and a report."""

from __future__ import annotations

from dataclasses import replace

from whyrank.cli.request import Request, with_request
from whyrank.cli.setup import say

DEMO_TOLERANCE = "10%"


@with_request(out="whyrank-results")
def audit(request: Request) -> None:
    """Run every study that the collection allows, probes and axioms; write a result folder with a report.

    Without options: the bundled sample and the bundled rankers. The sample is small, so texts count as matched there
    when they differ by at most 10%, unless --tolerance says otherwise.
    """
    from whyrank.audit.catalogue import everything
    from whyrank.cli.running import run
    from whyrank.cli.show_axioms import both_tables

    loose = request.collection == "sample" and request.tolerance is None
    asked = replace(request, tolerance=DEMO_TOLERANCE) if loose else request
    run(asked, ["*"], everything(), "audit", both_tables)
    if loose:
        say(f"note: the sample is small, so texts count as matched within {DEMO_TOLERANCE} (--tolerance 0: exactly)")
