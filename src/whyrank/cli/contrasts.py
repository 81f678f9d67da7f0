"""`whyrank contrasts`: write the contrasts of a study, a diagnostic data set for anyone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whyrank.cli.request import Request, with_request
from whyrank.cli.setup import plural, say

if TYPE_CHECKING:
    from whyrank.studies import Contrasts, Labels, Plan

StudyName = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        help="A study's name or call string, such as 'matched/length|tf' or TFC1, or an expression: 'TFC1 & M-AND'.",
    ),
]


@with_request(without=("json", "format", "sweep", "group", "by", "alpha", "correction"))
def contrasts(request: Request, study: StudyName) -> None:
    """Write the contrasts of one study (.jsonl or .parquet); with --ranker, each contrast's scores and effect."""
    from whyrank.cli.axioms import spelled
    from whyrank.cli.setup import open_studies
    from whyrank.studies import every_kind, save

    out, name = _file(request.out), spelled(study, every_kind())
    if request.ranker:
        found, columns, notes = _answered(request, name)
    else:
        collection, (studies, notes) = open_studies([name], every_kind(), request)
        found, columns = _one(studies).contrasts(collection), {}
        found = found.sample(request.limit, request.seed) if request.limit else found
    for note in notes:
        say(f"note: {note}")
    save(found, out, columns, name)
    reasons = "".join(f"; {reason} {count:,}" for reason, count in sorted(found.dropped.items()) if count)
    say(f"{plural(len(found), 'contrast')} of {study}{reasons}, fingerprint {found.fingerprint[:16]}: {out}")


def _file(out: str | None) -> str:
    """Where to write; an error before anything is read where contrasts cannot be written so."""
    from whyrank.core import WhyrankError

    if out is None or not out.endswith((".jsonl", ".parquet")):
        raise WhyrankError("contrasts needs --out FILE, ending in .jsonl or .parquet")
    return out


def _answered(request: Request, study: str) -> tuple[Contrasts, dict[str, Labels], Sequence[str]]:
    """Contrasts with a column of scores, differences and effects per ranker; and notes."""
    from whyrank.cli.running import make_plan
    from whyrank.cli.setup import computed
    from whyrank.studies import every_kind, read_scores

    plan: Plan = make_plan(request, [study], every_kind())
    asked = _one(plan.studies)
    found: Contrasts = asked.contrasts(plan.collection)
    found = found.sample(request.limit, request.seed) if request.limit else found
    columns: dict[str, Labels] = {}
    for ranker in plan.rankers:
        prefix = f"{ranker.name} " if len(plan.rankers) > 1 else ""
        reading, _ = read_scores(plan, asked, ranker, found)
        columns |= {
            prefix + "scores": reading.scores,
            prefix + "diff": reading.diffs,
            prefix + "effect": reading.effects,
        }
    return found, columns, [*plan.notes, *computed(plan.rankers)]


def _one(studies: Mapping[str, Any]) -> Any:
    from whyrank.core import WhyrankError

    if len(studies) != 1:
        raise WhyrankError(
            f"contrasts writes one study at a time, and {len(studies)} match; name one: {next(iter(studies))}, ..."
        )
    return next(iter(studies.values()))
