"""The reference of commands: every command with its arguments and options, from the application itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from generate.markdown import code, paragraphs, prose, table
from whyrank.cli.app import app

_INTRODUCTION = """# Commands

Every command with its arguments and options. `whyrank COMMAND --help` prints the same.
[The command line](command-line.md) says how studies and rankers are named, what is printed, and which exit codes
there are."""


def commands_page() -> str:
    """The page in Markdown."""
    blocks = [_INTRODUCTION]
    for name, command in _commands("whyrank", typer.main.get_command(app)):
        blocks += [f"## {name}", paragraphs(command.help or "")]
        rows = [_row(each) for each in command.params if each.name != "help"]
        if rows:
            blocks.append(table(["argument or option", "default", "meaning"], rows))
    return "\n\n".join(blocks) + "\n"


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command, or the commands of a group, with what is typed to call them."""
    if not hasattr(command, "list_commands"):
        yield name, command
        return
    context = typer.Context(command)
    for each in command.list_commands(context):
        yield from _commands(f"{name} {each}", command.get_command(context, each))


def _row(parameter: Any) -> list[str]:
    """An argument or an option: how it is written, its default and its meaning."""
    if parameter.param_type_name == "argument":
        written = code(parameter.metavar)
    else:
        metavar = "" if parameter.is_flag else f" {parameter.metavar or parameter.type.name.upper()}"
        names = sorted([*parameter.opts, *parameter.secondary_opts], key=lambda each: (each.startswith("--"), each))
        written = (
            ", ".join(code(name) for name in names[:-1]) + (", " if names[1:] else "") + code(names[-1] + metavar)
        )
    shown = parameter.default if parameter.show_default and not parameter.required else ""
    default = "required" if parameter.required else code(str(shown if shown is not None else ""))
    return [written, default, prose(re.sub(r"(?<!\.)\.$", "", parameter.help or ""))]
