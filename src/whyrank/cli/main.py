"""The entry point: commands, and errors as one clear line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import typer

from whyrank import __version__
from whyrank.cli import (
    audit,
    axioms,
    contrasts,
    delta,
    evaluate,
    listing,
    preferences,
    probe,
    rank,
    stats,
    train,
    tune,
)
from whyrank.core.errors import WhyrankError

app = typer.Typer(
    name="whyrank",
    help="Shows what a ranking model really rewards.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
INTERRUPTED = 130
COMMANDS: dict[str, Callable[..., Any]] = {
    "audit": audit.audit,
    "probe": probe.probe,
    "axioms": axioms.axioms,
    "contrasts": contrasts.contrasts,
    "delta": delta.delta,
    "rank": rank.rank,
    "preferences": preferences.preferences,
    "train": train.train,
    "evaluate": evaluate.evaluate,
    "tune": tune.tune,
    "stats": stats.stats,
    "list": listing.list_,
}
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)


@app.callback(invoke_without_command=True)
def top(version: bool = typer.Option(False, "--version", help="Show the version and stop.")) -> None:
    """Show what a ranking model really rewards."""
    if version:
        typer.echo(f"whyrank {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; a wrong request or input ends with one line and exit code 2."""
    if len(sys.argv) == 1:
        sys.argv.append("--help")
    try:
        code = app(standalone_mode=False)
    except WhyrankError as error:
        _stop(str(error), 2)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        _stop(*_explained(error))
    if code == INTERRUPTED:  # the option parser turns Ctrl-C into this code
        _stop("stopped; scores that were stored are kept, and the same command goes on from there", INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _explained(error: Exception) -> tuple[str, int]:
    """A wrong option, a file that cannot be read or written, or a fault of ours."""
    if hasattr(error, "format_message"):  # what the option parser raises
        return f"{error.format_message().rstrip('.')}; see 'whyrank --help'", 2
    if isinstance(error, OSError):
        return f"{error.filename or 'a file could not be read or written'}: {error.strerror or error}", 2
    if os.environ.get("WHYRANK_DEBUG"):
        raise error
    kind = type(error).__name__
    return f"internal error: {kind}: {error}; set WHYRANK_DEBUG=1 for the details and please report it", 70


def _stop(message: str, code: int) -> NoReturn:
    print("whyrank: " + " ".join(message.split("\n")), file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
