from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest
from counting_rankers import Counting, LoadsNowhere, Misbehaving, Picky, Plain, grid, read_log, true_score

from whyrank.core import Executor, Processes, Serial, UnknownName, WhyrankError, executor, executors
from whyrank.scoring import Engine, Failure
from whyrank.scoring.asking import Answer
from whyrank.scoring.engine import Job
from whyrank.scoring.pairs import unique_pairs

pytestmark = pytest.mark.usefixtures("no_workers_left")


def test_executors_are_found_by_name():
    assert executor("serial") == Serial()
    assert executor("processes") == Processes()
    assert executor("processes(workers=3)") == Processes(3)
    assert all(isinstance(executor(name), Executor) for name in ("serial", "processes"))


def test_unknown_names_are_answered_with_known_ones():
    with pytest.raises(WhyrankError, match="unknown executor 'dask'; known: processes, ray, serial"):
        executor("dask")


def test_an_unknown_executor_is_refused_with_a_suggestion():
    with pytest.raises(UnknownName, match="did you mean 'processes'"):
        executor("process")


def test_others_may_register_an_executor():
    @executors.register("backwards")
    @dataclass(frozen=True)
    class Backwards:
        def run(self, function, shared, tasks, late=None):
            yield from reversed(list(Serial().run(function, shared, tasks)))

    try:
        rows = grid(3, 0, 20)
        scores = Engine(executor=executor("backwards"), batch_size=4).score(Plain(), *rows)
        assert scores.values.tolist() == Engine().score(Plain(), *rows).values.tolist()
    finally:
        executors.forget("backwards")


@pytest.mark.parametrize("workers", [0, -1, "two"])
def test_a_number_of_workers_that_makes_no_sense_is_refused(workers):
    with pytest.raises(WhyrankError, match="1 or more workers"):
        Processes(workers)


def test_processes_give_the_same_scores_and_failures_as_one(store, tmp_path):
    queries, docs, query, doc = grid(3, 0, 30)
    docs[4], docs[20], docs[21] = "bad \ud800", "\0", ""
    serial = Engine(batch_size=7).score(Picky(), queries, docs, query, doc)
    parallel = Engine(store, Processes(2), batch_size=7).score(Picky(), queries, docs, query, doc)
    assert np.array_equal(serial.values, parallel.values, equal_nan=True)
    assert serial.failures == parallel.failures
    assert {f.doc for f in parallel.failures} == {"bad \ud800"}
    assert sorted(store.failures(repr(Picky()))) == sorted(parallel.failures)
    again = Engine(store).score(Picky(), queries, docs, query, doc)
    assert (again.scored, again.reused) == (3, 87)


def test_work_is_done_in_other_processes_and_each_pair_once(tmp_path):
    scores = Engine(executor=Processes(2), batch_size=3).score(Pid(str(tmp_path / "log")), *grid(1, 0, 30))
    assert os.getpid() not in set(scores.values)
    assert len(set(scores.values)) <= 2
    assert len(read_log(tmp_path / "log")) == len(set(read_log(tmp_path / "log"))) == 30


@dataclass(frozen=True)
class Pid:
    log: str
    name: str = "pid"

    def score(self, queries, docs):
        Counting(self.log, 0.02).score(queries, docs)
        return np.full(len(docs), os.getpid())


def test_no_process_starts_when_nothing_is_missing(store, monkeypatch):
    Engine(store).score(Plain(), *grid(2, 0, 5))

    def start(*args, **kwargs):
        raise AssertionError("a process was started")

    monkeypatch.setattr("joblib.Parallel", start)
    assert Engine(store, Processes(2), checked=0).score(Plain(), *grid(2, 0, 5)).reused == 10
    with pytest.raises(AssertionError, match="was started"):
        Engine(store, Processes(2)).score(Plain(), *grid(2, 0, 6))


@pytest.mark.parametrize(("deed", "words"), [("exit_hard", "EXIT\\(3\\)"), ("kill_itself", "SIGKILL\\(-9\\)")])
def test_a_worker_that_dies_is_reported_and_what_was_committed_stays(store, deed, words):
    ranker = Misbehaving(deed, trigger="the longest document of all")
    queries, docs, query, doc = grid(1, 0, 20)
    docs[7] = ranker.trigger
    with pytest.raises(WhyrankError, match=rf"'misbehaving'.*lost 3 times .*{words}.*serial executor"):
        Engine(store, Processes(1), batch_size=2).score(ranker, queries, docs, query, doc)
    kept = store.get(repr(ranker), "q0", docs)
    assert kept == {d: true_score("q0", d) for d in kept}
    assert len(kept) == 18


@pytest.mark.parametrize(("deed", "workers"), [("sleep", 2), ("spin", 1)])
def test_a_pair_that_never_ends_is_given_up_alone(store, deed, workers):
    executor = Processes(workers, timeout=2.0)
    found = Engine(store, executor, batch_size=5).score(Misbehaving(deed), *grid(2, 0, 20))
    hung = {Failure(query, "d7", "TimeoutError: no answer within 2 s") for query in ("q0", "q1")}
    assert set(found.failures) == hung == set(store.failures(repr(Misbehaving(deed))))
    assert np.isfinite(found.values).sum() == 38
    executor.close()


def test_a_ranker_that_never_answers_is_given_up_soon():
    began = time.monotonic()
    with pytest.raises(
        WhyrankError, match=r"'misbehaving' failed on each of the first 4 pairs: TimeoutError: no answer"
    ):
        Engine(executor=Processes(1, timeout=0.5)).score(Misbehaving("sleep", ""), *grid(1, 0, 200))
    assert time.monotonic() - began < 60


def test_pairs_that_took_too_long_before_do_not_stop_a_run_that_goes_on(store):
    rows = grid(1, 0, 8)
    for _ in range(2):
        executor = Processes(1, timeout=1.0)
        found = Engine(store, executor, batch_size=4, checked=0).score(Misbehaving("sleep"), *rows)
        assert [failure.doc for failure in found.failures] == ["d7"]
        executor.close()


@pytest.mark.parametrize("timeout", [0, -1, "soon"])
def test_a_time_limit_that_makes_no_sense_is_refused(timeout):
    with pytest.raises(WhyrankError, match="timeout must be a number"):
        Processes(1, timeout)


@pytest.mark.parametrize(
    ("deed", "error", "words"),
    [
        ("refuse", WhyrankError, "weights.bin: no such file; download it first"),
        ("refuse_oddly", WhyrankError, "one and two"),
    ],
)
def test_what_is_no_failure_of_a_pair_comes_through_from_a_worker(deed, error, words):
    with pytest.raises(error) as caught:
        Engine(executor=Processes(2), batch_size=4).score(Misbehaving(deed), *grid(1, 0, 20))
    assert str(caught.value) == words


def test_a_ranker_that_never_works_is_given_up_in_processes_too():
    with pytest.raises(WhyrankError, match=r"ranker 'picky' failed.*first 20.*ValueError: cannot read"):
        Engine(executor=Processes(2)).score(Picky(bad="d"), *grid(1, 0, 500))


def test_a_batch_that_was_given_up_too_early_is_tried_again():
    """One worker loses patience with its first batch while another has already succeeded."""

    @dataclass(frozen=True)
    class Late:
        """Answers like a pool whose second batch was sent before the first one succeeded."""

        def run(self, function, ranker, tasks, late=None):
            first, second = next(tasks), next(tasks)
            yield from Serial().run(function, ranker, iter([second]))
            given_up = dict.fromkeys(range(20), "ValueError")
            yield Answer(first.number, np.full(len(first.docs), np.nan), given_up, succeeded=False, gave_up=True)
            yield from Serial().run(function, ranker, tasks)

    rows = grid(1, 0, 60)
    scores = Engine(executor=Late(), batch_size=30).score(Plain(), *rows)
    assert scores.values.tolist() == Engine().score(Plain(), *rows).values.tolist()
    assert scores.failures == []


def test_the_patience_that_a_task_carries_ends_with_the_first_success():
    rows = grid(1, 0, 6)
    job = Job(Plain(), unique_pairs(*rows), None)
    patience = []

    @dataclass(frozen=True)
    class Watching:
        def run(self, function, ranker, tasks, late=None):
            for task in tasks:
                patience.append(task.patience)
                failed = {0: "E", 1: "E"} if task.number == 0 else {}
                yield Answer(task.number, np.zeros(2), failed, succeeded=not failed)

    job.work(job.recall(), 2, Watching())
    assert patience == [20, 18, None]


class Local:
    name = "local"

    def __init__(self):
        self.lock = threading.Lock()

    def score(self, queries, docs):
        return np.zeros(len(docs))


def test_a_ranker_that_cannot_be_pickled_is_refused_with_a_remedy():
    with pytest.raises(WhyrankError, match=r"'local' cannot be sent to other processes.*use the serial"):
        Engine(executor=Processes(2)).score(Local(), *grid(1, 0, 3))


def test_a_ranker_that_cannot_be_loaded_is_refused_with_a_remedy():
    with pytest.raises(WhyrankError, match=r"'loads-nowhere' cannot be loaded.*no GPU here.*use the serial"):
        Engine(executor=Processes(2)).score(LoadsNowhere(), *grid(1, 0, 100))


def test_batches_larger_than_a_pipe_go_through():
    queries, docs, query, doc = grid(2, 0, 40)
    docs = [d + "x" * 50_000 for d in docs]
    scores = Engine(executor=Processes(2), batch_size=40).score(Picky("d3"), queries, docs, query, doc)
    bad = [d for d in docs if d.startswith("d3")]
    assert {(f.query, f.doc) for f in scores.failures} == {(q, d) for q in queries for d in bad}
    assert all(isinstance(f, Failure) for f in scores.failures)
    good = np.isfinite(scores.values)
    assert scores.values[good].tolist() == [
        true_score(queries[q], docs[d]) for q, d in zip(query[good], doc[good], strict=True)
    ]
