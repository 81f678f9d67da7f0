"""The behaviour card: one Markdown page on what a ranker does, to put beside its model card."""

from __future__ import annotations

from whyrank.report.audit import Audit
from whyrank.report.comparison import Comparison
from whyrank.report.gate import Gate
from whyrank.report.sentences import headlines
from whyrank.report.tables import escape_markdown, to_markdown
from whyrank.report.views import collections_of, rankers_of


def behaviour_card(
    audit: Audit, comparison: Comparison | None = None, gate: Gate | None = None, rankers: tuple[str, ...] = ()
) -> str:
    """What the rankers of an audit do, or some of them, what changed, which rules hold, and all findings."""
    findings = [finding for finding in audit.findings if finding.ranker in (rankers or [finding.ranker])]
    names, record = rankers_of(findings), audit.record
    whole = {finding.study: finding.n for finding in findings if finding.group is None}
    made = f"whyrank {record['versions']['whyrank']} on {record['created'][:10]}"
    asked = f"{len(whole)} studies with {sum(whole.values()):,} contrasts on {', '.join(collections_of(findings))}"
    lines = [
        f"# Behaviour of {escape_markdown(', '.join(names))}",
        "",
        escape_markdown(f"Audited by {made}: {asked}. A contrast asks which of two texts the ranker scores higher."),
        "",
        "## In short",
        "",
        *(
            f"- {escape_markdown(str(each))}"
            for each in headlines(findings, audit.alpha, audit.symmetric, audit.names)
        ),
        "",
    ]
    if comparison is not None:
        title = f"## What changed from {comparison.first} to {comparison.second}"
        lines += [escape_markdown(title), "", comparison.to_markdown()]
    if gate is not None:
        lines += ["## Rules", "", gate.to_markdown()]
    lines += ["## Findings", "", to_markdown(findings, audit.alpha, audit.correction)]
    if audit.notes:
        lines += ["## Notes", "", *(f"- {escape_markdown(note)}" for note in audit.notes), ""]
    return "\n".join(lines)
