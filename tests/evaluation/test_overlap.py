"""The overlap split against plain loops over words, and its means against ir-measures."""

from __future__ import annotations

import random
from dataclasses import asdict, replace

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.data import Collection, open_collection
from whyrank.evaluation import effectiveness_of_plan, evaluate, overlap_split
from whyrank.evaluation.overlap import GROUPS, Share, shares, split
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine
from whyrank.studies import Plan

WORDS = ["red", "blue", "green", "fox", "dog", "cat"]


def covered(query: str, doc: str) -> float:
    """Share of the different words of a query that a text has."""
    words = []
    for word in query.split():
        if word not in words:
            words.append(word)
    return sum(word in doc.split() for word in words) / len(words)


def generated(seed: int, queries: int = 20) -> Collection:
    """Random words; some judgements name documents that are not there, some queries have no relevant one."""
    drawn = random.Random(seed)

    def text():
        return " ".join(drawn.choices(WORDS, k=drawn.randint(1, 5)))

    docs = {f"d{i}": text() for i in range(30)}
    queries_ = {f"q{i}": text() for i in range(queries)}
    qrels = {
        q: {d: drawn.choice([0, 0, 1, 2]) for d in drawn.sample([*docs, "gone1", "gone2"], drawn.randint(1, 6))}
        for q in [*queries_, "unasked"]
    }
    run = {q: {d: drawn.random() for d in drawn.sample(list(docs), 12)} for q in queries_}
    return Collection.of(docs, queries_, qrels, runs={"bm25": run}, name="toy")


def relevant_docs(collection: Collection, query_id: str) -> list[str]:
    found = []
    for doc_id, grade in collection.qrels[query_id].items():
        if grade >= collection.grades.relevant and doc_id in collection.docs:
            found.append(doc_id)
    return found


class TestShares:
    @settings(max_examples=30)
    @given(st.integers(0, 1000))
    def test_mean_and_max(self, seed):
        collection = generated(seed)
        expected = {}
        for query_id, query in collection.queries.items():
            values = [covered(query, collection.docs[d]) for d in relevant_docs(collection, query_id)]
            if values:
                expected[query_id] = (sum(values) / len(values), max(values))
        for i, relevant in enumerate(("mean", "max")):
            found = {s.query_id: s.share for s in shares(collection, "whitespace", relevant)}
            assert found == {q: pytest.approx(values[i]) for q, values in expected.items()}

    @settings(max_examples=30)
    @given(st.integers(0, 1000), st.integers(0, 5))
    def test_a_random_relevant_document(self, seed, drawn):
        collection = generated(seed)
        found = shares(collection, "whitespace", seed=drawn)
        assert [s.query_id for s in found] == sorted(q for q in collection.queries if relevant_docs(collection, q))
        for query_id, share, (doc_id,) in found:
            assert doc_id in relevant_docs(collection, query_id)
            assert share == covered(collection.queries[query_id], collection.docs[doc_id])

    def test_the_draw_depends_on_seed_and_query_alone(self):
        collection = generated(3, 60)
        found = [shares(collection, "whitespace", seed=seed) for seed in (0, 0, 1)]
        assert found[0] == found[1] != found[2]
        mixed = {q: dict(reversed(docs.items())) for q, docs in reversed(collection.qrels.items())}
        assert shares(replace(collection, qrels=mixed), "whitespace") == found[0]
        fewer = {q: docs for q, docs in collection.qrels.items() if q > "q3"}
        assert shares(replace(collection, qrels=fewer), "whitespace") == [s for s in found[0] if s.query_id in fewer]


class TestSplit:
    @given(
        st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40),
        st.integers(1, 5),
        st.integers(0, 3),
    )
    def test_equal_groups_of_ascending_share(self, values, groups, seed):
        found = [Share(f"q{i}", value, ()) for i, value in enumerate(values)]
        if len(values) < groups:
            with pytest.raises(WhyrankError, match=f"only {len(values)} of the judged queries"):
                split(found, groups, seed)
            return
        parts = split(found, groups, seed)
        sizes = [len(part) for part in parts]
        assert len(parts) == groups
        assert max(sizes) - min(sizes) <= 1
        assert [s.share for part in parts for s in part] == sorted(values)
        assert sorted(s for part in parts for s in part) == sorted(found)
        assert split(found[::-1], groups, seed) == parts

    def test_ties_are_drawn_by_the_seed(self):
        found = [Share(f"q{i}", 0.5, ()) for i in range(30)]
        assert len({tuple(s.query_id for s in split(found, 3, seed)[0]) for seed in range(5)}) == 5
        for groups in (0, -1, 2.0, True):
            with pytest.raises(WhyrankError, match="groups must be a whole number"):
                split(found, groups)


def oracle(collection, run, candidates, measure, relevant):
    """Mean by kind of queries and group, from ir-measures and sorted lists."""
    parsed = ir_measures.parse_measure(measure)
    values = {m.query_id: m.value for m in ir_measures.iter_calc([parsed], collection.qrels, run)}
    parts = split(shares(collection, "whitespace", relevant))
    found = {}
    for number, part in enumerate(parts, 1):
        kept = [s.query_id for s in part if any(d in candidates.get(s.query_id, {}) for d in s.doc_ids)]
        for kind, queries in (("all", [s.query_id for s in part]), ("retrieved", kept)):
            found[kind, number] = (len(queries), sum(values[q] for q in queries) / len(queries) if queries else None)
    return found


class TestRows:
    @pytest.mark.parametrize("measure", ["nDCG@10", "RR@5", "AP(rel=2)@100", "P@3"])
    @pytest.mark.parametrize("relevant", ["random", "mean", "max"])
    def test_means_are_those_of_ir_measures(self, measure, relevant):
        collection = generated(5, 40)
        first = collection.runs["bm25"]
        other = {q: {d: -s for d, s in docs.items()} for q, docs in first.items() if q != "q7"}
        rows = overlap_split(
            collection, {"bm25": first, "other": other}, first, measures=[measure], analyzer="whitespace", relevant=relevant
        )  # fmt: skip
        assert len(rows) == 2 * 2 * GROUPS
        for name, run in (("bm25", first), ("other", other)):
            found = {(r.queries, r.group): (r.n, r.mean) for r in rows if r.run == name}
            expected = oracle(collection, run, first, measure, relevant)
            assert found == {
                key: (n, mean if mean is None else pytest.approx(mean)) for key, (n, mean) in expected.items()
            }

    def test_without_candidates_and_without_retrieved_documents(self):
        """A run without the queries counts as zero."""
        collection = generated(1)
        rows = overlap_split(collection, dict(collection.runs), groups=2)
        assert [(r.queries, r.group) for r in rows] == [("all", 1), ("all", 2)]
        rows = overlap_split(collection, dict(collection.runs), {"q1": {}})
        assert [(r.n, r.mean, r.ci_low, r.ci_high) for r in rows[3:]] == [(0, None, None, None)] * 3
        assert {r.mean for r in overlap_split(collection, {"nothing": {"q1": {"gone9": 1.0}}})} == {0.0}

    def test_differences_from_a_baseline(self):
        collection = generated(2, 45)
        first = collection.runs["bm25"]
        runs = {"bm25": first, "other": {q: {d: -s for d, s in docs.items()} for q, docs in first.items()}}
        rows = overlap_split(collection, runs, first, baseline="bm25", analyzer="whitespace")
        base, other = rows[:6], rows[6:]
        assert {(r.baseline, r.difference) for r in base} == {(None, None)}
        for one, two in zip(base, other, strict=True):
            assert two.baseline == "bm25"
            assert two.difference == pytest.approx(two.mean - one.mean)
            assert two.difference_low <= two.difference <= two.difference_high
        assert [
            replace(r, baseline=None, difference=None, difference_low=None, difference_high=None) for r in rows
        ] == (overlap_split(collection, runs, first, analyzer="whitespace"))

    @pytest.mark.parametrize(
        ("changes", "says"),
        [
            ({"baseline": "x"}, "baseline 'x' is not among the runs: bm25"),
            ({"measures": ["nDGC"]}, "nDCG@10"),
            ({"groups": 99}, "needs a query per group, 99 at least"),
            ({"relevant": "randm"}, "'random'"),
        ],
    )
    def test_wrong_requests(self, changes, says):
        collection = generated(1)
        with pytest.raises(WhyrankError, match=says):
            overlap_split(collection, dict(collection.runs), **changes)
        with pytest.raises(WhyrankError, match="no relevance judgements"):
            overlap_split(replace(collection, qrels={}), dict(collection.runs))

    def test_lexical_matching_gains_from_overlap(self, data_folder):
        """On TREC DL 2019 a dense retriever gains most over BM25 where the relevant passages share few terms."""
        collection = open_collection(str(data_folder / "msmarco_dl19"))
        runs = {name: collection.runs[name] for name in ("bm25.top100", "tasb.top100")}
        rows = overlap_split(collection, runs, runs["bm25.top100"], relevant="mean", baseline="bm25.top100")
        gains = [row.difference for row in rows if row.run == "tasb.top100" and row.queries == "all"]
        assert [row.n for row in rows[:3]] == [15, 14, 14]
        assert gains[0] > max(gains[1:])
        assert gains[0] == pytest.approx(0.3558, abs=1e-4)


def plan_over(collection, engine=None):
    rankers = [open_ranker(spec, Setting(collection)) for spec in ("bm25", "ql")]
    return Plan(collection, {}, rankers, engine or Engine(), {}, seed=4)


class TestPlan:
    def test_rankers_re_rank_the_candidates(self):
        sample = open_collection("sample")
        measured, rows = effectiveness_of_plan(plan_over(sample))
        assert [(row.run, row.measure) for row in measured[::3]] == [("bm25", "nDCG@10"), ("ql", "nDCG@10")]
        assert measured[0].per_query == evaluate(sample.runs, sample, ["nDCG@10"])[0].per_query
        assert [r.run for r in rows] == ["bm25"] * 6 + ["ql"] * 6
        assert sum(r.n for r in rows[:3]) == len(shares(sample))
        direct = overlap_split(sample, {"bm25": sample.runs["bm25"]}, sample.runs["bm25"], seed=4)
        assert [asdict(r) for r in rows[:6]] == [asdict(r) for r in direct], "the bundled run is that of bm25"

    def test_none_where_there_is_nothing_to_split(self):
        sample = open_collection("sample")
        assert effectiveness_of_plan(plan_over(replace(sample, qrels={}))) is None
        assert effectiveness_of_plan(plan_over(replace(sample, runs={}))) is None
        two = {q: sample.qrels[q] for q in list(sample.qrels)[:2]}
        assert effectiveness_of_plan(plan_over(replace(sample, qrels=two))).overlap == []
