"""Bias studies: call strings, templates, filters, and what rankers with a known bias, or none, answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from toy_bias import BRANDS, PLANTED, YEARS, Toy, ask_bias, toy_collection, toy_table
from whyrank.core import Study, WhyrankError
from whyrank.data import Collection
from whyrank.studies.bias import BiasResult, Substitution, bias_studies
from whyrank.studies.bias.correlation import appended_weights
from whyrank.studies.bias.filters import apply_filters
from whyrank.studies.bias.templates import Template
from whyrank.studies.bias.values import Slotted
from whyrank.tables import TermTable

CARS = f"bias/substitution(values={'+'.join(BRANDS)})"
DATES = f"bias/when-year(values={'+'.join(YEARS)},templates=found)"
PRESETS = [name for name in bias_studies.names() if name != "bias/substitution"]


@pytest.mark.parametrize("name", bias_studies.names())
def test_every_study_is_a_study_and_its_call_string_makes_it_again(name):
    study = bias_studies.create(name, seed=3)
    assert isinstance(study, Study)
    assert bias_studies.create(study.id) == study
    assert study.id.startswith(name)


@given(
    st.fixed_dictionaries({}, optional={
        "values": st.text("abc+ 2", min_size=1).filter(str.strip), "head": st.text("ab'() =,", min_size=1),
        "templates": st.sampled_from(["found", "both", "written"]), "most": st.integers(1, 99),
        "cluster": st.sampled_from(["both", "doc", "query", "pair"]), "filters": st.just("one-value|relevant(rank=3)"),
    })
)  # fmt: skip
def test_call_strings_come_back(arguments):
    study = Substitution("car-brand", **arguments)
    assert bias_studies.create(study.id) == study


@pytest.mark.parametrize("name", PRESETS)
def test_a_lexical_ranker_has_no_preference_for_words_that_no_query_has(name):
    [result] = ask_bias(name, "bm25", "sample", resamples=200)
    assert result.n_templates > 5
    if name in ("bias/postfix-letter", "bias/country"):
        return  # stems, and names of two words that make a text longer, do count
    assert max(abs(row.effect) for row in result.values) < 1e-6
    assert result.p_value == 1
    assert not result.significant()


def test_a_given_template_file(tmp_path):
    file = tmp_path / "templates.tsv"
    file.write_text("which tea\tdrink {value} now\nwhich one\tsome {value}\n")
    [result] = ask_bias(f"bias/substitution(values=mint+rose,templates='{file}')", Toy(), toy_collection())
    assert result.n_templates == 2
    file.write_text("which tea\tdrink now\n")
    with pytest.raises(WhyrankError, match=r"templates\.tsv:1: is no template"):
        ask_bias(f"bias/substitution(values=mint+rose,templates='{file}')", Toy(), toy_collection())


def test_a_given_query_and_text():
    study = "bias/substitution(values=mint+rose,query='which tea',doc='drink {value} tea')"
    [result] = ask_bias(study, Toy(words=(("rose", 0.5),), scale=0.0), toy_collection())
    assert [(row.value, round(row.effect, 6)) for row in result.values] == [("mint", -0.25), ("rose", 0.25)]
    assert result.p_value is None
    assert "without tests" in result.notes[0]


def test_the_published_template():
    for call in ("bias/when-year(templates=published)", "bias/when-year(compat=relevance-thesaurus)"):
        grid = bias_studies.create(call).grid(toy_collection())
        [template] = grid.templates
        assert template.query == "when did north carolina join ifta"
        assert grid.texts()[0][:2] == ["2000 north carolina join ifta", "2001 north carolina join ifta"]
        assert len(grid.values) == 25


def templates():
    texts = ["the {value} mustang", "the {value} is red", "a {value} here"]
    return [
        Template("q", Slotted.of(t), "q1", f"d{i}", "Ford", frozenset(["BMW"] if i == 2 else []))
        for i, t in enumerate(texts)
    ]


def kept(filters, scores=None):
    return [template.doc_id for template in apply_filters(templates(), filters, scores)[0]]


def test_filters(tmp_path, monkeypatch):
    def scores(given):
        return np.array([{"d0": 3.0, "d1": 2.0, "d2": np.nan}[template.doc_id] for template in given])

    assert kept("") == ["d0", "d1", "d2"]
    assert kept("one-value") == ["d0", "d1"]
    assert kept("without(words=mustang+red)") == ["d2"]
    assert kept("without(words=must+xx,parts=True)") == ["d1", "d2"]
    assert kept("relevant(above=2.5)", scores) == ["d0"]
    assert kept("relevant(rank=2)", scores) == ["d0", "d1"]
    assert kept("relevant(rank=1)|one-value", scores) == ["d0"]
    assert kept("relevant(above=2.5)") == ["d0", "d1", "d2"], "without a ranker nobody can say"
    (tmp_path / "keep.txt").write_text("d1\nq1\td2\nq2\td0\n")
    assert kept(f"keep:{tmp_path / 'keep.txt'}") == ["d1", "d2"]
    (tmp_path / "judges.py").write_text("def red(queries, texts):\n    return ['red' in text for text in texts]\n")
    monkeypatch.chdir(tmp_path)
    assert kept("python:judges.py:red") == ["d1"]
    assert apply_filters(templates(), "one-value", None)[1] == {"by one-value": 1}
    assert kept("without(words=value+price)") == ["d0", "d1", "d2"], "the mark of a slot is no word"
    assert kept("without(words=alu+price,parts=True)") == ["d0", "d1", "d2"]


REFUSED = {
    "bias/substitution(values=a+b,cluster=word)": "cluster",
    "bias/substitution(values=a+b,query='x')": "query= and doc= go together",
    "bias/substitution(values=a+b,queries=nofile)": "is no file",
    "bias/substitution(values=a+b,templates=nofile)": "is no file",
    "bias/substitution(values=a+b,compat=abnirml)": "unknown value of bias: compat",
    "bias/car-brand(templates=published)": "only bias/when-year has",
    "bias/substitution(values=a+b,templates=written)": "no written templates",
    "bias/car-brand(most=0)": "whole number",
    "bias/car-brand(templates=written,filters=relevant)": "above=SCORE or rank=K",
    "bias/car-brand(templates=written,filters='relevnt(rank=1)')": "unknown bias filter",
    "bias/car-brand(templates=written,filters=python:nomodule_x:f)": "cannot be imported",
    "bias/car-brand(templates=written,filters=without)": "needs 'words'",
}


@pytest.mark.parametrize(("call", "message"), REFUSED.items())
def test_wrong_studies(call, message):
    with pytest.raises(WhyrankError, match=message):
        bias_studies.create(call).grid(toy_collection())


def test_planted_biases_are_found():
    brands, dates, letters = ask_bias(
        [CARS, DATES, "bias/postfix-letter"], PLANTED, toy_collection(), resamples=2_000
    )
    assert brands.significant()[0].value == "honda"
    assert brands.value("honda").effect == pytest.approx(0.3 * (1 - 1 / len(BRANDS)), abs=0.05)
    assert brands.value("honda").low < 0.3 * (1 - 1 / len(BRANDS)) < brands.value("honda").high
    assert dates.significant()[0].value == "2007"
    assert dates.value("2007").effect < -0.15
    assert [letters.significant()[0].value, letters.changes] == ["q", True]
    for result in (brands, dates, letters):
        assert result.p_adjusted < 0.01
        assert result.sd > 0
        assert result.n_clusters > 20


def test_a_table_and_counts_are_compared():
    collection = toy_collection()
    [result] = ask_bias(f"{CARS[:-1]},head=car)", PLANTED, collection, table=toy_table(PLANTED), delta=0.1)
    named = {(c.first, c.second, c.given): c for c in result.correlations}
    assert named["mean score", "weight", ""].pearson > 0.6
    assert named["mean score", "weight", ""].p_value < 0.05
    counts = {row.value: row.count for row in result.values}
    assert counts == {b: sum(text.lower().count(b) for text in collection.docs.values()) for b in BRANDS}
    assert result.value("honda").deltas == pytest.approx(result.value("honda").effect / 0.1)
    assert result.value("honda").weight == pytest.approx(toy_table(PLANTED).weight("car", "honda"))


def judged_for_all(docs, queries):
    """Texts that are judged relevant for all queries."""
    texts, named = (
        {f"{kind}{i}": text for i, text in enumerate(given)} for kind, given in (("d", docs), ("q", queries))
    )
    return Collection.of(texts, named, {q: dict.fromkeys(texts, 1) for q in named}, name="few")


def test_templates_of_one_text_are_one_cluster():
    docs = ["A Honda is red.", *(f"A Ford of type {i} is blue." for i in range(3))]
    collection, sizes = judged_for_all(docs, [f"question {i}" for i in range(6)]), {}
    for cluster in ("both", "doc", "query", "pair"):
        study = f"bias/substitution(values=honda+ford,cluster={cluster})"
        [result] = ask_bias(study, Toy(), collection, resamples=50)
        sizes[cluster] = (result.n_templates, result.n_clusters)
        assert any("cannot be below 0.125" in note for note in result.notes) == (cluster in ("both", "doc"))
    assert sizes == {"both": (24, 4), "doc": (24, 4), "query": (24, 6), "pair": (24, 24)}


def few(n):
    return judged_for_all([f"Number {i} is a valuea." for i in range(n)], ["question"])


TEN = "+".join(f"value{chr(97 + i)}" for i in range(10))
UNEVEN = Collection.of(
    {f"d{i}": f"A valuea of type {i} is red." for i in range(7)},
    {"q": "which is red", **{f"o{i}": f"question {i}" for i in range(3)}},
    {"q": {f"d{i}": 1 for i in range(4)}, **{f"o{i}": {f"d{4 + i}": 1} for i in range(3)}},
)


@pytest.mark.parametrize(
    ("collection", "options", "resamples", "correction", "note"),
    [
        # eight texts, ten values: the least p is 2/2^8, and ten times that is above 5%
        (few(8), ",cluster=doc", 200, "holm", "nor 0.078 after correction over 10 values"),
        (few(8), ",cluster=doc", 200, "bh", None),
        (few(20), "", 99, "holm", "99 draws of signs: the p-value of a value cannot be below 0.01"),
        (few(20), "", 999, "holm", None),
        (few(9), "", 999, "none", "all 9 templates are of the query 'question'"),
        (UNEVEN, ",cluster=doc", 50, "none", "4 of 7 templates are of the query 'which is red'"),
    ],
)
def test_notes_say_what_the_tests_cannot(collection, options, resamples, correction, note):
    study, kinds = f"bias/substitution(values={TEN}{options})", ("cannot be below", "are of the query 'which")
    [result] = ask_bias(study, Toy(), collection, resamples=resamples, correction=correction)
    said = [each for each in result.notes if (note or "\0") in each]
    assert said if note else not any(kind in each for each in result.notes for kind in kinds)


def without_scores(*words):
    """A ranker that scores no text with one of these words."""

    class Silent(Toy):
        def score(self, queries, docs):
            scores = super().score(queries, docs)
            return np.where([any(word in doc for word in words) for doc in docs], np.nan, scores)

    return Silent()


def test_a_value_without_any_score_is_left_out_and_the_others_are_compared():
    [result] = ask_bias("bias/substitution(values=Honda+Ford+Toyota)", without_scores("Ford"), toy_collection())
    [whole] = ask_bias("bias/substitution(values=Honda+Ford+Toyota)", Toy(), toy_collection())
    assert (result.n_templates, result.nonfinite, result.n_values) == (whole.n_templates, 0, 3)
    assert result.unscored == {"Ford": whole.n_templates}
    means = {row.value: row.mean for row in whole.values}
    assert {row.value: row.mean for row in result.values} == {v: pytest.approx(means[v]) for v in ("Honda", "Toyota")}
    assert [row.count for row in result.values] == [row.count for row in whole.values if row.value != "Ford"]
    assert "left out, without a finite score in any template: Ford" in result.notes
    assert BiasResult.from_dict(result.as_dict()) == result


def test_words_that_are_not_counted_have_no_count():
    docs = {"d": "It costs 20 dollars.", "e": "He won 20 pounds."}
    collection = Collection.of(docs, {"q": "what does it cost"}, {"q": dict.fromkeys(docs, 1)}, name="money")
    [result] = ask_bias("bias/currency", Toy(), collection, resamples=50)
    counts = {row.value: row.count for row in result.values}
    assert (counts["dollars"], counts["yen"], counts["won"], counts["pounds"]) == (1, 0, None, None)
    assert {c.n for c in result.correlations if c.second == "count"} == {17}


def test_an_unbiased_ranker_is_significant_no_more_often_than_stated():
    """Noise for every template and value, and no effect of a value: 100 rankers."""
    collection = toy_collection(16)
    calls = [f"bias/substitution(values={'+'.join(BRANDS[:6])})", "bias/postfix-letter(values=a+b+c+d+e)"]
    studies, counts = [bias_studies.create(call) for call in calls], np.zeros((2, 3), int)
    for seed in range(100):
        for i, result in enumerate(ask_bias(studies, Toy(seed), collection, resamples=400, correction="holm")):
            pairs = any(row.p_adjusted < 0.05 for row in result.pairs)
            counts[i] += [result.p_value < 0.05, bool(result.significant()), pairs]
    assert (counts <= binom.ppf(0.999, 100, 0.05)).all(), counts
    assert counts[:, 0].sum() >= binom.ppf(0.001, 200, 0.05), "a test that never rejects tests nothing"


def test_written_templates_whose_query_names_a_value_are_left_out_and_counted():
    grid = bias_studies.create("bias/currency(values=money+shells+beads,templates=written)").grid(toy_collection())
    assert (len(grid), grid.dropped) == (7, {"by a value in the query": 1})
    assert not any("money" in template.query for template in grid.templates)
    grid = bias_studies.create("bias/currency(values=bicycle+shells,templates=written)").grid(toy_collection())
    assert (len(grid), grid.dropped) == (7, {"by a value in the query": 1})
    grid = bias_studies.create("bias/currency(values=counter+shells,templates=written)").grid(toy_collection())
    assert (len(grid), grid.dropped) == (7, {"by one-value": 1}), "a text has the value besides"


def test_a_limit_does_not_change_what_the_best_texts_of_a_query_are():
    docs = {f"d{i}": f"Text {i} on a Ford of type {i * 7}." for i in range(150)}
    queries = {f"q{i}": f"which car has number {i}" for i in range(100)}
    collection, asked = Collection.of(docs, queries, name="crossed"), []

    def scores(given):
        asked.append(len(given))
        return np.array([float(template.doc_id[1:]) for template in given])

    for most in (500, 3):
        call = f"bias/car-brand(templates=found,filters='relevant(rank=6)',most={most})"
        grid = bias_studies.create(call).grid(collection, scores)
        best = [int(template.doc_id[1:]) for template in grid.templates]
        assert np.mean(best) > 135, "of two thirds of the texts, which are looked at, the best six of each query"
        assert grid.dropped["not looked at"] == 150 * 100 - 10_000
        assert grid.dropped["not drawn"] + len(grid) == 600
    assert asked == [10_000, 10_000]


def test_years_in_another_order_than_their_own_have_no_shifts():
    for values, ordered in (("2000..2004", True), ("2004+2000+2001+2003+2002", False)):
        assert bias_studies.create(f"bias/when-year(values={values})").grid(toy_collection()).ordered is ordered


def test_a_weight_of_zero_is_a_weight():
    pairs = [("car", brand) for brand in BRANDS]
    table = TermTable.from_triples(*zip(*pairs, strict=True), [0.0, *np.linspace(0.1, 0.9, len(BRANDS) - 1)])
    [result] = ask_bias(f"{CARS[:-1]},head=car)", Toy(), toy_collection(), table=table, resamples=50)
    assert result.values[0].weight == 0
    assert not any("no weight" in note for note in result.notes)
    [result] = ask_bias(CARS, Toy(), toy_collection(), table=table, resamples=50)
    assert "no weights of the table: give head=WORD, the query term that they are of" in result.notes


def test_weights_of_letters_are_compared_within_words():
    """The letter b is there only for words whose forms all weigh much, and weighs less than the others there."""
    found = np.array([[0.9, 0.8, 0.9], [0.8, 0.7, 0.8], [0.1, np.nan, 0.1], [np.nan, 0.9, np.nan]])
    weights = appended_weights(found)
    assert weights[1] < weights[0]
    assert weights[0] == weights[2]
    whole = found[:2]
    np.testing.assert_allclose(appended_weights(whole), whole.mean(axis=0))
    assert np.isnan(appended_weights(np.array([[0.5, np.nan, np.nan]]))).all()
