"""All commands in one application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from whyrank import __version__
from whyrank.cli import (
    audit,
    axioms,
    bias,
    contrasts,
    delta,
    evaluate,
    explain,
    fidelity,
    listing,
    preferences,
    probe,
    rank,
    split,
    stats,
    tables,
    train,
    tune,
)

app = typer.Typer(
    name="whyrank",
    help="Shows what a ranking model really rewards.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
COMMANDS: dict[str, Callable[..., Any]] = {
    "audit": audit.audit,
    "probe": probe.probe,
    "axioms": axioms.axioms,
    "bias": bias.bias,
    "contrasts": contrasts.contrasts,
    "delta": delta.delta,
    "rank": rank.rank,
    "preferences": preferences.preferences,
    "train": train.train,
    "evaluate": evaluate.evaluate,
    "fidelity": fidelity.fidelity,
    "tune": tune.tune,
    "split": split.split,
    "explain": explain.explain,
    "stats": stats.stats,
    "list": listing.list_,
}
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)
app.add_typer(tables.app, name="tables")


@app.callback(invoke_without_command=True)
def top(version: bool = typer.Option(False, "--version", help="Show the version and stop.")) -> None:
    """Show what a ranking model really rewards."""
    if version:
        typer.echo(f"whyrank {__version__}")
        raise typer.Exit
