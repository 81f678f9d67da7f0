"""`whyrank audit`: every study that the collection allows, for each ranker, and a report."""

from __future__ import annotations

from dataclasses import replace

from whyrank.cli.request import Request, with_request
from whyrank.cli.setup import say

DEMO_TOLERANCE = "10%"


@with_request(out="whyrank-results")
def audit(request: Request) -> None:
    """Run every study that the collection allows; write a result folder with a report.

    Without options: the bundled sample and the bundled rankers. The sample is small, so texts count as matched there
    when they differ by at most 10%, unless --tolerance says otherwise.
    """
    from whyrank.cli.running import run
    from whyrank.probes import probes

    loose = request.collection == "sample" and request.tolerance is None
    run(replace(request, tolerance=DEMO_TOLERANCE) if loose else request, ["*"], probes, "audit")
    if loose:
        say(f"note: the sample is small, so texts count as matched within {DEMO_TOLERANCE} (--tolerance 0: exactly)")
