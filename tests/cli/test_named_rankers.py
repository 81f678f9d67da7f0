"""`-r NAME=SPEC`: the name that people see, and scores that are kept under the ranker's own identity."""

from __future__ import annotations

import json
import pickle

import pytest

from whyrank.core import split_name
from whyrank.data import open_collection
from whyrank.rankers import CascadeRanker, Setting, open_ranker
from whyrank.scoring.engine import identity_of


@pytest.mark.parametrize(
    ("given", "name", "spec"),
    [
        ("before=bm25(k1=1.2)", "before", "bm25(k1=1.2)"),
        ("after tuning = cross:bundled", "after tuning", "cross:bundled"),
        ("bm25(k1=1.2)", "", "bm25(k1=1.2)"),
        ("run:a=b.txt", "", "run:a=b.txt"),
        ("https://host/rerank?model=x", "", "https://host/rerank?model=x"),
        ("=bm25", "", "=bm25"),
    ],
)
def test_what_is_a_name(given, name, spec):
    assert split_name(given) == (name, spec)


def test_findings_have_the_name_and_scores_are_found_again(whyrank, tea):
    request = ("audit", "edited/typos", "--json", "--delta", "0", "--store", tea / "scores.sqlite", "--limit", "9")
    code, out, err = whyrank(*request, "-r", "python:likes:rose")
    assert code == 0, err
    scored = len((tea / "scored.txt").read_text())
    code, again, err = whyrank(*request, "-r", "fond of <roses>=python:likes:rose", "-r", "plain=bm25")
    assert code == 0, err
    first, named, plain = *json.loads(out), *json.loads(again)
    assert (named["ranker"], plain["ranker"]) == ("fond of <roses>", "plain")
    other = dict.fromkeys(("ranker", "p_adjusted", "seconds"))
    assert named | other == first | other
    assert len((tea / "scored.txt").read_text()) < scored + 9  # stored scores are checked on a few pairs


def test_a_name_is_given_once(whyrank):
    code, _, err = whyrank("audit", "edited/typos", "-r", "one=bm25", "-r", "one=ql")
    assert code == 2
    assert "ranker 'one' is given twice" in err


def test_processes_runs_and_cascades_see_the_ranker_itself(whyrank, tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    cascade = "cascade(of=['bm25','ql'],depth=5)"
    for spec, out in ((cascade, one), (f"in stages={cascade}", two)):
        code, _, err = whyrank("rank", "-r", spec, "--executor", "processes(workers=1)", "--out", out)
        assert code == 0, err
    assert {line.split()[-1] for line in two.read_text().splitlines()} == {"in_stages"}
    assert [line.split()[:5] for line in one.read_text().splitlines()] == [
        line.split()[:5] for line in two.read_text().splitlines()
    ]
    code, out, err = whyrank("fidelity", "-t", f"the run=run:{one}", "-s", "a=bm25", "-s", "b=ql", "--baseline", "b",
                             "--depth", "5", "--json")  # fmt: skip
    assert code == 0, err
    assert {"the run", "a", "b"} <= set(json.loads(out)["rankers"]["sample"])
    assert json.loads(out)["settings"]["baseline"] == "b"


def test_secrets_stay_hidden(whyrank):
    code, out, err = whyrank("delta", "-r", "mine=http://127.0.0.1:9/rerank?key=s3cret(retries=0)", "--delta", "p50")
    assert code == 2
    assert "s3cret" not in out + err


def test_all_but_the_name_is_the_rankers_own():
    setting = Setting(open_collection("sample"))
    ranker = open_ranker("cascade(of=['bm25','ql'],depth=5)", setting)
    made = open_ranker("mine=cascade(of=['bm25','ql'],depth=5)", setting)
    assert (repr(made), identity_of(made)) == (repr(ranker), identity_of(ranker))
    assert isinstance(made, CascadeRanker)
    assert made.parts == ranker.parts
    again = pickle.loads(pickle.dumps(open_ranker("mine=bm25", setting)))
    assert again.name == "mine"
