"""All commands in one application."""

from __future__ import annotations

from typing import Any

import typer

from whyrank import __version__
from whyrank.cli import learn
from whyrank.cli.audit import AuditCommand
from whyrank.cli.check import CheckCommand
from whyrank.cli.command import command
from whyrank.cli.compare import CompareCommand
from whyrank.cli.contrasts import ContrastsCommand
from whyrank.cli.data import SplitCommand, StatsCommand
from whyrank.cli.delta import DeltaCommand
from whyrank.cli.evaluate import EvaluateCommand
from whyrank.cli.explain import ExplainCommand
from whyrank.cli.explore import ExploreCommand
from whyrank.cli.fidelity import FidelityCommand
from whyrank.cli.listing import ListCommand
from whyrank.cli.rank import RankCommand
from whyrank.cli.surprises import SurprisesCommand
from whyrank.cli.tables import DiffCommand, ExportCommand, ShowCommand
from whyrank.cli.train import TrainCommand
from whyrank.cli.tune import TuneCommand

COMMANDS: dict[str, type[Any]] = {
    "audit": AuditCommand,
    "compare": CompareCommand,
    "contrasts": ContrastsCommand,
    "delta": DeltaCommand,
    "rank": RankCommand,
    "evaluate": EvaluateCommand,
    "tune": TuneCommand,
    "train": TrainCommand,
    "explain": ExplainCommand,
    "explore": ExploreCommand,
    "fidelity": FidelityCommand,
    "list": ListCommand,
}
GROUPS: dict[str, tuple[str, dict[str, type[Any]]]] = {
    "tables": (
        "Learn term tables, look into them, compare and export them.",
        {"show": ShowCommand, "diff": DiffCommand, "export": ExportCommand, "surprises": SurprisesCommand},
    ),
    "data": (
        "Check a collection, count its terms, and split its queries.",
        {"check": CheckCommand, "stats": StatsCommand, "split": SplitCommand},
    ),
}

app = typer.Typer(
    name="whyrank",
    help="Shows what a ranking model really rewards.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for _name, _cls in COMMANDS.items():
    app.command(_name)(command(_cls))


def show_help(context: typer.Context) -> None:
    """Print the help of a group that is called without a command."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _name, (_help, _commands) in GROUPS.items():
    _group = typer.Typer(name=_name, help=_help, rich_markup_mode=None)
    _group.callback(invoke_without_command=True, help=_help)(show_help)
    if _name == "tables":
        _group.add_typer(learn.app, name="learn")
    for _inner, _cls in _commands.items():
        _group.command(_inner)(command(_cls))
    app.add_typer(_group, name=_name)


@app.callback(invoke_without_command=True)
def top(version: bool = typer.Option(False, "--version", help="Show the version and stop.")) -> None:
    """Show what a ranking model really rewards."""
    if version:
        typer.echo(f"whyrank {__version__}")
        raise typer.Exit
