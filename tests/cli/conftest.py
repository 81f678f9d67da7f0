"""Commands run in the process of the tests."""

from __future__ import annotations

import sys

import pytest

from whyrank.cli.main import main


@pytest.fixture
def whyrank(monkeypatch, capsys):
    """Run a command in this process; gives exit code, standard output and standard error."""

    def run(*arguments: str):
        monkeypatch.setattr(sys, "argv", ["whyrank", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run
