"""`whyrank tables surprises` as a user types it."""

from __future__ import annotations

import json

import pytest
from small_collections import write_collection

from toy_bias import BRANDS, PLANTED, TERMS, toy_collection, toy_table
from whyrank.tables import TermTable


@pytest.fixture
def table(tmp_path, monkeypatch):
    """The table of a ranker with planted biases, its collection as a folder, and the ranker as a module."""
    monkeypatch.chdir(tmp_path)
    toy_table(PLANTED).save("table.parquet")
    collection = toy_collection(about=" in a car")
    judged = [f"{q} 0 {d} {grade}\n" for q, found in collection.qrels.items() for d, grade in found.items()]
    write_collection(tmp_path / "toys", collection.docs, collection.queries, "".join(judged))
    source = "from toy_bias import PLANTED\n\n\ndef likes(q, d):\n    return PLANTED.score(q, d)\n"
    (tmp_path / "asked.py").write_text(source)
    return "table.parquet"


@pytest.fixture
def surprises(whyrank, table):
    """What the command finds, and what it says."""

    def run(*arguments, table=table):
        code, out, err = whyrank("tables", "surprises", table, "--pipeline", "none", *arguments, "--json")
        assert code == 0, err
        return json.loads(out), err

    return run


RUN = ("-c", "toys", "--confirm", "--show", 1, "-r", "python:asked.py:likes")


def test_surprises_are_shown_with_the_study_to_run(table, whyrank):
    code, out, err = whyrank("tables", "surprises", table, "--pipeline", "none", "--show", 2)
    assert code == 0, err
    for words in ("Honda", "2007", "bias/car-brand", "bias/postfix-letter"):
        assert words in out
    assert "tests: table.parquet" in err


def test_studies_are_run_on_request(surprises, tmp_path):
    found, err = surprises(*RUN, "--out", "found.json")
    answers = {(s["group"], s["value"]): s["confirmed"] for s in found["surprises"]}
    assert answers["appended", "q"] is True
    assert answers["car-makes", "Honda"] is True
    assert "are confirmed" in err
    written = json.loads((tmp_path / "found.json").read_text())
    assert len(written["tested"]) == found["tests"] > len(found["surprises"])
    assert all(s["null"] for s in written["tested"])


def test_missing_weights(surprises):
    """Below a threshold nothing can be judged; weights that are missing elsewhere are noted."""
    cut = toy_table(PLANTED).prune(threshold=0.6)
    parts = (cut.query_terms, cut.doc_terms, cut.indptr, cut.indices, cut.weights)
    TermTable(*parts, {"threshold": 0.6}).save("cut.parquet")
    _, err = surprises(table="cut.parquet")
    assert "entries below 0.6 are not in this table; how low a weight is cannot be judged" in err
    whole = toy_table(PLANTED)
    pairs = [(q, d) for i, q in enumerate(TERMS) for d in BRANDS if d != BRANDS[i % len(BRANDS)]]
    TermTable.from_triples(*zip(*pairs, strict=True), [whole.weight(*p) for p in pairs]).save("holes.parquet")
    found, err = surprises(table="holes.parquet")
    assert "car-makes" in {surprise["group"] for surprise in found["surprises"]}
    assert found["notes"] == ["car-makes: 8% of the weights are missing and count as zero"]
    assert f"note: {found['notes'][0]}" in err.splitlines()
    assert not any("car-makes" in line for line in found["unjudged"])


def test_a_class_of_ones_own(surprises, tmp_path):
    """One that the table does not have is named; one with a plus is asked about by its file."""
    _, err = surprises("--values", "anvil+bellows")
    assert "note: cannot be judged: anvil+bellows: fewer than 4 of its values are document terms with entries" in err
    assert "its values are document terms" not in surprises("--values", "2001+2002+2003+2004")[1]
    values = ["c++", "honda", "ford", "audi", "fiat", "jeep"]
    pairs = [(q, d) for q in TERMS for d in values]
    weights = [0.2 if d == "c++" else 0.5 + 0.001 * i for i, (_, d) in enumerate(pairs)]
    TermTable.from_triples(*zip(*pairs, strict=True), weights).save("plus.parquet")
    (tmp_path / "own.txt").write_text("\n".join(values))
    found, _ = surprises("--values", "own.txt", *RUN, table="plus.parquet")
    [odd] = [s for s in found["surprises"] if (s["group"], s["value"]) == ("own.txt", "c++")]
    assert odd["study"] == "bias/substitution(values=own.txt)"
    assert odd["confirmed"] is not None


def test_a_ranker_that_answers_nothing(whyrank, table, ranker):
    nans = ranker("float('nan')")
    given = ("--pipeline", "none", "-c", "toys", "--confirm", "--show", "1", "--store", "none", "-r", nans)
    code, out, err = whyrank("tables", "surprises", table, *given)
    assert code == 2
    assert "not answered: the ranker has no finite scores for it" in out
    assert err.splitlines()[-1].startswith(f"whyrank: ranker {nans!r} has no finite score for any text")
