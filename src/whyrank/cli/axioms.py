"""`whyrank axioms`: how often rankers obey retrieval axioms, and whether judgements agree with them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from whyrank.cli.request import Request, with_request

if TYPE_CHECKING:
    from whyrank.studies import Catalogue

PREFIX = "axiom/"
EXPRESSION = f"{PREFIX}expression"
Patterns = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[GLOB]...",
        help="Names, call strings or expressions of axioms: 'TFC*', 'TFC1(length=5)', 'TFC1 & M-AND'; all when none.",
    ),
]
_NAME = re.compile(r"[A-Za-z*?\[][\w./*?\[\]!-]*")


@with_request(without=("tolerance",))
def axioms(request: Request, patterns: Patterns = None) -> None:
    """Check retrieval axioms: where one of two documents must win, does the ranker score it higher?"""
    from whyrank.cli.running import run
    from whyrank.cli.show_axioms import axioms_table
    from whyrank.studies import Catalogue
    from whyrank.studies.axioms import axioms as registered

    catalogue = Catalogue(registered)
    run(request, [spelled(pattern, catalogue) for pattern in patterns or ["*"]], catalogue, "axioms", axioms_table)


def spelled(given: str, catalogue: Catalogue) -> str:
    """The pattern or call string that an argument stands for: `axiom/` may be left out, and an expression is one."""
    from whyrank.core import Call

    text = given.strip()
    name = _call_name(text)
    if _is_known(name, catalogue):
        return text
    if not _NAME.fullmatch(name):
        return str(Call(EXPRESSION, None, {"of": text}))
    return text if name.startswith(PREFIX) else PREFIX + text


def _is_known(name: str, catalogue: Catalogue) -> bool:
    """Whether a pattern finds studies, or has at least the family of some that are no axioms, such as `matched/`."""
    import fnmatch

    names = catalogue.names()
    families = {each.partition("/")[0] for each in names} - {PREFIX.rstrip("/")}
    return name.partition("/")[0] in families or bool(fnmatch.filter(names, name))


def _call_name(text: str) -> str:
    """What stands before the arguments; the text itself where it is no call string."""
    from whyrank.core import WhyrankError, parse_call

    try:
        return parse_call(text).name
    except WhyrankError:
        return text
