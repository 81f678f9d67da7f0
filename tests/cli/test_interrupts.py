"""Ctrl-C at any moment ends a command with exit code 130 and one line, and ends its worker processes."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress

import pytest

from side_by_side import group_is_gone, wait_for

START = "import sys, whyrank.cli.main as m; print('started', flush=True); m.main()"
SLOW = """
import time
open({mark!r}, "a").close()

def slow(queries, docs):
    time.sleep(0.2)
    return [float(len(d)) for d in docs]
"""


@pytest.fixture
def command(tmp_path):
    """Start a command in a process group of its own; it has said that its first line is about to run."""
    started = []
    environment = os.environ | {"WHYRANK_CACHE": str(tmp_path / "cache")}

    def start(*arguments):
        process = subprocess.Popen([sys.executable, "-c", START, *map(str, arguments)], env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)  # fmt: skip
        started.append(process)
        assert process.stdout.readline() == "started\n"
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def slow(tmp_path):
    """A ranker that takes long; a file shows that its module was imported."""
    (tmp_path / "slow.py").write_text(SLOW.format(mark=str(tmp_path / "imported")))
    return f"python:{tmp_path}/slow.py:slow(batch_size=8)"


def interrupted(process) -> None:
    """Press Ctrl-C: the whole group hears it, and nobody says more than one line."""
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.startswith("whyrank: stopped; "), err
    assert (err.count("\n"), out) == (1, ""), err
    wait_for(lambda: group_is_gone(process), 10)


def test_next_to_nothing_is_imported_before_it_is_heard():
    code = "import sys, whyrank.cli.main; print([m for m in ('typer', 'numpy', 'whyrank.core.errors') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"[]\n"


@pytest.mark.parametrize("delay", [0.01, 0.02, 0.06, 0.12, 0.25, 0.5, 1.0])
def test_while_modules_are_imported(command, slow, delay):
    process = command("probe", "matched/*", "--ranker", slow)
    time.sleep(delay)
    interrupted(process)


@pytest.mark.parametrize("delay", [0, 0.1, 0.3, 1.5])
def test_while_worker_processes_start(command, slow, tmp_path, delay):
    process = command("probe", "matched/*", "--ranker", slow, "--executor", "processes(workers=2)")
    wait_for((tmp_path / "imported").exists)
    time.sleep(delay)
    interrupted(process)


@pytest.mark.parametrize("executor", ["serial", pytest.param("processes(workers=2)", marks=pytest.mark.slow)])
def test_while_a_neural_model_scores(command, tmp_path, executor):
    pytest.importorskip("transformers")
    batch = ("--batch-size", "16", "--executor", executor)
    process = command("probe", "matched/*", "--ranker", "cross:bundled(threads=1)", *batch)
    wait_for(lambda: stored(tmp_path / "cache" / "scores.sqlite") > 0)
    interrupted(process)
    assert stored(tmp_path / "cache" / "scores.sqlite") > 0


def stored(store) -> int:
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store)) as database, suppress(sqlite3.OperationalError):
        return database.execute("SELECT count(*) FROM scores").fetchone()[0]
    return 0


def test_an_error_that_an_import_makes_of_it_is_still_an_interruption(command, tmp_path):
    """Some packages answer whatever happens while they are imported with an error of their own."""
    (tmp_path / "odd.py").write_text(
        f"import time\nopen({str(tmp_path / 'imported')!r}, 'a').close()\n"
        "try:\n    time.sleep(60)\nexcept BaseException:\n    raise ImportError('core failed to import') from None\n"
    )
    process = command("probe", "matched/*", "--ranker", f"python:{tmp_path}/odd.py:f")
    wait_for((tmp_path / "imported").exists)
    interrupted(process)


def test_where_python_would_drop_it(command, tmp_path):
    """A KeyboardInterrupt in a destructor cannot be raised there; it comes a little later."""
    (tmp_path / "odd.py").write_text(
        "import time\n"
        "class Held:\n    def __del__(self):\n"
        f"        open({str(tmp_path / 'imported')!r}, 'a').close()\n        time.sleep(5)\n"
        "held = Held()\ndel held\n"
        "def f(queries, docs):\n    time.sleep(60)\n"
    )
    process = command("probe", "matched/*", "--ranker", f"python:{tmp_path}/odd.py:f")
    wait_for((tmp_path / "imported").exists)
    interrupted(process)
