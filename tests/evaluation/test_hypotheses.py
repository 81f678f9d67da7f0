"""Groups of runs, whose mean per query counts, and hypotheses about runs and groups, tested together."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from whyrank.core import WhyrankError, sign_flip_p
from whyrank.data import Collection
from whyrank.evaluation import Hypothesis, evaluate, judge, read_hypotheses

IDS = [f"q{i}" for i in range(12)]
QRELS = {q: {"a": 2, "b": 0, "c": 1} for q in IDS}
TOY = Collection.of({d: d for d in "abc"}, {q: q for q in IDS}, QRELS, name="toy")


def run(seed, skill):
    rng = np.random.default_rng(seed)
    return {q: {d: rng.normal() + skill * QRELS[q][d] for d in "abc"} for q in IDS}


RUNS = {"a1": run(1, 2), "a2": run(2, 2), "a3": run(3, 2), "b1": run(4, -2), "b2": run(5, -2), "plain": run(6, 0)}
GROUPS = {"A": ["a1", "a2", "a3"], "B": ["b1", "b2"]}


def test_a_group_is_the_mean_per_query():
    single = {row.run: row for row in evaluate(TOY, RUNS, ["nDCG@10"])}
    rows = {row.run: row for row in evaluate(TOY, RUNS, ["nDCG@10"], groups=GROUPS)}
    assert list(rows) == ["plain", "A", "B"]
    for q in IDS:
        assert rows["A"].per_query[q] == pytest.approx(sum(single[n].per_query[q] for n in GROUPS["A"]) / 3)
    means = [single[n].mean for n in GROUPS["A"]]
    assert rows["A"].mean == pytest.approx(sum(means) / 3)
    assert rows["A"].deviation == pytest.approx(np.std(means, ddof=1))
    assert (rows["A"].runs, rows["plain"].runs, rows["plain"].deviation) == (3, 1, None)


def test_groups_are_compared_by_their_means():
    rows = {row.run: row for row in evaluate(TOY, RUNS, ["nDCG@10"], baseline="B", groups=GROUPS)}
    diffs = np.array([rows["A"].per_query[q] - rows["B"].per_query[q] for q in sorted(IDS)])
    assert rows["A"].difference == pytest.approx(diffs.mean())
    assert rows["A"].p_value == sign_flip_p(diffs, 100_000, 0)


@pytest.mark.parametrize(
    ("groups", "says"),
    [({"A": ["a1", "gone"]}, "'gone'"), ({"A": []}, "needs runs"), ({"A": ["a1", "a1"]}, "each one once"), ({"a2": ["a1"]}, "the name of a run")],
)  # fmt: skip
def test_wrong_groups(groups, says):
    with pytest.raises(WhyrankError, match=says):
        evaluate(TOY, RUNS, ["nDCG@10"], groups=groups)


def test_hypotheses_are_corrected_together():
    rows = evaluate(TOY, RUNS, ["nDCG@10", "RR@10"], groups=GROUPS)
    claims = [Hypothesis("H1", "A", "B"), Hypothesis("H2", "B", "plain"), Hypothesis("H3", "plain", "A")]
    found = judge(rows, claims, "holm")
    assert [(each.hypothesis, each.measure) for each in found] == [
        (h, m) for h in ("H1", "H2", "H3") for m in ("nDCG@10", "RR@10")
    ]
    order = sorted(found, key=lambda each: each.p_value)
    steps = np.maximum.accumulate([each.p_value * (6 - i) for i, each in enumerate(order)])
    assert [each.p_adjusted for each in order] == pytest.approx(np.minimum(1, steps).tolist())
    assert found[0].verdict(0.05) == "holds"
    assert found[4].verdict(0.05) == "reversed"
    assert found[0].verdict(0.0) == "open"
    assert found[0].difference == pytest.approx(found[0].mean - found[0].other)


def test_claims_from_a_file(tmp_path):
    file = tmp_path / "h.yaml"
    file.write_text("H1: 'A > B'\nsmaller: B < A\n2: runs/x.txt > bm25\n")
    assert read_hypotheses(str(file)) == [
        Hypothesis("H1", "A", "B"), Hypothesis("smaller", "A", "B"), Hypothesis("2", "runs/x.txt", "bm25"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "- A > B\n", "H: A\n", "H: A > \n", "H: A > A\n", "H: A > B > C\n", "H: 3\n", "H: [\n"]
)
def test_wrong_claims(tmp_path, text):
    file = tmp_path / "h.yaml"
    file.write_text(text)
    with pytest.raises(WhyrankError, match=r"h\.yaml") as caught:
        read_hypotheses(str(file))
    assert "\n" not in str(caught.value)


def test_a_baseline_inside_a_group_is_one_clear_line():
    with pytest.raises(WhyrankError, match="the baseline 'a2' is in the group 'A', which stands for its runs"):
        evaluate(TOY, RUNS, ["nDCG@10"], baseline="a2", groups=GROUPS)


@pytest.mark.parametrize("text", ["x: A > B\ny: B > plain\nx: plain > A\n", "1: A > B\n2: B > C\n'1': B > A\n"])
def test_two_claims_with_one_name_are_an_error(tmp_path, text):
    path = tmp_path / "claims.yaml"
    path.write_text(text)
    with pytest.raises(
        WhyrankError, match=r"claims.yaml:3: there are two hypotheses with the name '[x1]'; give each"
    ):
        read_hypotheses(str(path))


@pytest.mark.parametrize(
    ("measure", "way"),
    [("P", "P@10"), ("P(rel=2)", r"P\(rel=2\)@10"), ("BPM", r"BPM\(max_rel=...\)@10"), ("IPrec", r"IPrec\(recall=...\)")],
)  # fmt: skip
def test_a_measure_that_lacks_something_is_one_clear_line(measure, way):
    with pytest.raises(WhyrankError, match=f"lacks its .*; write it as {way}$") as found:
        evaluate(TOY, RUNS, [measure])
    assert "object" not in str(found.value)


def numbered(grade, name="{}"):
    """A collection whose one query is named after a number."""
    return Collection.of({"a": "a", "b": "b"}, {name.format(1): "a"}, {name.format(1): {"a": grade}}, name="toy")


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a program in Perl")
@pytest.mark.parametrize("measure", ["ERR@10", "nDCG(dcg='exp-log2')@10"])
def test_what_gdeval_cannot_read_is_one_clear_line(measure, capfd):
    """ERR with the relevant text second: (2^3 - 1) / 2^4 / 2."""
    found = evaluate(numbered(3), {"run": {"1": {"b": 2.0, "a": 1.0}}}, [measure])
    assert found[0].mean == pytest.approx(7 / 32 if measure == "ERR@10" else 1 / np.log2(3), abs=1e-4)
    for grade, name in ((5, "{}"), (3, "q{}"), (3, "t-{}")):
        with pytest.raises(WhyrankError, match="gdeval, which takes query ids that are numbers and grades up to 4"):
            evaluate(numbered(grade, name), {"run": {name.format(1): {"a": 1.0}}}, [measure])
    assert capfd.readouterr() == ("", "")
