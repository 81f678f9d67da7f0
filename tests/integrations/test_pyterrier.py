"""Rankers as PyTerrier transformers and transformers as rankers, without Java."""

from __future__ import annotations

import numpy as np
import pytest

pt = pytest.importorskip("pyterrier", reason="pip install 'whyrank[pyterrier]' to run this test")
pd = pytest.importorskip("pandas")

from ir_measures import P  # noqa: E402

import whyrank  # noqa: E402
from whyrank.core import WhyrankError  # noqa: E402
from whyrank.integrations.pyterrier import Transformer  # noqa: E402

FRAME = pd.DataFrame(
    [("1", "cats", "a", "dogs bark"), ("1", "cats", "b", "cats purr, cats sleep"), ("2", "dogs", "a", "dogs bark")],
    columns=["qid", "query", "docno", "text"],
)


def length(queries, docs):
    return [float(len(doc)) for doc in docs]


class TestContract(pt.testing.TransformerTestCase):
    @staticmethod
    def get_transformer():
        return Transformer("bm25", "sample")


def test_a_frame_is_scored_and_ranked():
    found = Transformer(length)(FRAME.assign(score=0.0, rank=7))
    assert found[["qid", "docno", "score", "rank"]].values.tolist() == [
        ["1", "a", 9.0, 1], ["1", "b", 21.0, 0], ["2", "a", 9.0, 0],
    ]  # fmt: skip
    bm25 = whyrank.open_ranker("bm25")
    given = Transformer(bm25).transform(FRAME)
    np.testing.assert_allclose(given["score"], bm25.score(FRAME["query"].tolist(), FRAME["text"].tolist()))


def test_it_stands_in_pipelines_and_experiments():
    source = pt.Transformer.from_df(FRAME.assign(score=[2.0, 1.0, 1.0], rank=[0, 1, 0]))
    best = (source >> Transformer(length)) % 1
    assert best(FRAME[["qid", "query"]].drop_duplicates())["docno"].tolist() == ["b", "a"]
    topics, qrels = FRAME[["qid", "query"]].drop_duplicates(), [("1", "b", 1), ("2", "a", 1)]
    judged = pd.DataFrame(qrels, columns=["qid", "docno", "label"])
    found = pt.Experiment([source, source >> Transformer(length)], topics, judged, [P @ 1])
    assert found["P@1"].tolist() == [0.5, 1.0]
    assert not pt.java.started()


def test_the_other_way_round_a_pipeline_is_a_ranker():
    pipeline = Transformer(length) >> pt.apply.doc_score(lambda row: row["score"] * -1)
    docs = {"a": "cats purr", "b": "cats purr and sleep a lot", "c": "dogs"}
    cats = whyrank.Collection.of(docs, {"q": "cats"}, {"q": {"a": 1, "b": 1, "c": 0}})
    [found] = whyrank.audit({"mine": pipeline}, cats, "matched/length|relevance", delta=0, analyzer="whitespace")
    assert (found.ranker, found.score) == ("mine", -1.0)


def test_a_frame_without_texts_is_refused():
    with pytest.raises(pt.validate.InputValidationError, match="text"):
        Transformer(length).transform(FRAME.drop(columns="text"))
    with pytest.raises(WhyrankError, match="empty cells"):
        Transformer(length).transform(FRAME.assign(text=[None, "cats", "dogs"]))


def test_pairs_without_a_score_are_left_out():
    with pytest.warns(UserWarning, match="no finite score, left out: 1"):
        found = Transformer(lambda queries, docs: [np.nan if "sleep" in doc else 1.0 for doc in docs])(FRAME)
    assert found[["qid", "docno", "score", "rank"]].values.tolist() == [["1", "a", 1.0, 0], ["2", "a", 1.0, 0]]
