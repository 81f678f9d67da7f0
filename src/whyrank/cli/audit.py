"""`whyrank audit`: every study that the collection allows, for each ranker, and a report."""

from __future__ import annotations

from dataclasses import replace

from whyrank.cli.request import Request, with_request
from whyrank.cli.setup import say

DEMO_TOLERANCE = "10%"


@with_request(collection="", out="whyrank-results")
def audit(request: Request) -> None:
    """Run every study that the collection allows; write a result folder with a report.

    Without options: the bundled sample and the bundled rankers. The sample is small, so documents count as matched
    there when they differ by at most 10%.
    """
    from whyrank.cli.running import run
    from whyrank.probes import probes

    demo = not request.collection
    run(_demo(request) if demo else request, ["*"], probes, "audit")
    if demo and request.tolerance is None:
        say(f"note: the sample is small, so texts count as matched within {DEMO_TOLERANCE} (--tolerance 0: exactly)")


def _demo(request: Request) -> Request:
    return replace(request, collection="sample", tolerance=request.tolerance or DEMO_TOLERANCE)
