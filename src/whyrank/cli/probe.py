"""`whyrank probe`: put probes to rankers and print what they answer."""

from __future__ import annotations

from typing import Annotated

import typer

from whyrank.cli.request import Request, with_request
from whyrank.core import WhyrankError

Patterns = Annotated[
    list[str] | None,
    typer.Argument(metavar="[GLOB]...", help="Names or call strings of probes; all when none."),
]


@with_request(without=("max_tokens",))
def probe(request: Request, patterns: Patterns = None) -> None:
    """Put behaviour probes to rankers: which properties of text move their scores?"""
    from whyrank.cli.running import run
    from whyrank.cli.show import findings_table
    from whyrank.studies import Catalogue
    from whyrank.studies.probes import probes

    for axiom in (pattern for pattern in patterns or () if pattern.startswith("axiom/")):
        raise WhyrankError(f"unknown probe {axiom!r}; axioms have a command of their own: whyrank axioms '{axiom}'")
    run(request, patterns or ["*"], Catalogue(probes), "probe", findings_table)
