"""An audit in memory and in a folder: the same findings, scores, examples and report."""

from __future__ import annotations

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

import whyrank
from toy_bias import BRANDS, PLANTED, toy_collection, toy_table
from whyrank.core import MissingExtra, UnknownName, WhyrankError
from whyrank.studies import Catalogue
from whyrank.studies.axioms import axioms

CARS = f"bias/substitution(values={'+'.join(BRANDS[:4])},head=car)"
SHUFFLED = "edited/shuffle-words"


def longer(queries, docs):
    return [len(doc) for doc in docs]


@pytest.fixture(scope="module")
def audit():
    table = toy_table(PLANTED)
    return whyrank.audit([PLANTED, longer], toy_collection(), ["axiom/TFC1", SHUFFLED, CARS], delta=0.1, table=table)


def test_it_has_findings_and_the_details_of_bias_studies(audit):
    assert [(f.study, f.ranker) for f in audit] == [(s, r) for s in audit.studies for r in ("toy0", "longer")]
    assert audit.studies == ["axiom/TFC1", SHUFFLED, CARS]
    assert [(result.study, result.ranker) for result in audit.details] == [(CARS, "toy0"), (CARS, "longer")]
    assert [result.p_adjusted for result in audit.details] == [f.p_adjusted for f in audit[CARS].findings]
    assert audit.details[0].values[0].weight is not None
    assert repr(audit) == "Audit(3 studies of toy0, longer on toys)"
    assert audit.settings["correction"] == "holm"


def test_scores_and_examples_of_a_study(audit):
    view = audit[CARS]
    contrasts, reading = view.contrasts("toy0"), view.reading("toy0")
    for row in (0, len(contrasts) - 1):
        texts = [contrasts.docs[doc] for doc in contrasts.doc[row]]
        scores = PLANTED.score([contrasts.queries[contrasts.query[row]]] * 2, texts)
        np.testing.assert_allclose(view.scores("toy0")[row], scores)
    best, *rest = view.examples(2, "toy0")
    assert best.diff == np.nanmax(reading.diffs)
    assert len(rest) == 1, "a symmetric study has no contrasts at the other end"
    assert audit[SHUFFLED].examples(1)[0].texts[0].score > audit[SHUFFLED].examples(1)[0].texts[1].score
    with pytest.raises(UnknownName, match="axiom/TFC1"):
        _ = audit["axiom/TFC2"]
    with pytest.raises(UnknownName, match="longer"):
        view.contrasts("longr")


def test_it_comes_back_from_a_folder(audit, tmp_path):
    audit.save(tmp_path / "one")
    found = whyrank.open_audit(tmp_path / "one")
    assert found == audit
    for study in audit.studies:
        for ranker in ("toy0", "longer"):
            before, after = audit[study], found[study]
            assert after.contrasts(ranker).fingerprint == before.contrasts(ranker).fingerprint
            assert after.contrasts(ranker).labels.keys() == before.contrasts(ranker).labels.keys()
            for name in ("scores", "diffs", "effects", "finite"):
                np.testing.assert_array_equal(
                    getattr(after.reading(ranker), name), getattr(before.reading(ranker), name)
                )
            assert after.examples(2, ranker) == before.examples(2, ranker)
    found.save(tmp_path / "two")
    assert whyrank.open_audit(tmp_path / "two") == audit


def test_a_folder_that_is_written_at_once_holds_the_same(audit, tmp_path):
    options = {"delta": 0.1, "table": toy_table(PLANTED), "out": tmp_path / "out"}
    found = whyrank.audit([PLANTED, longer], toy_collection(), ["axiom/TFC1", SHUFFLED, CARS], **options)
    assert not found.answers
    assert found == whyrank.open_audit(tmp_path / "out")
    assert [f.score for f in found] == [f.score for f in audit]
    assert found[CARS].examples(1) == audit[CARS].examples(1)


def test_the_report_is_that_of_the_folder(audit, tmp_path):
    audit.save(tmp_path / "out")
    audit.report(tmp_path / "a.html")
    whyrank.open_audit(tmp_path / "out").report(tmp_path / "b.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "Brands and names" in page
    assert page == (tmp_path / "b.html").read_text(encoding="utf-8")


def test_a_table_in_the_report(tmp_path):
    """Its rows in words of texts, what stands out in it, and fidelity to the ranker that it is of."""
    table = whyrank.open_table("bundled")
    of_longer = replace(table, facts=table.facts | {"target": "longer"})
    audit = whyrank.audit([PLANTED, longer], "sample", "matched/length|tf", delta=0, table=of_longer, out=tmp_path)
    assert (audit.target, list(audit.fidelity)) == ("longer", ["toy0"])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "could stand in for longer" in page
    assert re.search(r"\d weights that stand out", page)
    shown, words = set(re.findall(r'(\w+) <span class="quiet">[\d.]+</span>', page)), set(table.words.values())
    assert shown & words
    assert not shown & (table.words.keys() - words)


def test_fidelity_is_over_the_texts_that_both_rankers_scored(audit, tmp_path):
    found = audit.fidelity["longer"]
    assert list(audit.fidelity) == ["longer"]
    listed = {query: texts for query, texts in audit.scores["toy0"].items() if len(texts) >= 5}
    assert list(found.queries) == list(listed)
    for query, texts in listed.items():
        assert texts.keys() == audit.scores["longer"][query].keys()
        np.testing.assert_allclose(list(texts.values()), PLANTED.score([query] * len(texts), list(texts)))
        expected = np.corrcoef(list(texts.values()), [len(text) for text in texts])[0, 1]
        i = list(found.queries).index(query)
        assert (found.values["pearson"][i], found.documents[i]) == (pytest.approx(expected), len(texts))
    audit.save(tmp_path / "out")
    stored = whyrank.open_audit(tmp_path / "out")
    assert stored.scores == audit.scores
    assert "less the mean" not in str(stored.plot("*").to_dict(validate=False)), "of studies alone"
    drawn = stored.plot("fidelity").to_dict(validate=False)
    points = {(row["first"], row["other"]) for rows in drawn["datasets"].values() for row in rows}
    centred = {
        (
            float(f"{score - np.mean(list(texts.values())):.4g}"),
            float(f"{len(text) - np.mean([*map(len, texts)]):.4g}"),
        )
        for texts in listed.values()
        for text, score in texts.items()
    }
    assert len(points) > 20
    assert points <= centred
    assert f"is {np.nanmean(found.values['pearson']):.2f} for longer".replace("-", "−") in (
        tmp_path / "out" / "report.html"
    ).read_text(encoding="utf-8")


def test_fidelity_leaves_out_queries_of_a_few_texts():
    """The two texts of a pair correlate by -1 or 1, so the mean over many pairs would hide that over lists."""
    pairs, both = (
        whyrank.audit(["bm25", "ql"], "sample", studies, limit=400, delta=0)
        for studies in ("transferred/paraphrase", ["transferred/paraphrase", "matched/length|relevance"])
    )
    assert pairs.fidelity == {}
    found, texts = both.fidelity["ql"], both.scores["ql"]
    assert min(found.documents) >= 5
    assert set(found.queries) == {query for query, docs in texts.items() if len(docs) >= 5} < set(texts)
    assert np.nanmean(found.values["pearson"]) > 0.5


def test_fidelity_of_all_rankers_is_over_the_same_queries():
    """A mean over queries for which another ranker has none would say nothing of the two."""

    def blind(queries, docs):
        return [0.0 if query == "cats" else float(len(doc)) for query, doc in zip(queries, docs, strict=True)]

    def constant(queries, docs):
        return [1.0] * len(docs)

    docs = [{"id": str(i), "text": f"cats and dogs {'purr ' * i}"} for i in range(5)]
    judged = [{"query": query, "doc_id": str(i), "score": i % 2} for query in ("cats", "dogs") for i in range(5)]
    shop = whyrank.Collection.from_frames(docs, [{"query": "cats"}, {"query": "dogs"}], judged)
    found = whyrank.audit(["bm25", "ql", blind, constant], shop, "matched/length|relevance", delta=0, tolerance=1.0)
    assert {ranker: list(each.queries) for ranker, each in found.fidelity.items()} == {
        "ql": ["dogs"],
        "blind": ["dogs"],
    }


def test_the_report_has_rows_of_the_table_for_words_of_queries(tmp_path):
    docs = {"a": "cats purr", "b": "cats purr and sleep a lot", "c": "dogs bark"}
    queries = {"q": "cats", "r": "cats <b>bark</b>", "s": "Bark"}
    collection = whyrank.Collection.of(docs, queries, {q: {"a": 1, "b": 1, "c": 0} for q in queries})
    table = whyrank.TermTable.from_triples(
        [*(["cats"] * 12), "bark", "fish"],
        [*(f"cat{i}" for i in range(12)), "<i>woof</i>", "fin"],
        [*range(12), 2, 3],
    )
    found = whyrank.audit(longer, collection, SHUFFLED, delta=0, table=table, out=tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    rows = page.partition('<table class="figures plain" id="terms">')[2].partition("</table>")[0]
    assert [rows.index(">bark<"), rows.index(">cats<")] == sorted([rows.index(">bark<"), rows.index(">cats<")])
    assert "cat11" in rows
    assert "cat2 " in rows
    assert "cat1 " not in rows, "ten document terms each"
    assert "fish" not in rows
    assert "&lt;i&gt;woof&lt;/i&gt;" in rows
    assert "fidelity-title" not in page, "one ranker stands in for nothing"
    assert whyrank.open_audit(tmp_path / "out").table["cats"] == table["cats"]
    assert len(found) == 1


def test_findings_as_a_data_frame(audit):
    pandas = pytest.importorskip("pandas")
    frame = audit.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["study"].tolist() == [finding.study for finding in audit]


def test_findings_as_a_data_frame_of_polars(audit):
    polars = pytest.importorskip("polars")
    frame = audit.to_polars()
    assert isinstance(frame, polars.DataFrame)
    assert frame["score"].to_list() == [finding.score for finding in audit]
    assert frame.columns == list(audit.to_pandas().columns)


def test_a_data_frame_needs_its_package(audit, monkeypatch):
    for package in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingExtra, match=package):
            getattr(audit, f"to_{package}")()


def test_a_notebook_shows_headlines_and_the_heat_map(audit):
    page = audit._repr_html_()
    assert page.startswith("<p>Audit(3 studies of toy0, longer on toys)</p><ul><li>")
    assert all(f"<li>{line}" in page.replace("&#39;", "'") for line in str(audit).split("\n"))
    assert page.count("<svg ") == 1
    assert not set(re.findall(r"https?://[^\"' )]+", page)) - {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    values = audit.plot().to_dict()["layer"][0]["encoding"]
    assert (values["x"]["field"], values["y"]["field"]) == ("ranker", "study")


def test_hostile_names_stay_text_in_a_notebook():
    def hostile(queries, docs):
        return [len(doc) for doc in docs]

    hostile.__name__ = "</svg><script>alert(1)</script>"
    page = whyrank.audit(hostile, toy_collection(), SHUFFLED, delta=0.1)._repr_html_()
    assert "<script" not in page
    assert "alert(1)" in page


def test_charts_of_studies_by_pattern(audit):
    assert "words shuffled" in str(audit.plot("edited/*").to_dict())
    assert "words shuffled" not in str(audit.plot("bias/*").to_dict())
    assert len(audit.plot("*").to_dict()["vconcat"]) == 2
    with pytest.raises(WhyrankError, match="ties alone"):
        audit.plot("axiom/*")
    with pytest.raises(UnknownName, match="axiom/TFC1"):
        audit.plot("axiom/TFC9")


def test_without_names_all_that_the_collection_allows(monkeypatch):
    monkeypatch.setattr("whyrank.studies.catalogue.probes_and_axioms", lambda: Catalogue(axioms))
    docs = {"a": "cats purr", "b": "cats purr and sleep a lot", "c": "dogs"}
    collection = whyrank.Collection.of(docs, {"q": "cats"}, {"q": {"a": 1, "b": 1, "c": 0}})
    found = whyrank.audit(longer, collection, limit=2)
    assert len(found.studies) > 20
    assert {study.partition("/")[0] for study in found.studies} == {"axiom"}
