"""Names of 0.1 that the changelog calls kept or renamed open in this version; an option has one meaning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from whyrank.cli.app import app
from whyrank.core import WhyrankError
from whyrank.data import open_collection
from whyrank.rankers import Setting, open_ranker, rankers
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
# Options whose help differs between commands, and why they still mean the same.
DIFFER = {
    "--analyzer": "tables are learned with analyzers of their own",
    "--baseline": "a run, or a surrogate",
    "--candidates": "fidelity takes one for each collection",
    "--collection": "what it is for, where it can be left out; fidelity takes several",
    "--doc-id": "a column of ids, or for explain one of them",
    "--measure": "of runs, of fidelity, or the one that tune maximises",
    "--network": "of neural Model 1, or of PaRM",
    "--out": "what is written",
    "--query-id": "a column of ids, or for explain one of them",
    "--ranker": "what it is for, where it can be left out",
    "--recipe": "of neural Model 1, or of PaRM",
    "--seed": "recipes have seeds",
    "--table": "what it is for; explore takes several",
    "--target": "fidelity takes several",
    "--threshold": "what a weight is",
    "--top": "of each query term of a table, of one text, or of all pairs of tokens",
}
NEEDS = {  # arguments that make a ranker without a file
    "cascade": "(of=['bm25','ql'])", "fuse": "(of=['bm25','ql'])", "cross": ":bundled", "run": ":bm25",
    "http": "://localhost:9", "https": "://localhost:9",
}  # fmt: skip


def quoted(cell: str) -> list[str]:
    return [name.replace("\\|", "|") for name in re.findall(r"`([^`]+)`", cell)]


def leaves(group, path=()):
    """All commands with their names."""
    context = typer.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if hasattr(found, "list_commands"):
            yield from leaves(found, (*path, name))
        else:
            yield " ".join((*path, name)), found


def test_an_option_has_one_meaning():
    pytest.importorskip("torch")
    helps: dict[str, set[str]] = {}
    for _, command in leaves(typer.main.get_command(app)):
        for each in command.params:
            for option in each.opts if each.param_type_name == "option" else ():
                helps.setdefault(option, set()).add(each.help or "")
    assert {option for option, texts in helps.items() if "" in texts} == set()
    assert {option for option, texts in helps.items() if len(texts) > 1 and option.startswith("--")} == set(DIFFER)


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


def names_of(kind: str) -> list[str]:
    return [name for row in KINDS if row[0] == kind for name in quoted(row[1])]


def open_all(kind: str, open_one) -> set[str]:
    """Open every name of a kind; gives those that need a file, a model or a list, and say so in one line."""
    lacking = {}
    for name in names_of(kind):
        try:
            assert open_one(name) is not None
        except WhyrankError as error:
            lacking[name] = str(error)
    assert all(re.search("needs|pip install", said) for said in lacking.values()), lacking
    return set(lacking)


def test_rankers_open():
    setting = Setting(open_collection("sample"))
    assert len(names_of("rankers")) == 30
    lacking = open_all("rankers", lambda name: open_ranker(name + NEEDS.get(name, ""), setting))
    assert lacking <= {name for name in rankers.names() if name not in (*NEEDS, "bm25", "ql")}


def test_analyzers_open():
    assert len(names_of("analyzers")) == 9
    assert open_all("analyzers", analyzers.create) <= {"terrier", "indri", "wordpiece", "krovetz", "words", "lemmas"}


def test_studies_open():
    catalogue, names = all_studies(), names_of("studies")
    assert len(names) == 82
    assert [study.id for study in catalogue.make(names, {}, {}).values()] == names


def test_nothing_is_left_out():
    """All 25 commands of 0.1 have a row, and names that are gone are no aliases."""
    assert len(COMMANDS) == 25
    assert {quoted(row[0])[0] for row in COMMANDS if quoted(row[0]) != quoted(row[1])} == set(GONE)
    top = typer.main.get_command(app)
    assert not {name for name in GONE if top.get_command(typer.Context(top), name) is not None}
