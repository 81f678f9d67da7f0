"""`whyrank compare`: two audits, two rankers, and the gate, as a user types it."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from refusals import one_line

LENGTH = "matched/length|overlap(tolerance=10%)"
STUDIES = (LENGTH, "axiom/TFC1", "bias/car-brand")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Results of two audits in the folders `old` and `new`: the new ranker likes one brand."""
    import whyrank
    from toy_bias import Toy

    root = tmp_path_factory.mktemp("audits")
    for name, gain in (("old", 0.0), ("new", 1.0)):
        ranker = Toy(1, words=(("toyota", gain),), scale=0.05)
        whyrank.audit(ranker, "sample", STUDIES, delta=0.5, limit=60, effectiveness=True, out=root / name)
    return root


@pytest.fixture
def there(folders, monkeypatch):
    monkeypatch.chdir(folders)
    return folders


def test_two_audits(whyrank, there):
    code, out, err = whyrank("compare", "old", "new")
    assert code == 0, err
    assert out.startswith("Brands and names. With only the car brand changed, toy1 (new) favours Toyota over ")
    assert "toyota" in out.lower().split("effects of values", 1)[1]
    assert "nDCG@10" in out
    assert "3 studies compared" in err


def test_two_rankers(whyrank):
    request = ("compare", "bm25", "ql", "--study", LENGTH, "--limit", "30", "--store", "none", "--json")
    code, out, err = whyrank(*request)
    assert code == 0, err
    found = json.loads(out)
    assert (found["first"], found["second"]) == ("bm25", "ql")
    assert {row["study"] for row in found["rows"]} == {LENGTH, "effectiveness"}


def test_of_two_rankers_the_rules_are_for_the_second(whyrank, tmp_path):
    rules = tmp_path / "behaviour.yaml"
    rules.write_text("axiom/TFC1: at least 0\n")
    request = ("compare", "bm25", "ql", "--study", "axiom/TFC1", "--limit", "30", "--store", "none")
    code, out, err = whyrank(*request, "--rules", rules, "--card", tmp_path / "card.md")
    assert code == 0, err
    assert out.startswith("passed  axiom/TFC1: at least 0: ql has a share of ")
    assert (tmp_path / "card.md").read_text().startswith("# Behaviour of ql\n")


def test_a_gate_fails_with_code_1_and_the_failing_line_first(whyrank, there, tmp_path):
    rules = tmp_path / "behaviour.yaml"
    rules.write_text(
        "axiom/*: at least 0\nbias/car-brand: range at most 1.5 deltas\ndrift: at most 0.2 where significant\n"
        "effectiveness: nDCG@10 drop at most 1\n"
    )
    files = {"--markdown": tmp_path / "m.md", "--junit": tmp_path / "j.xml", "--card": tmp_path / "card.md"}
    given = [str(part) for pair in files.items() for part in pair]
    code, out, err = whyrank("compare", "old", "new", "--rules", rules, *given)
    assert code == 1, err
    assert out.splitlines()[0].startswith("FAILED  bias/car-brand: range at most 1.5 deltas: toy1 has a range of ")
    assert "checks failed" in err
    root = ElementTree.fromstring((tmp_path / "j.xml").read_bytes())
    assert root.get("failures") == "1"
    assert (tmp_path / "m.md").read_text().startswith("**1 of ")
    card = (tmp_path / "card.md").read_text()
    assert "# Behaviour of toy1" in card
    assert "## Rules" in card


def test_one_audit_alone_can_be_checked(whyrank, there, tmp_path):
    rules = tmp_path / "behaviour.yaml"
    rules.write_text("bias/car-brand: range at most 1.5 deltas\n")
    assert whyrank("compare", "old", "--rules", rules)[0] == 0
    assert whyrank("compare", "new", "--rules", rules)[0] == 1
    rules.write_text("drift: at most 1\n")
    assert "needs two audits" in one_line(whyrank("compare", "new", "--rules", rules))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), "two audits or two rankers"),
        (("new",), "name two, or give --rules or --card"),
        (("nwe/", "old"), "'nwe/' is no result folder"),
        (("bm52", "ql"), "'bm25'"),
        (("old", "bm25"), "'bm25' is no result folder"),
        (("old", "new", "--limit", "3"), "--limit is for two rankers"),
        (("old", "new", "--ranker", "toy7"), "'toy1'"),
        (("old", "new", "--rules", "none.yaml"), "none.yaml"),
        (("old", "new", "--junit", "x.xml"), "--rules FILE"),
        (("old", "new", "--card", "x.html"), ".md"),
        (("old", "new", "--correction", "holmes"), "'holm'"),
        (("bm25", "ql", "--ranker", "bm25"), "names a ranker of two audits"),
    ],
)
def test_wrong_requests(whyrank, there, given, words):
    assert words in one_line(whyrank("compare", *given))


def test_a_baseline_adds_columns(whyrank, tmp_path):
    out = tmp_path / "out"
    request = ("audit", LENGTH, "axiom/TFC1", "--baseline", "ql", "-r", "bm25", "--limit", "30")
    code, shown, err = whyrank(*request, "--store", "none", "--format", "markdown", "--out", out)
    assert code == 0, err
    assert "its interval" in shown
    assert "difference: from ql on the same contrasts" in shown
    assert "bm25 − ql" in (out / "tables" / "findings.md").read_text(encoding="utf-8")
    [found] = [f for f in json.loads(whyrank(*request, "--json", "--store", "none")[1]) if f["baseline"]][:1]
    assert found["ranker"] == "bm25"
    assert found["difference_low"] <= found["difference"] <= found["difference_high"]
    assert "'bm25'" in one_line(whyrank("audit", LENGTH, "--baseline", "bm52"))
