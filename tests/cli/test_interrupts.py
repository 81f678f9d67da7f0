"""Ctrl-C at any moment ends a command with exit code 130 and one line, and ends its worker processes."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress

import pytest

from side_by_side import group_is_gone, wait_for
from whyrank.cli import console
from whyrank.cli.main import main
from whyrank.studies.axioms.counts import TFC1

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
    assert err.startswith("whyrank: stopped"), err
    assert (err.count("\n"), out) == (1, ""), err
    wait_for(lambda: group_is_gone(process), 10)


@pytest.mark.parametrize("delay", [0.01, 0.06, 0.25, 1.0])
def test_while_modules_are_imported(command, slow, delay):
    process = command("audit", "matched/*", "--ranker", slow)
    time.sleep(delay)
    interrupted(process)


@pytest.mark.parametrize("delay", [0, 0.3])
def test_while_worker_processes_start(command, slow, tmp_path, delay):
    process = command("audit", "matched/*", "--ranker", slow, "--executor", "processes(workers=2)")
    wait_for((tmp_path / "imported").exists)
    time.sleep(delay)
    interrupted(process)


@pytest.mark.parametrize("executor", ["serial", pytest.param("processes(workers=2)", marks=pytest.mark.slow)])
def test_while_a_neural_model_scores(command, tmp_path, executor):
    pytest.importorskip("transformers")
    batch = ("--batch-size", "16", "--executor", executor)
    process = command("audit", "matched/*", "--ranker", "cross:bundled(threads=1)", *batch)
    wait_for(lambda: stored(tmp_path / "cache" / "scores.sqlite") > 0, 180)
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
    process = command("audit", "matched/*", "--ranker", f"python:{tmp_path}/odd.py:f")
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
    process = command("audit", "matched/*", "--ranker", f"python:{tmp_path}/odd.py:f")
    wait_for((tmp_path / "imported").exists)
    interrupted(process)


@pytest.mark.slow
def test_interrupted_run_goes_on(tmp_path):
    """Ctrl-C ends with one line; the same command then scores only what is left."""
    module, log = tmp_path / "slow.py", tmp_path / "log.txt"
    module.write_text(
        "import time\n"
        f"LOG = {str(log)!r}\n"
        "def f(queries, docs):\n"
        "    time.sleep(0.05)\n"
        "    with open(LOG, 'a') as file:\n"
        "        file.writelines(f'{hash((q, d))}\\n' for q, d in zip(queries, docs))\n"
        "    return [float(len(d)) for d in docs]\n"
    )
    environment = os.environ | {"WHYRANK_CACHE": str(tmp_path / "cache"), "PYTHONHASHSEED": "0"}
    ranker = f"python:{module}:f(batch_size=8)"
    command = [sys.executable, "-m", "whyrank.cli.main", "audit", "matched/length|relevance", "-r", ranker, "--json"]
    first = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: log.exists() and log.read_text().count("\n") >= 40, 60)
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=60)
    assert first.returncode == 130
    assert err.strip().splitlines()[-1].startswith("whyrank: stopped")
    assert "Traceback" not in err
    second = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(second.stdout)[0]["n"] > 0
    scored = log.read_text().split()
    assert len(scored) - len(set(scored)) <= 8 + 4, "one batch at most, and a sample that checks what is stored"


@pytest.mark.parametrize(
    ("command", "out"),
    [
        (["audit", "TFC1"], "results"),
        (["contrasts", "TFC1"], "x.jsonl"),
        (["contrasts", "TFC1"], "x.parquet"),
        (["rank", "--axiom", "TFC1", "--candidates", "bm25"], "x.txt"),
    ],
)
def test_a_stop_between_two_queries_leaves_no_file(whyrank, tmp_path, monkeypatch, command, out):
    """Ctrl-C between two queries leaves no file behind, hidden ones included."""
    views, wins = [], TFC1.wins

    def stopping(self, view, a, b):
        views.append(view)
        if len(views) == 20:
            raise KeyboardInterrupt
        return wins(self, view, a, b)

    monkeypatch.setattr(TFC1, "wins", stopping)
    code, printed, err = whyrank(*command, "--out", str(tmp_path / out))
    assert (code, printed) == (130, "")
    assert "stopped" in err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.fixture
def stopped(tmp_path, monkeypatch, capsys):
    """Run a command that is stopped where some function is called; gives its last line, which says what is kept."""
    monkeypatch.setattr(console, "_kept", [])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHYRANK_CACHE", str(tmp_path / "cache"))

    def run(function, *arguments):
        def stop(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr(function, stop)
        monkeypatch.setattr(sys, "argv", ["whyrank", *arguments])
        with pytest.raises(SystemExit) as found:
            main()
        assert found.value.code == 130
        return capsys.readouterr().err.splitlines()[-1]

    return run


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), ""),
        (("--checkpoint", "state"), "; whole iterations are kept, start again to go on"),
    ],
)
def test_in_em(stopped, more, said):
    found = stopped("whyrank.learners.em.learner.EM.fit", "tables", "learn", "em", "--out", "t.parquet", *more)
    assert found == f"whyrank: stopped{said}"


@pytest.mark.parametrize(
    ("store", "said"),
    [("s.sqlite", "; scored pairs are kept, start again to go on"), ("none", "")],
)
def test_while_scoring(stopped, store, said):
    asked = "rank", "-r", "ql", "--candidates", "bm25", "--out", "run.txt", "--store", store
    assert stopped("whyrank.scoring.ranking.rerank", *asked) == f"whyrank: stopped{said}"


def test_in_training(stopped):
    found = stopped("whyrank.training.trainer.Trainer.run", "train", "smoke", "--out", "network")
    assert found == "whyrank: stopped; checkpoints are kept, start again to go on"
