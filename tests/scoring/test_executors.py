"""Executors: the same scores whoever works, also where workers or nodes are lost."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from counting_rankers import Counting, LoadsNowhere, Misbehaving, Picky, Plain, grid, read_log, stored, true_score

from side_by_side import group_is_gone, wait_for
from whyrank.cli.options import Scoring
from whyrank.core import (
    Executor,
    MissingExtra,
    Processes,
    Ray,
    Serial,
    UnknownName,
    WhyrankError,
    executor,
    executors,
    parallel,
)
from whyrank.scoring import Engine, Failure
from whyrank.scoring.batches import BatchScores
from whyrank.scoring.engine import identity_of


@pytest.fixture(autouse=True)
def no_workers_left():
    """The worker processes of a test end with it."""
    yield
    Processes().close()


@dataclass
class Heavy:
    """Writes a line with its process whenever a copy of it is loaded; its scores are `offset`."""

    log: str
    name: str = "heavy"
    offset: float = 0.0

    def __setstate__(self, state):
        self.__dict__ |= state
        with open(self.log, "a") as file:
            file.write(f"{self.name} {self.offset} in {os.getpid()}\n")

    def score(self, queries, docs):
        return np.full(len(docs), self.offset)


@dataclass(frozen=True)
class DiesOnce:
    """Its process is killed once, in the middle of the work."""

    log: str
    name: str = "dies-once"

    def score(self, queries, docs):
        died = Path(self.log + ".died")
        if "d30" in docs and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Counting(self.log, 0.01).score(queries, docs)


class Unpicklable:
    name = "unpicklable"

    def __init__(self):
        self.lock = threading.Lock()

    def score(self, queries, docs):
        return np.zeros(len(docs))


def loads(log) -> list[str]:
    return Path(log).read_text().splitlines()


def serial_scores(rows) -> list[float]:
    return Engine().score(Plain(), *rows).values.tolist()


def test_executors_are_found_by_name():
    assert executor("serial") == Serial()
    assert executor("processes(workers=3)") == Processes(3)
    assert executor("ray(address='ray://host:10001')") == Ray(address="ray://host:10001")
    assert all(isinstance(executor(name), Executor) for name in executors.names())


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: executor("dask"), UnknownName, "known: processes, ray, serial"),
        (lambda: executor("process"), UnknownName, "did you mean 'processes'"),
        (lambda: Processes(0), WhyrankError, "workers must be a whole number, 1 or more"),
        (lambda: Ray("two"), WhyrankError, "workers must be a whole number, 1 or more"),
        (lambda: Ray(address=1), WhyrankError, "address must be text"),
        (lambda: Processes(1, 0), WhyrankError, "timeout must be a number"),
        (lambda: Processes(1, "soon"), WhyrankError, "timeout must be a number"),
        (lambda: Scoring(store="none", ray_address="auto").engine(), WhyrankError, "needs the executor ray"),
        (lambda: Scoring(store="none", executor="ray", timeout=1.0).engine(), WhyrankError, "--timeout needs"),
    ],
)
def test_requests_that_make_no_sense_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_where_ray_is_missing_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"whyrank\[ray\]"):
        Engine(executor=Ray()).score(Plain(), *grid(1, 0, 3))


def test_an_address_without_a_cluster_is_refused_at_once():
    pytest.importorskip("ray", reason="ray is not installed")
    with pytest.raises(WhyrankError, match="no Ray cluster at"):
        Engine(executor=Ray(address="127.0.0.1:1")).score(Plain(), *grid(1, 0, 3))


def test_processes_give_the_same_scores_and_failures_as_one(store):
    queries, docs, query, doc = grid(3, 0, 30)
    docs[4], docs[20], docs[21] = "bad \ud800", "\0", ""
    serial = Engine(batch_size=7).score(Picky(), queries, docs, query, doc)
    parallel = Engine(store, Processes(2), batch_size=7).score(Picky(), queries, docs, query, doc)
    assert np.array_equal(serial.values, parallel.values, equal_nan=True)
    assert serial.failures == parallel.failures
    assert {f.doc for f in parallel.failures} == {"bad \ud800"}
    again = Engine(store).score(Picky(), queries, docs, query, doc)
    assert (again.scored, again.reused) == (3, 87)


def test_each_of_two_workers_loads_a_ranker_once_whatever_the_number_of_calls(tmp_path):
    log = str(tmp_path / "log")
    engine, rankers = Engine(executor=Processes(2), batch_size=2), [Heavy(log, "one"), Heavy(log, "two", 2.0)]
    for last in (8, 12, 9):
        for ranker in rankers:
            assert set(engine.score(ranker, *grid(1, 0, last)).values) == {ranker.offset}
    assert len(loads(log)) == len(set(loads(log))) <= 4
    assert os.getpid() not in {int(line.split()[-1]) for line in loads(log)}


def test_a_ranker_that_changed_is_sent_again_and_a_worker_that_died_between_calls_is_replaced(tmp_path):
    engine, ranker = Engine(executor=Processes(1)), Heavy(str(tmp_path / "log"))
    for offset in (0.0, 1.0, 1.0, 0.0):
        ranker.offset = offset
        assert set(engine.score(ranker, *grid(1, 0, 4)).values) == {offset}
    assert [line.split()[1] for line in loads(ranker.log)] == ["0.0", "1.0", "0.0"]
    os.kill(int(loads(ranker.log)[0].split()[-1]), signal.SIGKILL)
    assert set(engine.score(ranker, *grid(1, 0, 5)).values) == {0.0}
    assert len(loads(ranker.log)) == 4


def test_a_file_that_was_changed_on_its_way_is_not_opened(tmp_path):
    (tmp_path / "shared").write_bytes(pickle.dumps(print))
    result, error = parallel._work(len, "mine", b"another digest", str(tmp_path / "shared"), [])
    assert result is None
    assert isinstance(error, WhyrankError)
    assert "changed" in str(error)


def test_a_worker_that_is_killed_costs_its_unfinished_batches_alone(tmp_path):
    ranker, rows = DiesOnce(str(tmp_path / "log")), grid(2, 0, 60)
    found = Engine(executor=Processes(2), batch_size=4).score(ranker, *rows)
    assert (tmp_path / "log.died").exists()
    assert found.values.tolist() == serial_scores(rows)
    scored = read_log(ranker.log)
    assert len(scored) - len(set(scored)) <= 2 * 4  # a batch of four pairs for each of two workers


def test_a_batch_that_kills_every_worker_is_reported_and_what_was_committed_stays(store):
    ranker = Misbehaving("kill_itself", trigger="the longest document of all")
    queries, docs, query, doc = grid(1, 0, 20)
    docs[7] = ranker.trigger
    with pytest.raises(WhyrankError, match=r"'misbehaving'.*lost 3 times .*SIGKILL\(-9\).*serial executor"):
        Engine(store, Processes(1), batch_size=2).score(ranker, queries, docs, query, doc)
    kept = stored(store, identity_of(ranker), "q0", docs)
    assert kept == {d: true_score("q0", d) for d in kept}
    assert len(kept) == 18


@pytest.mark.parametrize(("deed", "workers"), [("sleep", 2), ("spin", 1)])
def test_a_pair_that_never_ends_is_given_up_alone(store, deed, workers):
    for _ in range(2):  # the second time, these pairs are all that is left to score
        engine = Engine(store, Processes(workers, timeout=0.7), batch_size=6, checked=0)
        found = engine.score(Misbehaving(deed), *grid(1, 0, 12))
        hung = [Failure("q0", "d7", "TimeoutError: no answer within 0.7 s")]
        assert found.failures == hung
        assert np.isfinite(found.values).sum() == 11


def test_a_ranker_that_never_answers_is_given_up_soon():
    with pytest.raises(WhyrankError, match=r"failed on each of the first 4 pairs: TimeoutError: no answer"):
        Engine(executor=Processes(1, timeout=0.3)).score(Misbehaving("sleep", ""), *grid(1, 0, 200))


@pytest.mark.parametrize(
    ("ranker", "words"),
    [
        (Misbehaving("refuse"), "^weights.bin: no such file; download it first$"),
        (Misbehaving("refuse_oddly"), "^one and two$"),
        (Picky(bad="d"), "ranker 'picky' failed.*first 20.*ValueError: cannot read"),
        (Unpicklable(), "'unpicklable' cannot be sent to other processes.*use the serial"),
        (LoadsNowhere(), "'loads-nowhere' cannot be loaded.*no GPU here.*use the serial"),
    ],
)
def test_what_is_no_failure_of_a_pair_comes_through_from_a_worker(ranker, words):
    engine = Engine(executor=Processes(2), batch_size=4)
    with pytest.raises(WhyrankError, match=words):
        engine.score(ranker, *grid(1, 0, 100))
    assert engine.score(Plain(), *grid(1, 0, 9)).values.tolist() == serial_scores(grid(1, 0, 9))


def test_a_batch_that_was_given_up_too_early_is_tried_again():
    """One worker loses patience with its first batch while another has already succeeded."""

    @dataclass(frozen=True)
    class Late:
        """Answers like a pool whose second batch was sent before the first one succeeded."""

        def run(self, function, ranker, tasks, late=None):
            first, second = next(tasks), next(tasks)
            yield from Serial().run(function, ranker, iter([second]))
            given_up = dict.fromkeys(range(20), "ValueError")
            yield BatchScores(first.number, np.full(len(first.docs), np.nan), given_up, succeeded=False, gave_up=True)
            yield from Serial().run(function, ranker, tasks)

    scores = Engine(executor=Late(), batch_size=30).score(Plain(), *grid(1, 0, 60))
    assert scores.values.tolist() == serial_scores(grid(1, 0, 60))
    assert scores.failures == []


# Ray: a cluster of two nodes on this machine.


@pytest.fixture(scope="module")
def cluster():
    """Two nodes with one core each; the modules of the tests can be imported there."""
    pytest.importorskip("ray", reason="ray is not installed")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        made.second = made.add_node(num_cpus=1)
        made.wait_for_nodes()
        yield made
        Ray(address=made.address).close()
        made.shutdown()


@pytest.mark.slow
def test_a_node_of_a_ray_cluster_that_is_killed_costs_its_unfinished_batches_alone(cluster, store, tmp_path):
    """Also one worker on the way; the findings are those of a serial run."""
    rows, expected = grid(2, 0, 60), serial_scores(grid(2, 0, 60))
    engine = Engine(store, Ray(address=cluster.address), batch_size=4)

    heavy = Heavy(str(tmp_path / "loads"))
    for last in (40, 60):
        assert set(engine.score(heavy, *grid(1, 0, last)).values) == {0.0}
    assert len(loads(heavy.log)) == len(set(loads(heavy.log)))

    dying = DiesOnce(str(tmp_path / "dying"))
    assert engine.score(dying, *rows).values.tolist() == expected
    assert (tmp_path / "dying.died").exists()

    counting = Counting(str(tmp_path / "counting"), 0.2)
    killer = threading.Thread(target=lambda: (wait_for(lambda: len(read_log(counting.log)) > 20),
                                              cluster.remove_node(cluster.second, allow_graceful=False)))  # fmt: skip
    killer.start()
    found = engine.score(counting, *rows)
    killer.join()
    assert found.values.tolist() == expected
    assert stored(store, identity_of(counting), "q1", rows[1]) == {d: true_score("q1", d) for d in rows[1]}
    scored = read_log(counting.log)
    assert len(scored) - len(set(scored)) <= 2 * 4

    with pytest.raises(WhyrankError, match=r"'misbehaving': a worker was lost 3 times"):
        engine.score(Misbehaving("kill_itself"), *grid(1, 0, 8))
    with pytest.raises(WhyrankError, match="download it first"):
        engine.score(Misbehaving("refuse"), *grid(1, 0, 8))


@pytest.mark.slow
def test_an_interruption_ends_the_cluster_that_a_command_started(tmp_path):
    pytest.importorskip("ray", reason="ray is not installed")
    (tmp_path / "slow.py").write_text(
        "import time\ndef slow(queries, docs):\n    time.sleep(0.2)\n    return [1.0] * len(docs)\n"
    )
    command = [
        sys.executable,
        "-m",
        "whyrank.cli.main",
        *["audit", "matched/*", "--executor", "ray", "--batch-size", "8"],
    ]
    process = subprocess.Popen([*command, "--ranker", f"python:{tmp_path}/slow.py:slow"], start_new_session=True,
                               env=os.environ | {"WHYRANK_CACHE": str(tmp_path)}, text=True, stderr=subprocess.PIPE)  # fmt: skip
    try:
        wait_for((tmp_path / "scores.sqlite").exists, 120)
        time.sleep(3)
    finally:
        os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60)[1].startswith("whyrank: stopped")
    assert process.returncode == 130
    wait_for(lambda: group_is_gone(process), 20)
