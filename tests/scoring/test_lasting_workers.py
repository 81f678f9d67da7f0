"""Workers and the rankers that they loaded outlive a call, and end with their executor."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from counting_rankers import Counting, Misbehaving, Plain, grid, read_log

from whyrank.core import Processes, WhyrankError
from whyrank.scoring import Engine

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
        made.append(Processes(workers))
        return made[-1]

    yield make
    for each in made:
        each.close()


def loads(log) -> list[str]:
    return Path(log).read_text().splitlines()


def test_a_ranker_is_loaded_once_per_worker_whatever_the_number_of_calls(tmp_path):
    log = str(tmp_path / "log")
    engine, rankers = Engine(executor=Processes(2), batch_size=2), [Heavy(log, "one"), Heavy(log, "two", 2.0)]
    for last in (8, 12, 9):
        for ranker in rankers:
            assert set(engine.score(ranker, *grid(1, 0, last)).values) == {ranker.offset}
    assert len(loads(log)) == len(set(loads(log))) <= 4
    assert len({line.split()[-1] for line in loads(log)}) <= 2


def test_a_ranker_that_changed_between_calls_is_sent_again(tmp_path):
    engine, ranker = Engine(executor=Processes(1)), Heavy(str(tmp_path / "log"))
    for offset in (0.0, 1.0, 1.0, 0.0):
        ranker.offset = offset
        assert set(engine.score(ranker, *grid(1, 0, 4)).values) == {offset}
    assert [line.split()[1] for line in loads(ranker.log)] == ["0.0", "1.0", "0.0"]


def test_after_an_error_the_next_call_has_new_workers(executor):
    engine = Engine(executor=executor(2), batch_size=2)
    for _ in range(2):
        with pytest.raises(WhyrankError, match="download it first"):
            engine.score(Misbehaving("refuse"), *grid(1, 0, 20))
        engine.executor.close()
        assert len(engine.score(Plain(), *grid(1, 0, 20)).values) == 20


def test_a_worker_that_died_between_calls_is_replaced(tmp_path):
    engine, ranker = Engine(executor=Processes(1)), Heavy(str(tmp_path / "log"))
    engine.score(ranker, *grid(1, 0, 4))
    os.kill(int(loads(ranker.log)[0].split()[-1]), signal.SIGKILL)
    assert set(engine.score(ranker, *grid(1, 0, 5)).values) == {0.0}
    assert len(loads(ranker.log)) == 2


def test_a_worker_that_is_killed_costs_its_unfinished_batches_alone(tmp_path):
    """The findings are those of a serial run, and no batch that was answered is asked again."""
    ranker = DiesOnce(str(tmp_path / "log"), str(tmp_path / "died"))
    found = Engine(executor=Processes(2), batch_size=4).score(ranker, *grid(2, 0, 60))
    assert (tmp_path / "died").exists()
    assert found.values.tolist() == Engine().score(Plain(), *grid(2, 0, 60)).values.tolist()
    asked = read_log(ranker.log)
    assert len(asked) - len(set(asked)) <= 2 * 4


@dataclass(frozen=True)
class DiesOnce:
    """Its process is killed once, in the middle of the work."""

    log: str
    died: str
    name: str = "dies-once"

    def score(self, queries, docs):
        if "d30" in docs and not Path(self.died).exists():
            Path(self.died).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Counting(self.log, 0.01).score(queries, docs)
