"""Names of 0.1 that the changelog calls kept or renamed open in this version."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from whyrank.cli.app import app
from whyrank.rankers import rankers
from whyrank.studies import all_studies
from whyrank.text import analyzers

CHANGELOG = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
SECTION = CHANGELOG.partition("### Names of 0.1\n")[2].partition("\n## ")[0]
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in SECTION.splitlines()
    if line.startswith("| ") and "---" not in line
]
COMMANDS, KINDS = [row for row in ROWS if len(row) == 5][1:], [row for row in ROWS if len(row) == 4][1:]
GONE = ("probe", "axioms", "bias", "preferences", "stats", "split", "tables build")


def quoted(cell: str) -> list[str]:
    return [name.replace("\\|", "|") for name in re.findall(r"`([^`]+)`", cell)]


def options_of(command: str) -> set[str]:
    """The options of a command, as the built application has them."""
    found = typer.main.get_command(app)
    for name in command.split():
        found = found.get_command(typer.Context(found), name)
        assert found is not None, command
    return {option for each in found.params for option in (*each.opts, *each.secondary_opts)}


@pytest.mark.parametrize("row", COMMANDS, ids=[row[0] for row in COMMANDS])
def test_commands_and_options(row):
    [new] = quoted(row[1])
    if new.startswith("tables learn"):
        pytest.importorskip("torch")
    renamed = re.findall(r"`[^`]+` is `([^`]+)`", row[3])
    assert {*quoted(row[2]), *renamed} <= options_of(new)
    assert all(reason.strip() for reason in re.findall(r"`: ([^;]*)", row[4]))


@pytest.mark.parametrize(
    ("kind", "opened"),
    [("rankers", rankers), ("analyzers", analyzers), ("studies", None)],
    ids=["rankers", "analyzers", "studies"],
)
def test_rankers_studies_and_analyzers(kind, opened):
    known = set(all_studies().names() if opened is None else opened.names())
    names = [name for row in KINDS if row[0] == kind for name in quoted(row[1])]
    assert len(names) == {"rankers": 30, "analyzers": 9, "studies": 82}[kind]
    assert set(names) <= known


def test_nothing_is_left_out():
    """All 25 commands of 0.1 have a row, and names that are gone are no aliases."""
    assert len(COMMANDS) == 25
    assert {quoted(row[0])[0] for row in COMMANDS if quoted(row[0]) != quoted(row[1])} == set(GONE)
    top = typer.main.get_command(app)
    assert not {name for name in GONE if top.get_command(typer.Context(top), name) is not None}
