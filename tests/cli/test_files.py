"""Collections on the command line as people have them: files with named columns, without judgements too."""

import json

import pytest

from whyrank.data import open_collection


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Products, and what people searched for and clicked."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "products.csv").write_text(
        "sku,title,description,price\n1,red shoe,light,20.5\n2,blue shoe,for running,35\n3,red hat,of wool,12\n"
    )
    (tmp_path / "clicks.csv").write_text("query,sku,label\nred shoe,1,2\nred shoe,2,0\nhat,3,1\nhat,1,0\n")
    return ("--docs", "products.csv", "--queries", "clicks.csv")


def test_an_audit_of_files_opens_again_from_its_settings(whyrank, shop):
    judged = (*shop, "--doc-text", "title,description", "--qrels", "clicks.csv")
    studies = ("edited/repeat-document", "-r", "bm25", "--delta", "0")
    code, out, err = whyrank("audit", *studies, *judged, "--json", "--out", "r")
    assert code == 0, err
    with open("r/settings.json", encoding="utf-8") as file:
        spec = json.load(file)["settings"]["collection"]
    assert spec == "files(docs=products.csv,doc_text='title,description',queries=clicks.csv,qrels=clicks.csv)"
    again = json.loads(whyrank("audit", *studies, "-c", spec, "--json")[1])
    assert [(f["n"], f["fingerprint"]) for f in again] == [(f["n"], f["fingerprint"]) for f in json.loads(out)]
    assert again[0]["n"] == 4


def test_files_without_judgements_are_audited(whyrank, shop):
    code, out, err = whyrank("audit", "edited/repeat-document", "-r", "bm25", *shop, "--json")
    assert code == 0, err
    assert "products has no judgements, so axioms and probes take top:100 of bm25" in err
    assert json.loads(out)[0]["n"] == 4, "BM25 finds a word of the query in every product of its pools"


def test_parts_of_files_keep_fields(whyrank, shop):
    given = (*shop, "--qrels", "clicks.csv", "--parts", "a=0.5,b=0.5", "--out", "parts")
    code, _, err = whyrank("data", "split", *given)
    assert code == 0, err
    part = open_collection("parts:a")
    assert (len(part.queries), part.docs["1"], part.fields["1"]) == (1, "red shoe light", {"price": 20.5})


def test_several_collections_may_be_named_elsewhere(whyrank, shop):
    code, out, err = whyrank("fidelity", "-t", "bm25", "-s", "ql", *shop, "--json")
    assert code == 0, err
    assert "products" in out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--queries", "clicks.csv"), "--queries needs --docs FILE, the file with the documents"),
        (("--docs", "products.csv", "-c", "x", "--queries", "clicks.csv"), "--docs and --collection name two"),
        (("--docs", "products.csv", "--qrels-columns", "a,b,c"), "--qrels-columns needs --qrels FILE"),
        (("--docs", "products.csv"), "the collection files needs queries=FILE (--queries FILE)"),
    ],
)
@pytest.mark.usefixtures("shop")
def test_mistakes(whyrank, given, message):
    code, _, err = whyrank("rank", *given)
    assert (code, message in err) == (2, True), err
