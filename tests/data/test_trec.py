"""Runs and judgements: round trips, order, and messages."""

from __future__ import annotations

import math

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import BadInput, WhyrankError
from whyrank.data import ranking, read_qrels, read_run, write_qrels, write_run

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda text: text.split() == [text] and not text.startswith("\ufeff")
)
scores = st.floats(allow_nan=False)
runs = st.dictionaries(ids, st.dictionaries(ids, scores, min_size=1), min_size=1)
judged = st.dictionaries(ids, st.dictionaries(ids, st.integers(-5, 5), min_size=1), min_size=1)
names = st.sampled_from(["x.txt", "x.txt.gz"])


def bits(run):
    return {q: {d: float(score).hex() for d, score in by_doc.items()} for q, by_doc in run.items()}


@given(runs, names)
@settings(max_examples=60)
def test_a_run_comes_back_to_the_last_bit(tmp_path_factory, run, name):
    path = tmp_path_factory.mktemp("run") / name
    write_run(path, run, "tag")
    assert bits(read_run(path)) == bits(run)


@given(judged, names)
@settings(max_examples=60)
def test_judgements_come_back(tmp_path_factory, qrels, name):
    path = tmp_path_factory.mktemp("qrels") / name
    write_qrels(path, qrels)
    notes: list[str] = []
    assert read_qrels(path, notes) == qrels
    assert notes == []


def before(a: str, b: str, by: dict[str, float]) -> bool:
    """Whether a stands before b, spelled out."""
    if math.isnan(by[a]) or math.isnan(by[b]):
        return a > b if math.isnan(by[a]) and math.isnan(by[b]) else math.isnan(by[b])
    return by[a] > by[b] or (by[a] == by[b] and a > b)


@given(st.dictionaries(ids, st.one_of(st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf]), st.floats())))
def test_order_is_score_then_id_descending_and_nan_last(by):
    order = ranking(by)
    assert sorted(order) == sorted(by)
    assert all(before(a, b, by) for i, a in enumerate(order) for b in order[i + 1 :])


@given(
    st.dictionaries(
        ids.filter(str.isascii).filter(str.isprintable), st.sampled_from([0.5, 1.0, 2.0]), min_size=2, max_size=6
    ),
    st.data(),
)
@settings(max_examples=60)
def test_ties_fall_as_trec_eval_lets_them_fall(by, data):
    relevant = data.draw(st.sampled_from(sorted(by)))
    qrels = {"q": {doc_id: int(doc_id == relevant) for doc_id in by}}
    theirs = ir_measures.pytrec_eval.calc_aggregate([ir_measures.RR], qrels, {"q": by})[ir_measures.RR]
    assert theirs == pytest.approx(1 / (1 + ranking(by).index(relevant)))


def test_a_written_run_looks_like_trec(tmp_path):
    run = {"2": {"a": 1, "b": np.float32(0.1), "c": 1.0}, "1": {"z": -math.inf}}
    write_run(tmp_path / "r", run, "bm25(k1=0.9, b=0.4)")
    assert (tmp_path / "r").read_text().splitlines() == [
        "2 Q0 c 1 1.0 bm25(k1=0.9,_b=0.4)",
        "2 Q0 a 2 1.0 bm25(k1=0.9,_b=0.4)",
        "2 Q0 b 3 0.10000000149011612 bm25(k1=0.9,_b=0.4)",
        "1 Q0 z 1 -inf bm25(k1=0.9,_b=0.4)",
    ]


def test_the_rank_column_and_further_columns_are_not_trusted(tmp_path):
    (tmp_path / "r").write_text("q Q0 a 1 0.5 my tag\nq\tQ0\tb\tx\t1.5\ttag\n")
    assert ranking(read_run(tmp_path / "r")["q"]) == ["b", "a"]


@pytest.mark.parametrize("bad", ["", "a b", "a\tb", "\ufeffa", "a\u00a0b"])
def test_ids_that_could_not_be_read_back_are_refused(tmp_path, bad):
    with pytest.raises(WhyrankError, match="cannot be written to a TREC file; use ids without blanks"):
        write_run(tmp_path / "r", {"q": {bad: 1.0}})
    with pytest.raises(WhyrankError, match="cannot be written to a TREC file"):
        write_qrels(tmp_path / "r", {bad: {"d": 1}})
    assert list(tmp_path.iterdir()) == []


def test_nan_is_refused_and_the_old_file_stays(tmp_path):
    write_run(tmp_path / "r", {"q": {"a": 1.0}})
    with pytest.raises(WhyrankError, match="the score of document 'b' for query 'q' is NaN"):
        write_run(tmp_path / "r", {"q": {"a": 2.0, "b": math.nan}})
    assert read_run(tmp_path / "r") == {"q": {"a": 1.0}}


def test_repeated_judgements_are_counted_and_contradicting_ones_refused(tmp_path):
    (tmp_path / "j.txt").write_text("q 0 a 1\nq 0 a 1\nq 0 b 0\nq 0 a 1\n")
    notes: list[str] = []
    assert read_qrels(tmp_path / "j.txt", notes) == {"q": {"a": 1, "b": 0}}
    assert notes == ["j.txt: judgements that repeat an earlier line: 2"]
    (tmp_path / "j.txt").write_text("q 0 a 1\n\nq 0 a 2\n")
    with pytest.raises(BadInput, match=r"j\.txt:3: document 'a' was judged 1 for query 'q' before, here 2; keep one"):
        read_qrels(tmp_path / "j.txt")
    notes.clear()
    assert read_qrels(tmp_path / "j.txt", notes, strict=False) == {"q": {"a": 1}}
    assert notes == ["j.txt: judgements that contradict an earlier line, which counts: 1 (line 3)"]


@pytest.mark.parametrize(
    ("read", "text", "what"),
    [
        (read_run, "q Q0 a 1 1.0 t\nq Q0 b 2 0.5\n", r"f:2: expected 6 columns .*, found 5"),
        (read_run, "q Q0 a 1 1.0 t\nq Q0 b 2 high t\n", r"f:2: score 'high' is not a number"),
        (read_run, "q Q0 a 1 1.0 t\nq Q0 b 2 nan t\n", r"f:2: the score is NaN"),
        (read_run, "q Q0 a 1 1.0 t\nq Q0 a 2 0.5 t\n", r"f:2: document 'a' occurs twice for query 'q'"),
        (read_qrels, "q 0 a\n", r"f:1: expected 4 columns \(query_id 0 doc_id grade\), found 3"),
        (read_qrels, "q 0 a 1\nq 0 b 0.5\n", r"f:2: grade '0\.5' is not an integer"),
        (read_qrels, "q 0 a " + "9" * 5000 + "\n", r"f:1: grade '9+' is not an integer"),
        (read_qrels, "query-id\tcorpus-id\tscore\nq\ta\n", r"f:2: expected 3 columns separated by tabs .* found 2"),
    ],
)
def test_a_bad_line_is_named(tmp_path, read, text, what):
    (tmp_path / "f").write_text(text)
    with pytest.raises(BadInput, match=what):
        read(tmp_path / "f")
