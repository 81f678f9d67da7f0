"""Workers and the rankers that they loaded outlive a call, and end with their executor."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from counting_rankers import Misbehaving, Plain, grid, true_score

from whyrank.core import WhyrankError
from whyrank.scoring import Engine, ProcessExecutor
from whyrank.scoring.asking import Task

pytestmark = pytest.mark.usefixtures("no_workers_left")


@dataclass
class Heavy:
    """Writes a line whenever a copy of it is loaded; its scores are `offset`."""

    log: str
    name: str = "heavy"
    offset: float = 0.0

    def __setstate__(self, state):
        self.__dict__ |= state
        with open(self.log, "a") as file:
            file.write(f"{self.name} {self.offset} in {os.getpid()}\n")

    def score(self, queries, docs):
        return np.full(len(docs), self.offset)


@pytest.fixture
def executor(no_workers_left):
    """Executors that are closed at the end: what was raised holds on to them."""
    made = []

    def make(workers):
        made.append(ProcessExecutor(workers))
        return made[-1]

    yield make
    for each in made:
        each.close()


def loads(log) -> list[str]:
    return Path(log).read_text().splitlines()


def test_a_ranker_is_loaded_once_per_worker_whatever_the_number_of_calls(tmp_path):
    log = str(tmp_path / "log")
    engine, rankers = Engine(executor=ProcessExecutor(2), batch_size=2), [Heavy(log, "one"), Heavy(log, "two", 2.0)]
    for last in (8, 12, 9):
        for ranker in rankers:
            assert set(engine.score(ranker, *grid(1, 0, last)).values) == {ranker.offset}
    assert len(loads(log)) == len(set(loads(log))) == 4
    assert len({line.split()[-1] for line in loads(log)}) == len(multiprocessing.active_children()) == 2


def test_a_ranker_that_changed_between_calls_is_sent_again(tmp_path):
    engine, ranker = Engine(executor=ProcessExecutor(1)), Heavy(str(tmp_path / "log"))
    for offset in (0.0, 1.0, 1.0, 0.0):
        ranker.offset = offset
        assert set(engine.score(ranker, *grid(1, 0, 4)).values) == {offset}
    assert [line.split()[1] for line in loads(ranker.log)] == ["0.0", "1.0", "0.0"]


def test_more_workers_start_only_when_there_is_work_for_them(tmp_path):
    engine, ranker = Engine(executor=ProcessExecutor(3), batch_size=5), Heavy(str(tmp_path / "log"))
    for docs, workers in ((5, 1), (10, 2), (5, 2), (60, 3)):
        engine.score(ranker, *grid(1, 0, docs))
        assert len(multiprocessing.active_children()) == len(loads(ranker.log)) == workers


def test_workers_end_with_the_executor():
    executor = ProcessExecutor(2)
    Engine(executor=executor, batch_size=2).score(Plain(), *grid(1, 0, 8))
    assert len(multiprocessing.active_children()) == 2
    del executor
    assert multiprocessing.active_children() == []


def test_after_an_error_the_next_call_has_new_workers(executor):
    engine = Engine(executor=executor(2), batch_size=2)
    for _ in range(2):
        with pytest.raises(WhyrankError, match="download it first"):
            engine.score(Misbehaving("refuse"), *grid(1, 0, 20))
        engine.executor.close()
        assert multiprocessing.active_children() == []
        assert len(engine.score(Plain(), *grid(1, 0, 20)).values) == 20


def test_a_worker_that_died_between_calls_is_reported_and_replaced(executor):
    engine = Engine(executor=executor(1))
    engine.score(Plain(), *grid(1, 0, 4))
    [worker] = multiprocessing.active_children()
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    with pytest.raises(WhyrankError, match=r"ranker 'plain': a worker process died \(signal 9"):
        engine.score(Plain(), *grid(1, 0, 5))
    assert engine.score(Plain(), *grid(1, 0, 1)).values.tolist() == [true_score("q0", "d0")]


def test_two_calls_at_a_time_do_not_get_into_each_others_way():
    executor = ProcessExecutor(1)
    first, second = (executor.run(Plain(), iter([Task(i, ["q"], [f"{n}{i}"]) for i in range(3)])) for n in "ab")
    for one, other in zip(first, second, strict=True):
        assert (one.values[0], other.values[0]) == (
            true_score("q", f"a{one.number}"),
            true_score("q", f"b{other.number}"),
        )
    assert len(multiprocessing.active_children()) == 2


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs POSIX signals")
def test_ctrl_c_waits_until_a_process_has_started():
    """Also where another thread takes the signal that this one blocks."""
    found = subprocess.run([sys.executable, "-c", PRESSED], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.splitlines() == ["at the end", "interrupted", "as before"]


PRESSED = """
import signal, threading
from whyrank.scoring.processes import _interrupts_blocked

signal.signal(signal.SIGINT, signal.default_int_handler)
go = threading.Event()

def press():
    go.wait()
    signal.raise_signal(signal.SIGINT)

thread = threading.Thread(target=press)
thread.start()
try:
    with _interrupts_blocked():
        go.set()
        thread.join()
        print("at the end")
    print("too far")
except KeyboardInterrupt:
    print("interrupted")
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    print("as before")
"""
