"""`whyrank bias`: put the values of a class into the same texts, and see which ones a ranker favours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from whyrank.cli.request import Request, with_request

if TYPE_CHECKING:
    from whyrank.studies.bias import BiasResult

Patterns = Annotated[
    list[str] | None,
    typer.Argument(metavar="[GLOB]...", help="Names or call strings of bias studies; all presets when none."),
]
TableOption = Annotated[
    str | None, typer.Option("--table", metavar="TABLE", help="A term table to compare the values with.")
]
Top = Annotated[
    int, typer.Option("--top", metavar="N", help="Values to show of each study; all are in --out.", min=1)
]
_NAMED = 5  # values that an error names
_WITHOUT = ("pairs", "max_tokens", "tolerance", "by", "format", "sweep", "group")


@with_request(without=_WITHOUT)
def bias(request: Request, patterns: Patterns = None, table: TableOption = None, top: Top = 10) -> None:
    """Which values of a class (brands, years, names, ...) does a ranker favour in otherwise equal texts?"""
    from whyrank.cli import show_bias
    from whyrank.cli.running import run
    from whyrank.cli.show import findings_table
    from whyrank.studies import Catalogue
    from whyrank.studies.bias import bias_studies

    found = run(
        request,
        patterns or ["bias/*"],
        Catalogue(bias_studies),
        "bias",
        findings_table,
        table,
        lambda results, alpha, correction: show_bias.show(results, top, alpha, correction),
        lambda audit: json.dumps([result.as_dict() for result in audit.details], indent=1),
    )
    _check_answered(found.details)


def _check_answered(results: Sequence[BiasResult]) -> None:
    """Raise an error where a ranker has no template with all scores; the others' results are out by then."""
    from whyrank.core import WhyrankError

    for name in dict.fromkeys(result.ranker for result in results):
        own = [result for result in results if result.ranker == name]
        if not any(result.n_templates for result in own) and any(result.nonfinite for result in own):
            raise WhyrankError(f"ranker {name!r} {_lacking(own)}; take one that scores any text")


def _lacking(results: Sequence[BiasResult]) -> str:
    """What a ranker did not score: any text, or some values, of which the most often missing are named."""
    asked = [result for result in results if result.nonfinite]
    if all(sum(result.unscored.values()) == result.nonfinite * result.n_values for result in asked):
        return "has no finite score for any template"
    lacking = {value: count for result in asked for value, count in result.unscored.items()}
    most = sorted(lacking, key=lambda value: -lacking[value])
    more = f" and {len(most) - _NAMED:,} more" if len(most) > _NAMED else ""
    return f"has no template with a finite score for every value: it lacks {', '.join(most[:_NAMED])}{more}"
