from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from counting_rankers import grid, stored, true_score
from hypothesis import given
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.scoring import Engine, Failure, ScoreStore
from whyrank.scoring.engine import identity_of


@dataclass(frozen=True)
class Raising:
    """Raises on the documents in `bad`, whatever company they are in, and counts its calls."""

    bad: frozenset = frozenset()
    error: BaseException = field(default_factory=lambda: ValueError("too long"), compare=False, repr=False)
    calls: list = field(default_factory=list, compare=False, repr=False)
    name: str = "raising"

    def score(self, queries, docs):
        self.calls.append(list(docs))
        if self.bad & set(docs):
            raise self.error
        return np.array([true_score(q, d) for q, d in zip(queries, docs, strict=True)])


@dataclass(frozen=True)
class Returning:
    value: object = None
    name: str = "returning"

    def score(self, queries, docs):
        return self.value


@given(
    st.one_of(st.sets(st.integers(0, 39)), st.sets(st.integers(0, 39)).map(lambda s: set(range(40)) - s)),
    st.integers(1, 50),
)
def test_all_pairs_but_those_that_raise_get_their_scores(bad, batch_size):
    texts = [f"d{i}" for i in range(40)]
    ranker = Raising(frozenset(texts[i] for i in bad) | {"never"})
    rows = grid(1, -1, 40)
    order = [d for batch in _batches(ranker, rows, batch_size) for d in batch]
    if set(order[:20]) <= ranker.bad:
        with pytest.raises(WhyrankError, match="first 20"):
            Engine(batch_size=batch_size).score(ranker, *rows)
        return
    scores = Engine(batch_size=batch_size).score(ranker, *rows)
    expected = [np.nan if d in ranker.bad else true_score("q0", d) for d in rows[1]]
    assert np.array_equal(scores.values, expected, equal_nan=True)
    assert sorted(scores.failures) == sorted(Failure("q0", d, "ValueError: too long") for d in ranker.bad - {"never"})
    assert scores.scored == 41


def _batches(ranker, rows, batch_size):
    """The batches that the same pairs are cut into when nothing fails."""
    calm = Raising()
    Engine(batch_size=batch_size).score(calm, *rows)
    return calm.calls


def test_one_bad_pair_costs_two_calls_per_halving():
    ranker = Raising(frozenset({"d300"}))
    scores = Engine(batch_size=1024).score(ranker, *grid(1, 0, 1024))
    assert len(ranker.calls) == 1 + 2 * 10
    assert np.isnan(scores.values).sum() == 1


def test_failures_are_recorded_but_tried_again_in_the_next_run(tmp_path):
    rows = grid(2, 0, 30)
    with ScoreStore(tmp_path / "s.sqlite") as store:
        first = Engine(store).score(ranker := Raising(frozenset({"d3"})), *rows)
        wanted = [Failure("q0", "d3", "ValueError: too long"), Failure("q1", "d3", "ValueError: too long")]
        assert sorted(first.failures) == wanted
        assert stored(store, identity_of(ranker), "q0", ["d3", "d4"]) == {"d4": true_score("q0", "d4")}
        second = Engine(store).score(Raising(frozenset({"d3"})), *rows)
        assert (second.scored, second.reused) == (2, 58)
        assert sorted(second.failures) == wanted
        assert np.array_equal(first.values, second.values, equal_nan=True)


@pytest.mark.parametrize("batch_size", [1, 7, 20, 32, 100_000])
def test_a_ranker_that_never_works_is_asked_for_twenty_single_pairs(batch_size):
    ranker = Raising(frozenset(f"d{i}" for i in range(5000)), OSError("model.bin is missing\nlook there"))
    with pytest.raises(WhyrankError, match=r"ranker 'raising' failed.*first 20.*OSError: model.bin is missing look"):
        Engine(batch_size=batch_size).score(ranker, *grid(1, 0, 5000))
    assert sum(len(call) == 1 for call in ranker.calls) == 20


def test_a_user_error_of_the_ranker_is_passed_on_at_once():
    error = WhyrankError("weights.bin: no such file")
    ranker = Raising(frozenset({"d5"}), error)
    with pytest.raises(WhyrankError) as caught:
        Engine(batch_size=16).score(ranker, *grid(1, 0, 40))
    assert caught.value is error
    assert len([call for call in ranker.calls if "d5" in call]) == 1


def test_a_ranker_that_exits_fails_like_any_other():
    scores = Engine(batch_size=4).score(Raising(frozenset({"d5"}), SystemExit(3)), *grid(1, 0, 10))
    assert [failure.reason for failure in scores.failures] == ["SystemExit: 3"]
    assert np.isnan(scores.values).sum() == 1


def test_what_a_ranker_prints_goes_to_standard_error(capsys):
    class Chatty:
        name = "chatty"

        def score(self, queries, docs):
            print("hello")
            queries.clear()
            return [1.0] * len(docs)

    assert Engine().score(Chatty(), *grid(1, 0, 3)).values.tolist() == [1.0] * 3
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


def test_being_stopped_is_no_failure_of_a_pair(store):
    ranker = Raising(frozenset({"d5"}), KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        Engine(store, batch_size=1).score(ranker, *grid(1, 0, 10))
    kept = stored(store, identity_of(ranker), "q0", [f"d{i}" for i in range(10)])
    assert len(kept) == len(ranker.calls) - 1
    assert kept == {d: true_score("q0", d) for d in kept}


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (np.zeros(2), r"shape \(2,\) for 3 pairs"),
        (np.zeros((3, 2)), r"shape \(3, 2\) for 3 pairs"),
        (np.zeros((1, 3)), r"shape \(1, 3\) for 3 pairs"),
        (np.float64(1), r"shape \(\) for 3 pairs"),
        (["a", "b", "c"], "type <U1"),
        ([None, None, None], "type object"),
        (None, "nothing"),
        (np.zeros(3, complex), "type complex128"),
        ([[1], [2, 3], [4]], "no array"),
    ],
)
def test_answers_that_are_no_scores_are_the_rankers_fault(value, what):
    with pytest.raises(WhyrankError, match=f"ranker 'returning' returned.*{what}"):
        Engine().score(Returning(value), *grid(1, 0, 3))


@pytest.mark.parametrize("kind", ["<f2", "<f4", ">f8", "<i8", "u1", "?", list])
@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_any_real_numbers_are_scores(kind, shape):
    ones = np.array([1, 0, 1]).reshape(shape)
    scores = Engine().score(Returning(ones.tolist() if kind is list else ones.astype(kind)), *grid(1, 0, 3))
    assert scores.values.dtype == np.float64
    assert sorted(scores.values.tolist()) == [0.0, 1.0, 1.0]


def test_a_run_that_goes_on_is_not_stopped_by_pairs_that_failed_before(tmp_path):
    """All that is left for the second run are pairs that fail."""
    bad, rows = frozenset(f"d{i}" for i in range(25)), grid(1, 0, 60)
    with ScoreStore(tmp_path / "s.sqlite") as store:
        store_first = Engine(store, batch_size=60).score(Raising(bad), *rows)
        again = Engine(store, batch_size=7, checked=0).score(ranker := Raising(bad), *rows)
        assert np.array_equal(store_first.values, again.values, equal_nan=True)
        assert (len(again.failures), again.scored, again.reused) == (25, 25, 35)
        assert {d for call in ranker.calls for d in call} == bad


def test_new_pairs_of_a_ranker_that_broke_are_tried_twenty_times(tmp_path):
    """It worked yesterday; the pairs that failed then say nothing, and new ones come first."""
    with ScoreStore(tmp_path / "s.sqlite") as store:
        Engine(store).score(Raising(frozenset(f"d{i}" for i in range(25))), *grid(1, 0, 60))
        broken = Raising(frozenset(f"d{i}" for i in range(25)))
        object.__setattr__(broken, "score", lambda queries, docs: _broken(broken, docs))
        with pytest.raises(WhyrankError, match="failed on each of the first 20 pairs: OSError: gone"):
            Engine(store, batch_size=8, checked=0).score(broken, *grid(1, 0, 200))
    assert sum(len(call) == 1 for call in broken.calls) == 20
    assert {int(d[1:]) for call in broken.calls for d in call} <= set(range(60, 200))


def _broken(ranker, docs):
    ranker.calls.append(list(docs))
    raise OSError("gone")


def test_a_ranker_that_worked_in_another_call_may_fail_on_all_pairs_of_this_one():
    bad = frozenset(f"d{i}" for i in range(100, 150))
    engine = Engine(batch_size=8)
    with pytest.raises(WhyrankError, match="first 20"):
        engine.score(Raising(bad), *grid(1, 100, 150))
    assert np.isfinite(engine.score(Raising(bad), *grid(1, 0, 30)).values).all()
    assert len(engine.score(Raising(bad), *grid(1, 100, 150)).failures) == 50
