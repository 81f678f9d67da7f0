"""Drawing contrasts in rounds: within the budget, the same again with the same seed, and with intervals that hold."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whyrank
from whyrank.core import ALPHA, Clock, WhyrankError, clocked, mean_interval, timed
from whyrank.data import Collection, open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine
from whyrank.studies import Budget, Contrasts, Pair, Plan, planning
from whyrank.studies.price import new_pairs
from whyrank.studies.probes import probes
from whyrank.studies.sampling import LOOKS, PACE, Frame, Rounds, pairs_of

STUDIES = ["edited/prepend-query", "edited/shuffle-words", "matched/length|tf", "axiom/TFC1", "axiom/LNC2"]


@pytest.fixture(scope="module")
def sample():
    return open_collection("sample")


@pytest.mark.parametrize(
    ("spec", "width", "expected"),
    [("20000pairs", None, Budget(20000)), ("1 pair", 0.1, Budget(1, None, 0.1)), ("5m", None, Budget(None, 300.0)),
     ("1.5h", None, Budget(None, 5400.0)), (None, 0.2, Budget(width=0.2)), (None, None, None)],
)  # fmt: skip
def test_budgets_that_people_write(spec, width, expected):
    assert Budget.of(spec, width) == expected


@pytest.mark.parametrize(
    ("spec", "width"),
    [("5", None), ("0m", None), ("1.5pairs", None), ("-5m", None), ("", None), (None, 0), (None, 2)],
)
def test_budgets_that_say_nothing(spec, width):
    with pytest.raises(WhyrankError, match=r"give a (time|number)"):
        Budget.of(spec, width)


def contrasts_of(docs_by_query, size=2):
    """All ordered pairs of the documents of each query, with ids."""
    pairs = [
        Pair(query, (f"text {a}", f"text {b}"), {"query_id": query, "doc_ids": (a, b)})
        for query, docs in docs_by_query.items()
        for a in docs
        for b in docs
        if a != b
    ]
    return Contrasts.from_pairs(pairs)


@given(st.dictionaries(st.sampled_from("pqr"), st.sets(st.sampled_from("abcdef"), min_size=2), min_size=1),
       st.integers(0, 3), st.randoms())  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_the_order_of_drawing_is_that_of_texts_and_not_of_rows(docs, seed, random):
    contrasts = contrasts_of(docs)
    rows = np.array(random.sample(range(len(contrasts)), len(contrasts)))
    moved, ids = contrasts.take(rows), contrasts.ids
    order = contrasts.drawing_order(seed, len(contrasts))
    assert sorted(order) == list(range(len(contrasts)))
    assert [ids[i] for i in order] == [moved.ids[i] for i in moved.drawing_order(seed, len(moved))]
    for count in range(len(order)):  # the first ones do not depend on how many are drawn
        assert contrasts.drawing_order(seed, count).tolist() == order[:count].tolist()
    drawn, seen = set(), []
    for row in order:  # a contrast comes as soon as its texts are there
        query, *both = ids[row]
        drawn |= {(query, doc) for doc in both}
        seen.append({(q, *pair) for q, *pair in ids if {(q, pair[0]), (q, pair[1])} <= drawn})
    assert all(len(some) <= i + 1 + max(map(len, docs.values())) ** 2 for i, some in enumerate(seen))


def test_a_limit_draws_texts_before_they_are_edited(sample, monkeypatch):
    edited = []
    study = probes.create("edited/prepend-query")
    monkeypatch.setattr(type(study), "_others", lambda *_: edited.append(1) or [])
    found = whyrank.audit("bm25", sample, ["edited/prepend-query", "edited/shuffle-words"], limit=30)
    assert [(f.n, f.drawn, f.available) for f in found.findings] == [(30, 30, 500)] * 2
    first, second = (found[name].contrasts() for name in ("edited/prepend-query", "edited/shuffle-words"))
    assert first.ids == second.ids
    every = whyrank.audit("bm25", sample, "edited/prepend-query")["edited/prepend-query"].contrasts()
    assert set(first.ids) <= set(every.ids)


def test_studies_draw_the_same_texts(sample):
    texts = {}
    for name in STUDIES[:4]:
        frame = Frame.of(whyrank_study(name), sample, seed=1)
        texts[name] = frame.texts[:40]
    assert set(texts["edited/prepend-query"]) == set(texts["edited/shuffle-words"])
    every = {*Frame.of(whyrank_study("edited/prepend-query"), sample, 1).texts.tolist()}
    assert set(texts["matched/length|tf"].tolist()) | set(texts["axiom/TFC1"].tolist()) <= every


def whyrank_study(name):
    from whyrank.studies import all_studies

    return all_studies().make([name], {"tolerance": "10%"})[name]


@given(
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    pairs=st.integers(20, 2000),
    widths=st.lists(st.floats(0.01, 2), min_size=24, max_size=24),
    width=st.none() | st.floats(0.05, 1),
)
@settings(max_examples=60, deadline=None)
def test_rounds_keep_to_the_budget(sizes, pairs, widths, width):
    frames = {
        str(i): Frame(size, size, np.arange(size, dtype=np.uint64), np.arange(size), i % 2, lambda count: None)
        for i, size in enumerate(sizes)
    }
    rounds, spent, before, given_widths = (
        Rounds(frames, Budget(pairs, width=width)),
        dict.fromkeys(frames, 0.0),
        {},
        iter(widths),
    )
    try:
        for number, looks in enumerate(rounds):
            assert pairs_of(frames, rounds.counts) <= pairs * PACE[number]
            for name, look in looks.items():
                assert before.get(name, 0) < look.units <= frames[name].size
                spent[name] += look.share
                rounds.saw(name, next(given_widths, 0.5))
            before = dict(rounds.counts)
    except WhyrankError as error:
        assert "too small" in str(error)  # noqa: PT017
        return
    assert number == LOOKS - 1
    assert all(0 < share <= 1 + 1e-12 for share in spent.values())


def toy_readings(random, queries, per_query, share):
    """Effects +1 or -1 of contrasts, each query with a share of its own."""
    shares = random.beta(2 * share, 2 * (1 - share), queries)
    clusters = np.repeat(np.arange(queries), per_query)
    return np.where(random.random(len(clusters)) < shares[clusters], 1.0, -1.0), clusters


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_intervals_hold_although_narrow_ones_stop(share):
    """The rule stops where an interval is narrow; the one at which it stopped must still hold the true mean."""
    held, looked, trials = 0, 0, 250
    for trial in range(trials):
        random = np.random.default_rng(trial)
        effects, clusters = toy_readings(random, 30, 40, share)
        order = random.permutation(len(effects))
        frame = Frame(len(order), len(order), np.arange(len(order), dtype=np.uint64), np.arange(len(order)), 0, len)
        rounds = Rounds({"study": frame}, Budget(width=0.5 if share == 0.5 else 0.3))
        for looks in rounds:
            for name, look in looks.items():
                rows = order[: look.units]
                low, high = mean_interval(effects[rows], clusters[rows], 0.0, (-1, 1), ALPHA * look.share)
                rounds.saw(name, high - low)
                looked += 1
        held += low <= 2 * share - 1 <= high
    assert looked > 1.5 * trials  # or the rule is not tried at all
    assert held / trials >= 0.93


def test_a_budget_for_everything_is_the_whole_audit(sample):
    whole = whyrank.audit("bm25", sample, STUDIES, tolerance="10%")
    drawn = whyrank.audit("bm25", sample, STUDIES, tolerance="10%", budget="1000000pairs")
    for one, other in zip(whole.findings, drawn.findings, strict=True):
        assert (one.n, one.score, one.ci_low, one.p_value, one.fingerprint, one.control) == (
            other.n, other.score, other.ci_low, other.p_value, other.fingerprint, other.control)  # fmt: skip
        assert other.share == 1
        assert other.drawn == other.available


def test_a_drawn_audit_repeats_and_says_what_it_drew(sample):
    first, again, other = (
        whyrank.audit("bm25", sample, STUDIES, tolerance="10%", budget="1500pairs", seed=seed) for seed in (0, 0, 1)
    )
    prints = [[f.fingerprint for f in found.findings] for found in (first, again, other)]
    assert prints[0] == prints[1]
    assert prints[0] != prints[2]
    assert first.settings["budget_pairs"] == 1500
    pairs = set().union(*(first[name].contrasts().text_pairs for name in STUDIES))
    assert len(pairs) <= 1500
    assert any(f"{len(pairs):,} distinct pairs" in note for note in first.notes)
    for finding in first.findings:
        assert 0 < finding.drawn <= finding.available
        assert finding.share == 1 or finding.drawn < finding.available or finding.share < 1
        reading = first[finding.study].reading()
        interval = reading.interval(reading.finite, False, ALPHA * finding.share)
        assert (finding.ci_low, finding.ci_high) == pytest.approx(interval)


def test_a_width_stops_studies_that_are_narrow_enough(sample):
    found = whyrank.audit("bm25", sample, STUDIES, tolerance="10%", width=0.4)
    wide = [note for note in found.notes if "wider than 0.4" in note]
    for finding in found.findings:
        narrow = finding.ci_high - finding.ci_low <= 0.4
        assert narrow != any(finding.study in note for note in wide)
        assert narrow or finding.drawn == finding.available
    assert any(finding.drawn < finding.available for finding in found.findings)


def test_a_time_budget_becomes_pairs(sample, monkeypatch):
    monkeypatch.setattr(planning, "seconds_per_pair", lambda plan: {"bm25": 0.05})
    found = whyrank.audit("bm25", sample, STUDIES, tolerance="10%", budget="100s")
    pairs = found.settings["budget_pairs"]
    assert 1000 < pairs <= 0.75 * 100 / 0.05
    again = whyrank.audit("bm25", sample, STUDIES, tolerance="10%", budget=f"{pairs}pairs")
    assert [f.fingerprint for f in found.findings] == [f.fingerprint for f in again.findings]


def test_a_budget_that_is_too_small_says_the_least(sample):
    with pytest.raises(WhyrankError, match=r"a budget of 3 pairs is too small; give \d+ or more") as error:
        whyrank.audit("bm25", sample, STUDIES, tolerance="10%", budget="3pairs")
    least = re.search(r"give (\d+)", str(error.value))[1]
    assert all(
        finding.n for finding in whyrank.audit("bm25", sample, STUDIES, tolerance="10%", budget=f"{least}pairs")
    )


def test_each_pair_is_scored_once_in_a_run_although_nothing_is_stored(sample):
    seen = []

    def ranker(queries, docs):
        seen.extend(zip(queries, docs, strict=True))
        return [float(len(doc)) for doc in docs]

    for budget in (None, "3000pairs"):
        seen.clear()
        whyrank.audit(ranker, sample, STUDIES, tolerance="10%", delta=0, budget=budget)
        assert len(seen) == len(set(seen))


def test_the_price_counts_what_is_scored(sample):
    rankers = [open_ranker("bm25", Setting(sample))]
    studies = {name: whyrank_study(name) for name in STUDIES}
    plan = Plan(sample, studies, rankers, Engine())
    counted = new_pairs(plan)
    found = whyrank.audit("bm25", sample, STUDIES, tolerance="10%")
    pairs = [found[name].contrasts().text_pairs for name in STUDIES]
    assert counted["edited/prepend-query"] == len(pairs[0]) == 1000  # each text, and what was made of it
    assert len(set().union(*pairs)) <= sum(counted.values()) <= len(set().union(*pairs)) + 500


def test_queries_without_two_texts_have_no_interval_and_the_audit_says_so():
    docs = {f"d{i}": f"one word and {i} more" for i in range(9)}
    collection = Collection.of(docs, {"q": "word"}, {"q": dict.fromkeys(docs, 1)})
    found = whyrank.audit("bm25", collection, "edited/prepend-query", delta=0, width=0.5)
    assert found.findings[0].n == 9
    assert any("two queries" in note for note in found.notes)


def test_a_clock_counts_each_second_once(monkeypatch):
    now = iter([0.0, 1.0, 3.0, 6.0, 10.0])
    monkeypatch.setattr("whyrank.core.timing.time.perf_counter", lambda: next(now))
    with clocked(Clock()) as clock, timed("building"), timed("annotating"):
        pass
    assert clock.seconds == {"building": 2.0 + 4.0, "annotating": 3.0}
    assert str(clock) == "building 6.0 s, annotating 3.0 s"
    assert math.isclose(sum(clock.seconds.values()), 9.0)
