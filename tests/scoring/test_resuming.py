"""Runs that are killed, interrupted or beside one another, as real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from counting_rankers import Counting, read_log, stored, true_score

from side_by_side import group_is_gone, wait_for
from whyrank.scoring import ScoreStore
from whyrank.scoring.engine import identity_of

HERE = str(Path(__file__).parent)
SOURCE = str(Path(__file__).parents[2] / "src")
CODE = (
    f"import sys; sys.path[:0] = [{HERE!r}, {SOURCE!r}]; from counting_rankers import main; main(*eval(sys.argv[1]))"
)


def start(*arguments):
    command = [sys.executable, "-c", CODE, repr(arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def finish(process):
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return [int(number) for number in out.split()]


def committed(path, ranker, n_queries, n_docs):
    with ScoreStore(path) as store:
        docs = [f"d{i}" for i in range(n_docs)]
        found = {q: stored(store, identity_of(ranker), q, docs) for q in (f"q{i}" for i in range(n_queries))}
    return {(q, d): score for q, scores in found.items() for d, score in scores.items()}


@pytest.mark.parametrize(("name", "under_way"), [("serial", 1), ("processes(workers=2)", 2)])
def test_a_killed_run_loses_what_was_under_way_alone_and_resumes(tmp_path, name, under_way):
    store, log = str(tmp_path / "scores.sqlite"), str(tmp_path / "log")
    arguments = (store, log, name, 0.02, 4, 0, 60, 5)
    ranker = Counting(log, 0.02)
    process = start(*arguments)
    wait_for(lambda: len(read_log(log)) >= 60)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_for(lambda: group_is_gone(process), 10)  # workers notice that they are orphans

    first = read_log(log)
    before = committed(store, ranker, 4, 60)
    assert 60 - 5 * under_way <= len(before) < 240
    assert set(before) <= set(first)
    # workers may still log the batches that they had when the parent died; those were never committed
    assert len(first) - len(before) <= 5 * under_way

    scored, reused, failures = finish(start(*arguments))
    second = read_log(log)[len(first) :]
    assert (scored, reused, failures) == (240 - len(before), len(before), 0)
    assert len(second) == len(set(second)) == scored
    assert not set(second) & set(before)
    everything = {(f"q{i}", f"d{j}"): true_score(f"q{i}", f"d{j}") for i in range(4) for j in range(60)}
    assert committed(store, ranker, 4, 60) == everything


@pytest.mark.parametrize("name", ["serial", "processes(workers=2)"])
@pytest.mark.parametrize("to_group", [True, False], ids=["as a terminal does", "to the parent only"])
def test_an_interrupted_run_ends_at_once_and_leaves_no_process(tmp_path, name, to_group):
    store, log = str(tmp_path / "scores.sqlite"), str(tmp_path / "log")
    process = start(store, log, name, 0.05, 4, 0, 500, 5)
    wait_for(lambda: len(read_log(log)) >= 15)
    began = time.monotonic()
    (os.killpg if to_group else os.kill)(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    wait_for(lambda: group_is_gone(process), 5)
    assert time.monotonic() - began < 4
    assert process.returncode == -signal.SIGINT
    chained = err.count("During handling of the above exception")  # where the signal came inside a handler
    assert err.count("Traceback") - chained == 1  # the parent's own; workers say nothing
    assert "KeyboardInterrupt" in err
    kept = committed(store, Counting(log, 0.05), 4, 500)
    assert kept == {pair: true_score(*pair) for pair in kept}
    assert len(kept) >= 5


def test_workers_do_not_outlive_a_killed_parent_even_inside_a_long_batch(tmp_path):
    store, log = str(tmp_path / "scores.sqlite"), str(tmp_path / "log")
    process = start(store, log, "processes(workers=2)", 60.0, 1, 0, 10, 5)
    wait_for(Path(log + ".begun").exists)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    try:
        wait_for(lambda: group_is_gone(process), 5)
    finally:
        if not group_is_gone(process):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_several_runs_on_one_store_divide_the_pairs(tmp_path):
    store, log, go = str(tmp_path / "scores.sqlite"), str(tmp_path / "log"), tmp_path / "go"
    runs = [start(store, log, "serial", 0.05, 4, 0, 120, 5, str(go)) for _ in range(3)]
    time.sleep(0.5)
    go.touch()
    counts = [finish(run) for run in runs]
    assert all(scored + reused == 480 and failures == 0 for scored, reused, failures in counts)
    everything = {(f"q{i}", f"d{j}"): true_score(f"q{i}", f"d{j}") for i in range(4) for j in range(120)}
    assert committed(store, Counting(log, 0.05), 4, 120) == everything
    assert len(read_log(log)) == sum(scored for scored, _, _ in counts) < 1.5 * 480  # and not three times


def test_a_script_needs_no_main_guard(tmp_path):
    """The ranker, which is larger than a pipe, is sent to the workers without running the script again."""
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys; sys.path[:0] = [{HERE!r}, {SOURCE!r}]\n"
        "from counting_rankers import Picky, grid\n"
        "from whyrank.core import Processes\n"
        "from whyrank.scoring import Engine\n"
        "print(Engine(executor=Processes(2)).score(Picky('x' * 1_000_000), *grid(1, 0, 100)).scored)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "100\n"), done.stderr
