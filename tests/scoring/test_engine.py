from __future__ import annotations

import sys
from dataclasses import dataclass, field
from threading import Event, Thread

import numpy as np
import pytest
from counting_rankers import grid, true_score
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.scoring import Engine, Failure, ScoreStore
from whyrank.scoring.engine import identity_of
from whyrank.scoring.pairs import unique_pairs


@dataclass(frozen=True)
class Spy:
    """Keeps the batches that it was given; `answers` maps documents to odd scores."""

    name: str = "spy"
    answers: dict = field(default_factory=dict, compare=False, repr=False)
    batches: list = field(default_factory=list, compare=False, repr=False)

    def score(self, queries, docs):
        self.batches.append(list(zip(queries, docs, strict=True)))
        return np.array([self.answers.get(d, true_score(q, d)) for q, d in self.batches[-1]])

    @property
    def pairs(self):
        return [pair for batch in self.batches for pair in batch]


def codes(*values):
    return np.array(values, np.int32)


def expected(queries, docs, query, doc):
    return [true_score(queries[q], docs[d]) for q, d in zip(query, doc, strict=True)]


TEXTS = st.lists(st.text("ab\0\ud800 ", max_size=3), min_size=1, max_size=5)


@st.composite
def requests(draw):
    queries, docs = draw(TEXTS), draw(TEXTS)
    rows = draw(st.lists(st.tuples(st.integers(0, len(queries) - 1), st.integers(0, len(docs) - 1)), max_size=25))
    query, doc = np.array(rows, np.int32).reshape(-1, 2).T
    return queries, docs, query, doc


@given(requests(), st.integers(1, 9))
def test_each_distinct_pair_is_scored_once_in_batches_of_one_order(rows, batch_size):
    spy = Spy()
    scores = Engine(batch_size=batch_size).score(spy, *rows)
    assert scores.values.tolist() == expected(*rows)
    assert scores.values.dtype == np.float64
    distinct = {(rows[0][q], rows[1][d]) for q, d in zip(rows[2], rows[3], strict=True)}
    assert len(spy.pairs) == len(set(spy.pairs)) == scores.scored == len(distinct)
    assert set(spy.pairs) == distinct
    assert (scores.reused, scores.failures) == (0, [])
    assert all(len(batch) == batch_size for batch in spy.batches[:-1])
    one = Spy()
    Engine(batch_size=1000).score(one, *rows)
    assert one.pairs == spy.pairs


@given(requests(), st.permutations(range(5)), st.randoms(use_true_random=False), st.integers(1, 4))
def test_scores_depend_neither_on_order_nor_on_duplicates_even_for_a_ranker_that_sees_its_batch(
    rows, names, random, batch_size
):
    @dataclass(frozen=True)
    class Contextual:
        name: str = "contextual"

        def score(self, queries, docs):
            return np.arange(len(docs)) + len(docs[0]) / 10 + len(queries[-1]) / 100

    queries, docs, query, doc = rows
    order = [i for i in names if i < len(docs)]
    shuffled = [docs[i] for i in order]
    moved = np.argsort(order)[doc].astype(np.int32)
    again = [*range(len(query)), *(random.randrange(len(query)) for _ in range(7) if len(query))]
    random.shuffle(again)
    engine = Engine(batch_size=batch_size)
    first = engine.score(Contextual(), queries, docs, query, doc).values
    second = engine.score(Contextual(), queries, shuffled, query[again], moved[again]).values
    assert second.tolist() == first[again].tolist()


@given(requests(), requests(), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_with_a_store_the_scores_are_those_without(tmp_path_factory, rows, more, batch_size):
    distinct = [{(r[0][q], r[1][d]) for q, d in zip(r[2], r[3], strict=True)} for r in (rows, more)]
    with ScoreStore(tmp_path_factory.mktemp("store") / "s.sqlite") as store:
        engine = Engine(store, batch_size=batch_size, checked=0)
        first, second = engine.score(Spy(), *rows), engine.score(spy := Spy(), *more)
        third = engine.score(Spy(), *more)
    assert first.values.tolist() == expected(*rows)
    assert second.values.tolist() == third.values.tolist() == expected(*more)
    assert set(spy.pairs) == distinct[1] - distinct[0]
    assert (second.scored, second.reused) == (len(distinct[1] - distinct[0]), len(distinct[1] & distinct[0]))
    assert (third.scored, third.reused) == (0, len(distinct[1]))


class _Changing:
    """Answers another number at each call, so reuse shows."""

    name = "changing"

    def __init__(self):
        self.calls = 0

    def score(self, queries, docs):
        self.calls += 1
        return np.full(len(docs), self.calls)


class _NotCacheable(_Changing):
    cacheable = False

    def __repr__(self):
        return "NotCacheable()"


@pytest.mark.parametrize("ranker", [_NotCacheable(), _Changing()], ids=["cacheable is False", "repr has an address"])
def test_scores_without_a_lasting_identity_are_not_stored(store, ranker):
    for call in (1, 2):
        scores = Engine(store).score(ranker, ["q"], ["d"], codes(0, 0), codes(0, 0))
        assert scores.values.tolist() == [call, call]
        assert (scores.scored, scores.reused) == (1, 0)
    assert store._connection.execute("SELECT count(*) FROM rankers").fetchone() == (0,)


@pytest.mark.parametrize(
    ("own", "given_size", "sizes"),
    [(None, None, [32, 32, 6]), (50, None, [50, 20]), (50, 40, [40, 30]), (400_000, None, [70])],
)
def test_the_batch_size_is_the_engines_or_the_rankers_or_32(own, given_size, sizes):
    class Sized(Spy):
        batch_size = own

    spy = Sized()
    Engine(batch_size=given_size).score(spy, *grid(7, 0, 10))
    assert [len(b) for b in spy.batches] == sizes


@pytest.mark.parametrize("size", [0, -3, 2.5])
def test_a_batch_size_that_makes_no_sense_is_refused(size):
    with pytest.raises(WhyrankError, match=r"ranker 'spy'.*batch size must be 1 or more"):
        Engine(batch_size=size).score(Spy(), *grid(1, 0, 1))


def test_non_finite_scores_are_kept_stored_and_named(store):
    answers = {"d1": np.nan, "d2": np.inf, "d3": -np.inf}
    wanted = {Failure("q0", d, f"score is {v}") for d, v in answers.items()}
    for counts in ((5, 0), (0, 5)):
        scores = Engine(store, batch_size=2).score(Spy(answers=answers), *grid(1, 0, 5))
        assert (scores.scored, scores.reused) == counts
        assert np.array_equal(scores.values[1:4], [np.nan, np.inf, -np.inf], equal_nan=True)
        assert np.isfinite(scores.values[[0, 4]]).all()
        assert set(scores.failures) == wanted
        assert len(scores.failures) == 3
    assert {f.reason for f in wanted} == {"score is nan", "score is inf", "score is -inf"}


def test_every_batch_is_committed_before_the_next_is_scored(store):
    seen = []

    @dataclass(frozen=True)
    class Looking:
        name: str = "looking"

        def score(self, queries, docs):
            with ScoreStore(store.path) as other:
                seen.append(int(other.find(identity_of(self), unique_pairs(*asked)).known.sum()))
            return np.zeros(len(docs))

    asked = grid(1, 0, 20)
    Engine(store, batch_size=5).score(Looking(), *asked)
    assert seen == [0, 5, 10, 15]


@dataclass(frozen=True)
class Overlapping:
    """Says that it has begun, prints, and ends once another one has done something."""

    begun: Event
    end: Event
    name: str = "overlapping"

    def score(self, queries, docs):
        self.begun.set()
        assert self.end.wait(10)
        print("loading")
        return np.zeros(len(docs))


def test_threads_that_score_at_once_keep_prints_of_rankers_apart_from_results(capsys):
    out, (first, second, left) = sys.stdout, [Event() for _ in range(3)]

    def work(ranker):
        Engine().score(ranker, ["q"], ["d"], codes(0), codes(0))

    threads = [Thread(target=work, args=[Overlapping(*events)]) for events in ((first, second), (second, left))]
    threads[0].start()
    assert first.wait(10)
    threads[1].start()
    threads[0].join()
    left.set()
    threads[1].join()
    assert sys.stdout is out
    assert capsys.readouterr() == ("", "loading\nloading\n")
