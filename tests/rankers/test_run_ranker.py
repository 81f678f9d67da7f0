"""Finished runs as rankers: matched by ids, and by texts where there are no ids."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError, executor
from whyrank.data import Collection, open_collection, write_run
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine, ScoreStore, rerank
from whyrank.studies import Contrasts, Pair, Plan, Threshold, answers, candidates_for_delta
from whyrank.studies.delta import thresholds
from whyrank.studies.probes import probes
from whyrank.studies.runner import scores_by_ids
from whyrank.testing import RankerContract
from whyrank.testing.examples import sample

DOCS = {"a": "red fox", "b": "blue fox", "twin": "red fox", "c": "a long text about foxes"}
QUERIES = {"1": "fox", "2": "fox", "3": "dog"}
RUN = {"1": {"a": 1.5, "b": 0.5}, "2": {"twin": 2.5, "gone": 9.0}, "3": {"c": -1.0}, "unknown": {"a": 7.0}}


def toy(**runs) -> Collection:
    return Collection.of(DOCS, QUERIES, {"1": {"a": 1, "b": 0}}, runs=runs or {"mine": RUN}, name="toy")


def opened(collection=None, spec="run:mine"):
    return open_ranker(spec, Setting(collection or toy()))


def best(query: str, doc: str) -> float:
    """The highest score of any pair of ids with these texts."""
    pairs = [(q, d, score) for q, scores in RUN.items() for d, score in scores.items()]
    return max((s for q, d, s in pairs if QUERIES.get(q) == query and DOCS.get(d) == doc), default=math.nan)


class TestScores:
    def test_texts_stand_for_their_ids(self):
        pairs = [(q, d) for q in [*QUERIES.values(), "cat"] for d in [*DOCS.values(), "nothing"]]
        found = opened().score([q for q, _ in pairs], [d for _, d in pairs])
        assert np.array_equal(found, [best(*pair) for pair in pairs], equal_nan=True)
        assert best("fox", "red fox") == 2.5, "one text, two queries and two documents: the highest score"

    def test_ids_are_exact(self):
        found = opened().score_ids(["1", "1", "2", "2", "3", "4"], ["a", "twin", "a", "gone", "c", "a"])
        assert np.array_equal(found, [1.5, math.nan, math.nan, 9.0, -1.0, math.nan], equal_nan=True)
        assert opened().score([], []).shape == opened().score_ids([], []).shape == (0,)

    def test_they_are_never_stored(self, tmp_path):
        store = ScoreStore(tmp_path / "s.sqlite")
        for _ in range(2):
            scores = Engine(store).score(opened(), ["dog"], [DOCS["c"]], *np.zeros((2, 1), np.int32))
            assert (scores.scored, scores.values.tolist()) == (1, [-1.0])


def test_the_content_is_the_identity(tmp_path):
    path = tmp_path / "r.txt"
    write_run(path, RUN)
    first = repr(opened(spec=f"run:{path}"))
    assert first.partition(" content=")[2] == repr(opened()).partition(" content=")[2] != ""
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    assert repr(opened(spec=f"run:{path}")) == first, "the order of lines does not matter"
    write_run(path, RUN | {"3": {"c": -1.0000000001}})
    assert repr(opened(spec=f"run:{path}")) != first


class TestContract(RankerContract):
    def make(self):
        return open_ranker("run:bm25", self.setting())

    def pairs(self):
        collection, run = sample(), sample().runs["bm25"]
        ids = [(q, d) for q in list(run)[:4] for d in list(run[q])[:3]]
        return [(collection.queries[q], collection.docs[d]) for q, d in ids]


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ("run:no.txt", r"no\.txt: there is no such run file; runs of toy: "),
        ("run", "run:RESOURCE"),
        ("run:DIR/empty.txt", "empty"),
        ("run:DIR", "cannot be read"),
        ("run:DIR/other.txt", "has no query of collection toy"),
        ("run:other", "other: has no query of collection toy"),
        ("run:pairs", "pairs: none of the 3 scored pairs is one of collection toy"),
        ("run:none", "none of the 0 scored pairs"),
    ],
)
def test_refusals(tmp_path, spec, what):
    other = {"9": {"a": 1.0, "b": 1, "c": 2}}
    (tmp_path / "empty.txt").write_text("\n")
    write_run(tmp_path / "other.txt", other)
    collection = toy(other=other, pairs={"1": {"x": 1.0, "y": 2.0}, "9": {"a": 1.0}}, none={})
    with pytest.raises(WhyrankError, match=what):
        opened(collection, spec.replace("DIR", str(tmp_path)))
    with pytest.raises(WhyrankError, match=r"needs the collection|run:RESOURCE"):
        open_ranker(spec)


@dataclass(frozen=True)
class Fixed:
    """A study with given contrasts."""

    pairs: tuple[Pair, ...]
    id: str = "fixed"
    positive: str = "prefers the first"
    symmetric: bool = False

    def contrasts(self, collection):
        return Contrasts.from_pairs(self.pairs)


def pair(query_id, *doc_ids, texts=None, query=None):
    texts = texts or [DOCS[d] for d in doc_ids]
    return Pair(query or QUERIES[query_id], tuple(texts), {"query_id": query_id, "doc_ids": doc_ids})


def answered(*pairs):
    plan = Plan(toy(), {"fixed": Fixed(pairs)}, [opened()], Engine(), {"run:mine": Threshold(0.0)})
    [answer] = answers(plan)
    return answer


class TestByIds:
    @pytest.mark.parametrize(
        ("given", "scores"),
        [
            (pair("1", "a*2", "a", texts=["red fox red fox", "red fox"]), [math.nan, 1.5]),  # made for the study
            (pair("1", "a", "a", texts=["red", "red fox"]), [math.nan, 1.5]),  # edited: else no edit changes anything
            (pair("1", "a", "b", texts=["red", "blue fox"]), [1.5, 0.5]),  # the beginning of a document
            (pair("1", "a", "b", texts=["some", "thing"]), [math.nan, math.nan]),
            (pair("1", "a", "b", query="other words"), [math.nan, math.nan]),
            (Pair("fox", ("red fox", "blue fox")), [2.5, 0.5]),  # without ids by texts
        ],
    )
    def test_texts_must_be_those_of_the_ids(self, given, scores):
        answer = answered(given)
        assert np.array_equal(answer.reading.scores, [scores], equal_nan=True)
        assert answer.findings[0].nonfinite == np.isnan(scores).any()

    @settings(max_examples=40)
    @given(st.lists(st.tuples(*[st.sampled_from(["1", "2", "3"]), *[st.sampled_from(["a", "b", "c", "twin", "new"])] * 3]), min_size=1))  # fmt: skip
    def test_any_rows(self, rows):
        """Whatever ids repeat, each text of each contrast gets the score of its own pair."""
        texts = DOCS | {"new": "an unheard of text"}
        made = [pair(q, *ids, texts=[texts[d] for d in ids]) for q, *ids in rows]
        scores = scores_by_ids(opened(), Contrasts.from_pairs(made))
        expected = [RUN[q].get(d, math.nan) if d in DOCS else math.nan for q, *ids in rows for d in ids]
        assert np.array_equal(scores.values, expected, equal_nan=True)
        lacking = {(q, d) for q, *ids in rows for d in ids if d not in RUN[q]}
        assert Counter(f.query for f in scores.failures) == Counter(QUERIES[q] for q, _ in lacking)


class TestStudies:
    def test_a_run_answers_as_the_ranker_that_made_it(self):
        """On documents of the run, BM25 and its own run have the same findings, but for the name."""
        collection = open_collection("sample")
        bm25 = open_ranker("bm25", Setting(collection))
        judged = {q: dict.fromkeys(docs, 0.0) for q, docs in collection.qrels.items()}
        collection.runs = {"made": rerank(Engine(), bm25, collection, judged)[0]}
        rankers = [bm25, open_ranker("run:made", Setting(collection))]
        deltas = thresholds("p50", rankers, candidates_for_delta(collection), Engine())
        assert deltas["run:made"].delta == deltas["bm25"].delta > 0
        studies = {"s": probes.create("matched/relevance|length", tolerance="10%")}
        found = [f for a in answers(Plan(collection, studies, rankers, Engine(), deltas)) for f in a.findings]
        for one, two in zip(found[::2], found[1::2], strict=True):
            assert (one.ranker, two.ranker) == ("bm25", "run:made")
            assert (one.score, one.n, one.p_value, one.mean_diff) == (two.score, two.n, two.p_value, two.mean_diff)

    def test_re_ranking_with_a_run_gives_the_run(self):
        ranker, run = open_ranker("run:bm25", Setting(sample())), sample().runs["bm25"]
        for engine in (Engine(), Engine(executor=executor("processes(workers=2)"))):
            assert rerank(engine, ranker, sample(), run) == (run, [])

    def test_the_command_line(self, tmp_path, whyrank):
        upside_down = {q: {d: -s for d, s in docs.items()} for q, docs in sample().runs["bm25"].items()}
        write_run(tmp_path / "sys.txt", upside_down)
        rankers = ("-r", f"run:{tmp_path / 'sys.txt'}", "-r", "run:bm25")
        options = ("--json", "--tolerance", "10%", "--delta", "0")
        code, out, err = whyrank("audit", "matched/relevance|length", *rankers, *options)
        assert code == 0, err
        one, two = json.loads(out)
        assert one["score"] == -two["score"] != 0
