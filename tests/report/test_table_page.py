"""The page of a term table holds its entries, each with its class, and nothing that a browser would run."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.report import table_page, write_page
from whyrank.report.table_page import classes_of_entries, render_table
from whyrank.tables import TermTable


def table(*entries, **facts) -> TermTable:
    query, doc, weights = zip(*entries, strict=True)
    return TermTable.from_triples(list(query), list(doc), list(weights), **facts)


def data_of(html: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)[1])


def entries_of(data: dict) -> set:
    rows = np.repeat(np.arange(len(data["query"])), data["rows"])
    named = zip(rows, data["terms"], data["weights"], strict=True)
    return {(data["query"][q], data["doc"][d], weight) for q, d, weight in named}


@pytest.mark.parametrize(
    ("query", "doc", "kind"),
    [
        ("car", "car", "the term itself"),
        ("car", "cara", "a character more"),
        ("cars", "car", "a character less"),
        ("when", "1999", "years"),
        ("when", "12", "numerals"),
        ("when", "2nd", "ordinals"),
        ("car", "toyota", "car-makes"),
        ("where", "france", "countries"),
        ("car", "b2b", "mixed"),
        ("car", "vehicle", "words"),
        ("199", "1999", "a character more"),
    ],
)
def test_classes(query, doc, kind):
    made = table((query, doc, 0.5), ("other", "word", 0.1))
    classes, codes = classes_of_entries(made)
    names = {
        (made.query_terms[q], made.doc_terms[d]): classes[c]
        for q, d, c in zip(made.row_numbers(), made.indices, codes, strict=True)
    }
    assert names == {(query, doc): kind, ("other", "word"): "words"}


def test_lists_are_found_as_the_analyzer_writes_them():
    stemmed = table(("country", "germani", 0.3), ("country", "peopl", 0.2), analyzer="lucene")
    assert set(classes_of_entries(stemmed)[0]) == {"countries", "words"}


terms = st.text(min_size=1, max_size=6).filter(lambda t: t.strip() == t and t.isprintable())


@given(st.dictionaries(st.tuples(terms, terms), st.sampled_from([0.125, 0.5, 1.0]), min_size=1, max_size=12))
def test_the_page_holds_every_entry(entries):
    made = table(*((q, d, w) for (q, d), w in entries.items()))
    assert entries_of(data_of(render_table(made, "t"))) == {(q, d, w) for (q, d), w in entries.items()}


def test_terms_and_facts_cannot_be_markup():
    html = render_table(table(("</script><b>", "<img src=x>", 0.5), learner="<i>em</i>"), "<u>name</u>")
    for tag in ("<b>", "<img", "<i>em", "<u>name"):
        assert tag not in html
    assert entries_of(data_of(html)) == {("</script><b>", "<img src=x>", 0.5)}


def test_threshold_top_and_the_most_that_a_page_holds(tmp_path, monkeypatch):
    made = table(("a", "b", 0.5), ("a", "c", 0.25), ("a", "d", 0.125), ("e", "f", 0.75))
    file = tmp_path / "page.html"
    assert write_page(made, file, "t", threshold=0.2, top=1) == (2, 0)
    assert entries_of(data_of(file.read_text())) == {("a", "b", 0.5), ("e", "f", 0.75)}
    monkeypatch.setattr(table_page, "MOST", 3)
    assert write_page(made, file, "t") == (3, 1)
    assert "1 weaker ones are not on this page" in file.read_text()
    assert ("a", "d", 0.125) not in entries_of(data_of(file.read_text()))


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abcde"), st.sampled_from("uvwxyz")),
        st.sampled_from([k / 64 for k in range(1, 65)]),
        min_size=1,
    ),
    st.integers(1, 20),
)
def test_a_page_that_is_full_has_the_best_of_each_query_term(entries, most):
    made = table(*((q, d, w) for (q, d), w in entries.items()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_page, "MOST", most)
        shown = {(q, d) for q, d, _ in entries_of(data_of(render_table(table_page.strongest_entries(made), "t")))}
    assert len(shown) == min(most, len(entries))
    queries = sorted({q for q, _ in entries})
    for query in queries if len(entries) > most >= len(queries) else []:
        best = max(w for (q, _), w in entries.items() if q == query)
        assert any(q == query and entries[q, d] == best for q, d in shown)
    weakest = min(entries[pair] for pair in shown)
    extra = [pair for pair in entries if pair not in shown and entries[pair] > weakest]
    for query, _ in extra:  # a stronger entry is left out for the sake of terms that have few
        assert sum(q == query for q, _ in shown) >= most // len(queries)
