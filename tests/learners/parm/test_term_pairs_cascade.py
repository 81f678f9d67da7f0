"""The cascade from student to log: what it finds, when it scores all, how it stops and goes on."""

from __future__ import annotations

import json
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats
from test_term_pairs import as_dict

import whyrank.learners.parm.pairs.cascade as students
import whyrank.learners.parm.pairs.scorer as scorers
from pair_models import parm
from whyrank.learners.parm.pairs import How, Results, Settings, Task, cascade, distinct
from whyrank.learners.parm.pairs.cascade import Drawn
from whyrank.learners.parm.pairs.running import Clock, TimeIsUp, run

torch.set_num_threads(1)
QUERIES = ["".join(word) for word in product("abcde", "fghij")]
DOCS = ["".join(word) for word in product("abcdef", "ghij", "aceg")]
QUIET = lambda line: None  # noqa: E731


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(students, "_FEWEST", 30)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A network, and the weights of all pairs, a query at a time through the network itself."""
    own = parm(tmp_path_factory.mktemp("network"))
    with torch.inference_mode():
        rows = [torch.sigmoid(own.score_texts([query] * len(DOCS), DOCS)).numpy() for query in QUERIES]
    return own, np.stack(rows)


def task_of(own, **given) -> Task:
    sides = distinct(own.query_ids(QUERIES)), distinct(own.doc_ids(DOCS))
    return Task(*sides, Settings(**{"method": "cascade", "audited": (1, 5), "strata": 2} | given))


def belonging(task, weights):
    """The pairs of sequences that belong, by brute force."""
    pairs = np.argwhere(weights >= task.settings.threshold)
    return {(int(task.queries.of_term[q]), int(task.docs.of_term[d])): weights[q, d] for q, d in pairs}


def share(weights, part: float) -> float:
    """A threshold that so many of all pairs reach."""
    return float(np.quantile(weights, 1 - part))


def log_of(results):
    return json.loads((results.folder / "run.json").read_text())


def done(own, task, folder, how=None):
    results, said = Results(folder, "mine"), []
    assert run(task, own, results, how or How(), said.append)
    assert {file.name.split("-")[0] for file in results.folder.iterdir()} == {"entries", "run.json"}
    return results, log_of(results), said


def test_a_cascade_finds_a_part_of_all_and_says_how_much(made, tmp_path):
    own, weights = made
    task = task_of(own, recall=0.8, sample=500, threshold=share(weights, 0.2))
    results, log, said = done(own, task, tmp_path)
    found, whole = as_dict(results.entries()), belonging(task, weights)
    assert found.keys() <= whole.keys()
    np.testing.assert_allclose([found[key] for key in found], [whole[key] for key in found], atol=1e-5)
    proof = log["certificate"]
    assert 0.8 <= proof["recall"] <= len(found) / len(whole)
    assert (proof["level"], proof["asked"], proof["drawn"]) == (0.95, 0.8, 500)
    assert len(proof["strata"]) == 2
    assert proof["pairs"] == len(QUERIES) * len(DOCS)
    assert any(line.startswith("recall >= ") for line in said)
    assert not any(line.startswith("note: ") for line in said)
    assert (log["method"], log["pairs"], log["scored"]) == ("cascade", task.pairs, log["proposed"])
    assert len(found) <= log["proposed"] < task.pairs
    assert log["pairs_per_second"] == pytest.approx(log["scored"] / log["seconds"], rel=0.02)
    assert results.entries().slices.keys() == {int(task.queries.of_term[q]) for q in (1, 5)}


def test_a_certificate_counts_all_that_was_found_and_the_best_come_back(made, tmp_path):
    own, weights = made
    task = task_of(own, recall=0.8, sample=500, threshold=share(weights, 0.2), top=4)
    results, log, _ = done(own, task, tmp_path)
    sizes = np.bincount(results.entries().queries)
    assert sizes.max() == 5
    assert sizes.sum() < log["certificate"]["found"] <= len(belonging(task, weights))


# when all is scored


@pytest.mark.parametrize("top", [None, 3])
def test_as_few_pairs_as_samples_have_are_all_scored(made, tmp_path, monkeypatch, top):
    own, weights = made
    monkeypatch.setattr(cascade, "train_student", None)
    task = task_of(own, sample=600, threshold=share(weights, 0.2), top=top)
    results, log, said = done(own, task, tmp_path)
    if top is None:
        assert as_dict(results.entries()).keys() == belonging(task, weights).keys()
    assert (log["method"], log["pairs"], log["scored"]) == ("exhaustive", task.pairs, task.pairs)
    assert (log["certificate"]["recall"], log["certificate"]["level"], log["certificate"]["rounds"]) == (1, 1, 1)
    assert "2,400 pairs, no fewer than there are: all are scored" in said[1]


def test_a_recall_that_no_cheap_sample_can_show_is_had_by_scoring_all(made, tmp_path, monkeypatch):
    """Few pairs belong, so that a sample would have to be larger than all pairs."""
    own, weights = made
    monkeypatch.setitem(cascade.SAMPLE, "cpu", 100)
    task = task_of(own, threshold=share(weights, 0.02))
    results, log, said = done(own, task, tmp_path)
    assert as_dict(results.entries()).keys() == belonging(task, weights).keys()
    assert (log["method"], log["certificate"]["recall"]) == ("exhaustive", 1)
    assert any("all are scored" in line for line in said)


def test_all_pairs_go_on_being_scored_after_a_stop(made, tmp_path, monkeypatch):
    own, weights = made
    monkeypatch.setitem(cascade.SAMPLE, "cpu", 100)
    task, results = task_of(own, threshold=share(weights, 0.02)), Results(tmp_path, "mine")
    monkeypatch.setattr(Clock, "over", property(lambda clock: len(results.done()) > 4))
    assert not run(task, own, results, How(block=200), QUIET)
    assert 4 < len(results.done()) < len(QUERIES)
    results.spend(1000.0)
    monkeypatch.undo()
    monkeypatch.setattr(cascade, "train_student", None)
    results, log, _ = done(own, task, tmp_path, How(block=200))
    assert as_dict(results.entries()).keys() == belonging(task, weights).keys()
    assert log["certificate"]["recall"] == 1
    assert 1000 < log["seconds"] < 1100


def test_the_rest_is_scored_where_that_is_cheaper_than_a_sample(made, tmp_path, monkeypatch):
    own, weights = made
    monkeypatch.setitem(cascade.SAMPLE, "cpu", 300)
    asked = []
    monkeypatch.setattr(cascade, "needed", lambda *given: asked.append(1) or (10 if len(asked) == 1 else 2000))
    task = task_of(own, recall=0.5, threshold=share(weights, 0.2))
    results, log, said = done(own, task, tmp_path)
    assert as_dict(results.entries()).keys() == belonging(task, weights).keys()
    assert (log["method"], log["proposed"], log["certificate"]["recall"]) == ("cascade", task.pairs, 1)
    assert log["certificate"]["rounds"] == len(log["cuts"]) == 2
    assert any("2,000 pairs would be needed" in line for line in said)
    assert results.whole(len(QUERIES), len(DOCS), rounds=2).queries.size == len(belonging(task, weights))


@pytest.mark.parametrize("stopped", [False, True])
def test_a_student_that_proposes_all_leaves_nothing_to_certify(made, tmp_path, monkeypatch, stopped):
    own, weights = made
    monkeypatch.setattr(cascade, "choose_cut", lambda *given: -1000.0)
    monkeypatch.setattr(cascade, "certify", None)
    task = task_of(own, sample=200, threshold=share(weights, 0.2))
    if stopped:
        results = Results(tmp_path, "mine")
        with monkeypatch.context() as some:
            some.setattr(Clock, "over", property(lambda clock: len(results.done()) > 4))
            assert not run(task, own, results, How(block=200), QUIET)
        assert 4 < len(results.done()) < len(QUERIES)
    results, log, _ = done(own, task, tmp_path)
    assert as_dict(results.entries()).keys() == belonging(task, weights).keys()
    assert (log["certificate"]["recall"], log["certificate"]["level"]) == (1, 1)


# samples


def test_a_sample_grows_with_what_the_recall_takes(made, tmp_path, monkeypatch):
    own, weights = made
    monkeypatch.setitem(cascade.SAMPLE, "cpu", 60)
    task = task_of(own, recall=0.5, threshold=share(weights, 0.2))
    results, log, said = done(own, task, tmp_path)
    found, whole = as_dict(results.entries()), belonging(task, weights)
    proof = log["certificate"]
    assert 100 < proof["drawn"] < task.pairs / 2
    assert 0.5 <= proof["recall"] <= len(found) / len(whole)
    assert any(line.startswith("samples of ") for line in said)


def test_a_sample_that_cannot_show_the_recall_leaves_the_cut_alone(made, tmp_path):
    own, weights = made
    task = task_of(own, recall=0.99, sample=100, threshold=share(weights, 0.2))
    _, log, said = done(own, task, tmp_path)
    proof = log["certificate"]
    assert len(log["cuts"]) == proof["rounds"] == 1
    assert proof["recall"] < 0.99 == proof["asked"]
    assert log["proposed"] < task.pairs
    note = next(line for line in said if line.startswith("note: "))
    assert f"{proof['recall']:.4f}, is below --recall 0.99; leave out --cascade" in note


def test_the_note_names_a_sample_that_is_large_enough(made, tmp_path):
    own, weights = made
    task = task_of(own, recall=0.6, sample=20, threshold=share(weights, 0.2))
    _, log, said = done(own, task, tmp_path / "first")
    assert log["certificate"]["recall"] < 0.6
    note = next(line for line in said if line.startswith("note: "))
    sample = int(note.split("take --sample ")[1])
    assert 100 < sample < task.pairs / 4
    _, log, said = done(
        own, task_of(own, recall=0.6, sample=sample, threshold=share(weights, 0.2)), tmp_path / "next"
    )
    assert log["certificate"]["recall"] >= 0.6
    assert not any(line.startswith("note: ") for line in said)


def test_rounds_share_what_may_be_wrong_and_a_cut_that_missed_too_much_is_lowered(made, tmp_path, monkeypatch):
    own, weights = made
    errors, real = [], cascade.certify
    monkeypatch.setattr(cascade, "certify", lambda *given: errors.append(given[5]) or real(*given))
    cuts = iter([50.0, 40.0, -1.0])
    monkeypatch.setattr(cascade, "choose_cut", lambda *given: next(cuts))
    task = task_of(own, recall=0.5, sample=500, threshold=share(weights, 0.2))
    results, log, _ = done(own, task, tmp_path)
    assert log["cuts"] == [50.0, 40.0, -1.0]
    assert errors == pytest.approx([0.05 / 2, 0.05 / 4, 0.05 / 8])
    assert as_dict(results.entries()).keys() <= belonging(task, weights).keys()


class Grid:
    """Weights of rank 8 in place of a network, and a student that sees four of them through noise.

    The query terms are the first of the document terms.
    """

    precision, device, way, tokens = "fp32", "cpu", "planted", 0
    network = SimpleNamespace(pieces=SimpleNamespace(special={"mask": 0}))

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        sides = [rng.standard_normal((size, 8)) for size in (30, 400)]
        self.weights = 1 / (1 + np.exp(-sides[0] @ sides[1].T))
        seen = [torch.from_numpy(side[:, :4] + rng.standard_normal(4) / 4).float() for side in sides]
        self.student = students.Student(*seen)
        alike = [distinct([np.array([1, 1 + i], np.int32) for i in range(len(side))]) for side in sides]
        threshold = share(self.weights, rng.choice([0.02, 0.1, 0.2]))
        self.task = Task(*alike, Settings(threshold, method="cascade", recall=0.8, strata=2, seed=seed))

    def pairs(self, queries, docs):
        return torch.from_numpy(self.weights[queries, docs].astype(np.float32))

    def grids(self, queries, told):
        docs = np.arange(self.weights.shape[1], dtype=np.int32)
        yield scorers.Grid(queries, docs, torch.from_numpy(self.weights[queries].astype(np.float32)))


def test_the_last_bound_holds_as_often_as_it_says_however_many_rounds_it_took(tmp_path, monkeypatch):
    """Samples that grow, cuts that are lowered: at most 5% of the last certificates may be wrong, give or take."""
    monkeypatch.setitem(cascade.SAMPLE, "cpu", 30)
    monkeypatch.setattr("whyrank.core.files._flush", QUIET)
    fails, rounds, shown = 0, set(), []
    for seed in range(120):
        grid, results = Grid(seed), Results(tmp_path / str(seed), "mine")
        monkeypatch.setattr(cascade, "_begun", lambda run, own=grid.student: (own, []))
        assert cascade.run_cascade(grid.task, grid, results, How(), QUIET)
        proof, found = log_of(results)["certificate"], results.entries()
        belongs = (grid.weights.astype(np.float32) >= grid.task.settings.threshold) & ~np.eye(30, 400, dtype=bool)
        fails += (found.queries != found.docs).sum() / belongs.sum() < proof["recall"]
        rounds.add(proof["rounds"])
        shown.append(proof["recall"])
    assert fails <= stats.binom.ppf(0.999, 120, 0.05)
    assert len(rounds) > 1
    assert np.mean([0.8 <= recall < 1 for recall in shown]) > 0.3


# stops


def test_a_stopped_cascade_goes_on_with_its_student_and_adds_up_its_seconds(made, tmp_path, monkeypatch):
    own, weights = made
    task = task_of(own, recall=0.8, sample=500, threshold=share(weights, 0.2))
    whole, _, _ = done(own, task, tmp_path / "whole")
    other, trained, calls = Results(tmp_path / "other", "mine"), [], []
    real, real_training = cascade._proposals, cascade.train_student
    monkeypatch.setattr(cascade, "train_student", lambda *given: trained.append(1) or real_training(*given))

    def interrupted(*given):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(cascade, "_proposals", interrupted)
    monkeypatch.setattr(cascade, "_queries_at_once", lambda *given: 2)
    with pytest.raises(KeyboardInterrupt):
        run(task, own, other, How(), QUIET)
    assert other.done() == {0, 1}
    assert other.seconds > 0
    other.spend(1000.0)
    _, log, _ = done(own, task, tmp_path / "other")
    assert len(trained) == 1
    assert 1000 < log["seconds"] < 1100
    assert log["scored"] == log["proposed"] == log_of(whole)["proposed"]
    assert log["pairs_per_second"] == round(log["scored"] / log["seconds"])
    assert as_dict(other.entries()).keys() == as_dict(whole.entries()).keys()


def test_a_cascade_of_another_network_begins_anew(made, tmp_path, monkeypatch):
    """One that was stopped before its first block has left a student, its cuts and its seconds."""
    own, weights = made
    task = task_of(own, recall=0.8, sample=500, threshold=share(weights, 0.2))
    with monkeypatch.context() as some:
        some.setattr(Clock, "over", property(lambda clock: True))
        assert not run(task, own, Results(tmp_path, "another"), How(), QUIET)
    assert {file.name for file in tmp_path.iterdir()} == {"cascade.json", "spent.json", "student.npz"}
    Results(tmp_path, "another").spend(1000.0)
    trained, real = [], cascade.train_student
    monkeypatch.setattr(cascade, "train_student", lambda *given: trained.append(1) or real(*given))
    _, log, _ = done(own, task, tmp_path)
    assert len(trained) == 1
    assert log["seconds"] < 900


def test_seconds_of_an_exhaustive_run_add_up_too(made, tmp_path, monkeypatch):
    own, weights = made
    task, results = task_of(own, method="exhaustive", threshold=share(weights, 0.2)), Results(tmp_path, "mine")
    monkeypatch.setattr(Clock, "over", property(lambda clock: len(results.done()) > 4))
    assert not run(task, own, results, How(block=200), QUIET)
    results.spend(1000.0)
    monkeypatch.undo()
    _, log, _ = done(own, task, tmp_path)
    assert (log["pairs"], log["scored"]) == (task.pairs, task.pairs)
    assert 1000 < log["seconds"] < 1100
    assert log["pairs_per_second"] == round(task.pairs / log["seconds"])


@pytest.mark.parametrize("step", ["_pilot", "_certified"])
def test_time_that_is_up_ends_before_a_sample_that_would_not_fit(made, tmp_path, monkeypatch, step):
    own, weights = made
    task, results = task_of(own, recall=0.8, sample=500, threshold=share(weights, 0.2)), Results(tmp_path, "mine")
    enough = (lambda: len(results.done()) == len(QUERIES)) if step == "_certified" else (lambda: True)
    monkeypatch.setattr(Clock, "over", property(lambda clock: enough()))
    monkeypatch.setattr(cascade, "_drawn" if step == "_pilot" else step, None)
    said = []
    assert not run(task, own, results, How(seconds=5.0), said.append)
    assert said[-1].startswith("time is up after ")
    monkeypatch.undo()
    monkeypatch.setattr(cascade, "train_student", None)
    _, log, _ = done(own, task, tmp_path)
    assert log["certificate"]["recall"] >= 0.8


def test_progress_counts_what_is_scored(made, tmp_path, monkeypatch):
    own, weights = made
    seen, real = [], Clock.step
    monkeypatch.setattr(
        Clock,
        "step",
        lambda clock, pairs: real(clock, pairs) or seen.append((clock.progress.done, clock.progress.total)),
    )
    monkeypatch.setattr(cascade, "_queries_at_once", lambda *given: 5)
    task = task_of(own, recall=0.8, sample=500, threshold=share(weights, 0.2))
    _, log, _ = done(own, task, tmp_path)
    assert len(log["cuts"]) == 1
    assert len(seen) == len(QUERIES) // 5
    assert seen[-1] == (log["proposed"], log["proposed"])
    assert all(count <= total <= task.pairs for count, total in seen)


class Scorer:
    """Weights that are a product, and how many were asked for."""

    precision = "fp32"

    def __init__(self):
        self.asked = []

    def pairs(self, queries, docs):
        self.asked.append(len(queries))
        return torch.from_numpy(queries * 0.5 + docs)


def test_a_large_sample_is_scored_in_parts_that_a_stop_keeps(tmp_path, monkeypatch):
    queries, docs = np.arange(25), np.arange(25) * 3
    results, first = Results(tmp_path, "mine"), Scorer()
    monkeypatch.setattr(Clock, "over", property(lambda clock: len(first.asked) == 2))
    drawn = Drawn(first, results, Clock("", 0, None, QUIET), 10)
    with pytest.raises(TimeIsUp):
        drawn(queries, docs)
    assert first.asked == [10, 10]
    monkeypatch.undo()
    for identity, expected in (("mine", [5]), ("mine", []), ("another", [10, 10, 5])):
        again = Scorer()
        drawn = Drawn(again, Results(tmp_path, identity), Clock("", 0, None, QUIET), 10)
        np.testing.assert_array_equal(drawn(queries, docs), (queries * 0.5 + docs).astype(np.float32))
        assert again.asked == expected
    drawn.forget()
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(Clock, "over", property(lambda clock: True))
    for left in (2, 1):
        with pytest.raises(TimeIsUp):
            Drawn(again, results, Clock("", 0, None, QUIET), 10)(queries, docs)
        assert sum(again.asked) == 25 + 10 * (3 - left)
    assert len(Drawn(again, results, Clock("", 0, None, QUIET), 10)(queries, docs)) == 25
    drawn.forget()
    assert len(Drawn(again, results, Clock("", 0, None, QUIET), 25)(queries, docs)) == 25
    assert not list(tmp_path.iterdir())
