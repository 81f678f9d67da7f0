"""`whyrank tables surprises` as a user types it."""

from __future__ import annotations

import json
import re

import pytest

from refusals import one_line
from toy_bias import BRANDS, PLANTED, TERMS, toy_collection, toy_table

OUTCOME = r"effect (?P<effect>\S+) \[(?P<low>\S+), (?P<high>\S+)\], p adj\. \S+, (?P<templates>\d+) templates"


@pytest.fixture
def table(tmp_path, monkeypatch):
    """The table of a ranker with planted biases, its collection as a folder, and the ranker as a module."""
    monkeypatch.chdir(tmp_path)
    toy_table(PLANTED).save("table.parquet")
    collection = toy_collection(about=" in a car")
    (tmp_path / "toys").mkdir()
    docs = [json.dumps({"id": doc_id, "text": text}) for doc_id, text in collection.docs.items()]
    (tmp_path / "toys" / "corpus.jsonl").write_text("\n".join(docs))
    queries = [f"{query_id}\t{text}" for query_id, text in collection.queries.items()]
    (tmp_path / "toys" / "queries.tsv").write_text("\n".join(queries))
    judged = [f"{q} 0 {d} {grade}" for q, found in collection.qrels.items() for d, grade in found.items()]
    (tmp_path / "toys" / "qrels.txt").write_text("\n".join(judged))
    (tmp_path / "asked.py").write_text(
        "from toy_bias import PLANTED\n\n\ndef likes(q, d):\n    return PLANTED.score(q, d)\n"
    )
    return "table.parquet"


def test_surprises_are_shown_with_the_study_to_run(table, whyrank):
    code, out, err = whyrank("tables", "surprises", table, "--pipeline", "none", "--top", 2)
    assert code == 0, err
    for words in ("Honda", "2007", "bias/car-brand", "bias/postfix-letter"):
        assert words in out
    assert "tests: table.parquet" in err


def test_studies_are_run_on_request(table, whyrank, tmp_path):
    code, out, err = whyrank("tables", "surprises", table, "--pipeline", "none", "-c", "toys", "--run", "--top", 1,
                             "-r", "python:asked.py:likes", "--json", "--out", "found.json")  # fmt: skip
    assert code == 0, err
    found = json.loads(out)
    answers = {(s["group"], s["value"]): s["confirmed"] for s in found["surprises"]}
    assert answers["appended", "q"] is True
    assert answers["car-makes", "Honda"] is True
    assert "are confirmed" in err
    written = json.loads((tmp_path / "found.json").read_text())
    assert len(written["tested"]) == found["tests"] > len(found["surprises"])
    assert all(s["null"] for s in written["tested"])


def test_a_limit_bounds_the_templates_of_every_study(table, whyrank):
    code, out, err = whyrank("tables", "surprises", table, "--pipeline", "none", "-c", "toys", "--run", "--top", 1,
                             "-r", "python:asked.py:likes", "--json", "--limit", 5)  # fmt: skip
    assert code == 0, err
    said = [re.fullmatch(OUTCOME, s["outcome"]) for s in json.loads(out)["surprises"]]
    asked = [each for each in said if each]
    assert asked, out
    assert {int(each["templates"]) for each in asked} == {5}
    assert all(float(each["low"]) <= float(each["effect"]) <= float(each["high"]) for each in asked)


def test_what_a_table_with_a_threshold_cannot_say(table, whyrank):
    from whyrank.tables import TermTable

    cut = toy_table(PLANTED).pruned(threshold=0.6)
    facts = {"threshold": 0.6}
    TermTable(cut.query_terms, cut.doc_terms, cut.indptr, cut.indices, cut.weights, facts).save("cut.parquet")
    code, _, err = whyrank("tables", "surprises", "cut.parquet", "--pipeline", "none")
    assert code == 0
    assert "entries below 0.6 are not in this table; how low a weight is cannot be judged" in err


def test_what_is_judged_with_weights_missing_is_told_apart_from_what_is_not_judged(table, whyrank):
    from whyrank.tables import TermTable

    whole = toy_table(PLANTED)
    pairs = [(q, d) for i, q in enumerate(TERMS) for d in BRANDS if d != BRANDS[i % len(BRANDS)]]
    TermTable.from_triples(*zip(*pairs, strict=True), [whole.weight(*p) for p in pairs]).save("holes.parquet")
    code, out, err = whyrank("tables", "surprises", "holes.parquet", "--pipeline", "none", "--json")
    found = json.loads(out)
    assert code == 0
    assert "car-makes" in {surprise["group"] for surprise in found["surprises"]}
    assert "note: car-makes: 8% of the weights are missing and count as zero" in err.splitlines()
    assert found["notes"] == ["car-makes: 8% of the weights are missing and count as zero"]
    assert not any("car-makes" in line for line in found["unjudged"])


def test_a_class_with_a_plus_is_asked_about_by_its_file(table, whyrank, tmp_path):
    from whyrank.tables import TermTable

    values = ["c++", "honda", "ford", "audi", "fiat", "jeep"]
    pairs = [(q, d) for q in TERMS for d in values]
    weights = [0.2 if d == "c++" else 0.5 + 0.001 * i for i, (_, d) in enumerate(pairs)]
    TermTable.from_triples(*zip(*pairs, strict=True), weights).save("plus.parquet")
    (tmp_path / "own.txt").write_text("\n".join(values))
    code, out, err = whyrank("tables", "surprises", "plus.parquet", "--values", "own.txt", "--pipeline", "none",
                             "-c", "toys", "--run", "-r", "python:asked.py:likes", "--json")  # fmt: skip
    assert code == 0, err
    [odd] = [s for s in json.loads(out)["surprises"] if (s["group"], s["value"]) == ("own.txt", "c++")]
    assert odd["study"] == "bias/substitution(values=own.txt)"
    assert odd["confirmed"] is not None


def test_what_could_not_be_asked_about_is_not_counted_as_denied(table, whyrank, tmp_path):
    (tmp_path / "toys" / "queries.tsv").write_text("q1\tnobody shares these words")
    (tmp_path / "toys" / "qrels.txt").write_text(f"q1 0 {next(iter(toy_collection().docs))} 1")
    code, out, err = whyrank("tables", "surprises", table, "--pipeline", "none", "-c", "toys", "--run", "--top", 1,
                             "-r", "python:asked.py:likes", "--json")  # fmt: skip
    assert code == 0, err
    shown = json.loads(out)["surprises"]
    silent = [s for s in shown if s["confirmed"] is None]
    assert {s["group"] for s in silent} >= {"appended"}, "no word to append letters to"
    yes = sum(s["confirmed"] is True for s in shown)
    verb = "has" if len(silent) == 1 else "have"
    told = f"{yes} of {len(shown) - len(silent)} asked about are confirmed; {len(silent)} {verb} no templates"
    assert told in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--run"], "--run needs --ranker SPEC and --collection SPEC"),
        (["-r", "bm25"], "--ranker is for --run"),
        (["--limit", "5"], "--limit is for --run"),
        (["--correction", "hlm"], "unknown correction"),
        (["--values", "nofile"], "is no file"),
        (["--pipeline", "no_such_pipeline"], "no_such_pipeline"),
        (["--vectors", "nofile.txt"], "nofile.txt"),
    ],
)
def test_wrong_requests_end_with_one_line(arguments, message, table, whyrank):
    if "--pipeline" not in arguments:
        arguments = [*arguments, "--pipeline", "none"]
    assert message in one_line(whyrank("tables", "surprises", table, *arguments))
