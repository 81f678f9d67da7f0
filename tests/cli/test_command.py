"""Options from the fields of dataclasses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import typer

from whyrank.cli.command import argument, command
from whyrank.core import Share, Whole


@dataclass(frozen=True, kw_only=True)
class Base:
    """What is shared.

    Attributes:
        collection: where documents come from,
            in two lines.
        deep: whether all is read.
    """

    collection: str = "sample"
    deep: bool = False


@dataclass(frozen=True, kw_only=True)
class Count(Base):
    """Count documents.

    More about it.

    Attributes:
        what: what is counted.
        least: shorter ones do not count.
        by_word: one column for each word.
    """

    what: tuple[str, ...] = argument("WHAT", ())
    least: Whole | None = None
    by_word: tuple[str, ...] = ()
    sizes: Sequence[int] = (10, 100)
    share: Share = 0.5
    null: bool = True
    ranker: str | None = None
    set_: str = ""
    out: str
    hidden: int = field(default=3, init=False)

    def run(self) -> None:
        print(json.dumps({name: getattr(self, name) for name in self.__dataclass_fields__}))


@pytest.fixture
def run(capsys):
    """What the command gets; its exit code where it is refused."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command("count")(command(Count))
    built = typer.main.get_command(app)

    def call(*arguments: str):
        try:
            built(arguments, standalone_mode=False)
        except Exception as error:
            return error.format_message() if hasattr(error, "format_message") else str(error)
        out = capsys.readouterr().out
        return json.loads(out) if out.startswith("{") else out

    return call


DEFAULTS = {"collection": "sample", "deep": False, "what": [], "least": None, "by_word": [], "sizes": [10, 100],
            "share": 0.5, "null": True, "ranker": None, "set_": "", "out": "o", "hidden": 3}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ([], {}),
        (["a", "b", "-c", "mine", "--deep"], {"what": ["a", "b"], "collection": "mine", "deep": True}),
        ([""], {"what": [""]}),
        (["--by-word", "x", "--by-word", "y"], {"by_word": ["x", "y"]}),
        (["--sizes", "3", "--least", "2", "--share", "1"], {"sizes": [3], "least": 2, "share": 1.0}),
        (["--no-null", "--set", "k=v"], {"null": False, "set_": "k=v"}),
        (["-r", "http://x.y/?api_key=secret"], {"ranker": "http://x.y/?api_key=***"}),
    ],
)
def test_fields_are_options(run, given, changed):
    assert run(*given, "-o", "o") == DEFAULTS | changed


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "--out"),
        (["-o", ""], "--out is empty"),
        (["-o", "o", "--by-word", ""], "--by-word is empty"),
        (["-o", "o", "--least", "0"], "--least"),
        (["-o", "o", "--share", "2"], "--share"),
        (["-o", "o", "--sizes", "many"], "--sizes"),
    ],
)
def test_wrong_values_are_named(run, given, says):
    found = run(*given)
    assert isinstance(found, str)
    assert says in found
