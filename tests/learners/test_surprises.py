"""Discovery: planted oddities of a table are found and confirmed, and a table of noise has none at the stated rate."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from toy_bias import BRANDS, PLANTED, TERMS, YEARS, Toy, toy_collection, toy_table
from whyrank.data import Collection
from whyrank.learners.surprises import Looking, confirm, surprises
from whyrank.learners.surprises.classes import TermClass, classes_of, words_of
from whyrank.learners.surprises.discovery import standings
from whyrank.learners.surprises.kinds import (
    appended_surprises,
    evidence_surprises,
    postings_of,
    spread_surprises,
    value_surprises,
)
from whyrank.learners.surprises.surprise import most_unseen
from whyrank.scoring import Engine
from whyrank.studies import Plan, answers
from whyrank.studies.bias import bias_studies
from whyrank.studies.probes.edited import missing
from whyrank.tables import TermTable
from whyrank.text.vectors import Vectors

EXPECTED = {("value", "car-makes", 1): "Honda", ("value", "years", -1): "2007", ("appended", "appended", 1): "q"}


def test_planted_oddities_are_found_and_confirmed():
    found = surprises(toy_table(PLANTED), Looking(permutations=5_000))
    most_significant = {}
    for surprise in found.significant():
        most_significant.setdefault((surprise.kind, surprise.group), surprise)
    chosen = [most_significant[kind, group] for kind, group, _ in EXPECTED]
    assert [(s.kind, s.group, s.direction) for s in chosen] == list(EXPECTED)
    assert [s.value for s in chosen] == list(EXPECTED.values())
    cars = toy_collection(about=" in a car")  # bias/car-brand asks queries with this word, and needs more than two
    answered = confirm(chosen, PLANTED, cars)
    assert [s.confirmed for s in answered] == [True, True, True], [s.outcome for s in answered]
    assert all(s.null and "effect" in s.outcome for s in answered)
    again = confirm(chosen, Toy(9), cars)
    assert [s.confirmed for s in again] == [False, False, False], "another ranker has no such bias"


def test_a_table_of_noise_has_surprises_no_more_often_than_stated():
    hits = 0
    for seed in range(80):
        table = toy_table(Toy(seed))
        hits += bool(surprises(table, Looking(permutations=1_500, correction="holm", seed=seed)).significant())
    assert hits <= binom.ppf(0.999, 80, 0.05), hits


def test_one_value_that_stands_out_does_not_make_all_others_odd():
    table = toy_table(Toy(words=(("2007", -2.0),), scale=0.05))
    found = surprises(table, Looking(permutations=2_000, correction="holm"))
    [odd] = [s for s in found.significant() if s.kind == "value"]
    assert (odd.value, odd.direction) == ("2007", -1)
    rest = [table.weight(term, year) for term in TERMS for year in YEARS if year != "2007"]
    assert odd.others == pytest.approx(np.mean(rest))


def spread_table(odd: float) -> TermTable:
    """One query term with many document terms of nearly equal weight, and a class with one member far away."""
    random = np.random.default_rng(4)
    others = [f"word{i}" for i in range(300)]
    years = [str(year) for year in range(1990, 2002)]
    weights = np.concatenate([random.uniform(0.1, 0.12, 300), random.uniform(0.1, 0.12, 11), [odd]])
    return TermTable.from_triples(["when"] * 312, [*others, *years], weights)


def test_the_spread_of_a_class_for_one_query_term():
    table = spread_table(0.9)
    [group] = [each for each in classes_of(table) if each.name == "years"]
    [found] = spread_surprises(table, group, 4_000, 0)
    assert (found.value, found.query_term, found.direction) == ("2001", "when", 1)
    exact = len(group) / 312  # a random set is as wide only where it has the odd one
    assert found.p_value == pytest.approx(exact, abs=0.02)
    [alike] = spread_surprises(spread_table(0.11), group, 4_000, 0)
    assert alike.p_value > 0.2
    study = bias_studies.create(found.study)
    assert (study.head or study.preset.head) == "when"


def test_appended_characters_against_all_orders():
    words = ["abc", "bcd", "cde"]
    longer = [(w, w + c) for w, c in itertools.product(words, "xy")]
    weights = [0.9, 0.1, 0.8, 0.2, 0.7, 0.3]
    found = appended_surprises(TermTable.from_triples(*zip(*longer, strict=True), weights), 5_000, 0).found
    gaps = [0.4, 0.3, 0.2]  # of the first form from the mean of both
    sums = [
        sum(sign * gap for sign, gap in zip(signs, gaps, strict=True))
        for signs in itertools.product([1, -1], repeat=3)
    ]
    exact = np.mean(np.abs(sums) >= sum(gaps) - 1e-9)
    assert {s.value: s.direction for s in found} == {"x": 1, "y": -1}
    for surprise in found:
        assert surprise.p_value == pytest.approx(exact, abs=0.02)


def test_classes(monkeypatch):
    words = [*BRANDS, *YEARS, "france", "spain", "italy", "japan", "12", "13", "14", "15", "1st", "2nd", "3rd", "4th"]
    table = TermTable.from_triples(["car"] * len(words), words, np.full(len(words), 0.5))
    found = {group.name: set(group.values) for group in classes_of(table)}
    makes = "Honda Ford Toyota Volvo Audi Mazda Fiat Jeep Renault Nissan Lexus Peugeot"
    assert found["car-makes"] == set(makes.split())
    assert found["years"] == set(YEARS)
    assert found["countries"] == {"France", "Spain", "Italy", "Japan"}
    assert found["numerals"] == {"12", "13", "14", "15"}
    assert found["ordinals"] == {"1st", "2nd", "3rd", "4th"}
    mine = {group.name: group.values for group in classes_of(table, values="honda+ford+1st+2nd+absent")}
    assert mine["honda+ford+1st+2nd+absent"] == ("honda", "ford", "1st", "2nd")


def test_neighbours_in_vectors_are_a_class():
    words = ["red", "green", "blue", "pink", "grey", "dog", "cat"]
    matrix = np.array([[1, i / 10, 0] for i in range(5)] + [[0, 0, 1], [0, 1, 5]], dtype=np.float32)
    table = TermTable.from_triples(["x"] * 7, words, np.full(7, 0.5))
    [group] = classes_of(table, Vectors("toy", words, matrix))
    assert group.name == "near red"
    assert set(group.values) == set(words[:5])


def evidence() -> tuple[TermTable, Collection]:
    docs = {f"d{i}": ("alpha beta" if i < 30 else "alpha gamma" if i < 60 else "delta beta") for i in range(90)}
    docs |= {f"e{i}": "alpha delta" if i == 0 else "gamma" for i in range(20)}
    table = TermTable.from_triples(
        ["alpha", "alpha", "alpha"], ["delta", "beta", "gamma"], [0.9, 0.2, 0.1], analyzer="whitespace"
    )
    return table, Collection.of(docs, {}, name="evidence")


def test_strong_entries_whose_terms_avoid_each_other():
    table, collection = evidence()
    found = evidence_surprises(table, postings_of(collection, table)).found
    strong = next(s for s in found if s.direction == 1)
    texts = [text.split() for text in collection.docs.values()]
    first, second = (sum(w in text for text in texts) for w in ("alpha", "delta"))
    both = sum("alpha" in text and "delta" in text for text in texts)
    assert (strong.query_term, strong.value, strong.n) == ("alpha", "delta", both)
    assert strong.others == pytest.approx(first * second / len(texts))
    assert strong.p_value == pytest.approx(hypergeom.cdf(both, len(texts), first, second))
    weak = next(s for s in found if s.direction == -1)
    assert weak.value == "gamma", "the row is whole, so the weakest entry can be judged"
    study = bias_studies.create(surprises(table, Looking(collection=collection)).first(1)[-1].study)
    assert (study.head, study.queries) == ("alpha", "head")


def test_entity_types_are_those_of_texts():
    pytest.importorskip("spacy")
    if missing("en_core_web_sm"):
        pytest.skip("needs a spaCy pipeline")
    cities = ["Berlin", "Paris", "Madrid", "Rome", "Vienna"]
    docs = {
        f"d{i}": f"Last year we flew to {a} and later to {b}."
        for i, (a, b) in enumerate(itertools.permutations(cities, 2))
    }
    names = [city.lower() for city in cities]
    table = TermTable.from_triples(["x"] * 6, [*names, "year"], np.full(6, 0.5), analyzer="lucene")
    collection = Collection.of(docs, {}, name="cities")
    found = {g.name: set(g.values) for g in classes_of(table, words=words_of(collection, table, "en_core_web_sm"))}
    assert found["entity GPE"] <= set(names)
    assert len(found["entity GPE"]) >= 4


class TestValuesThatNoCallStringCanHave:
    """A class with `c++`, of which no list joined by plus signs can be made."""

    VALUES = ("c++", "python", "perl", "ruby", "go", "rust")

    def table(self):
        pairs = list(itertools.product(TERMS, self.VALUES))
        random = np.random.default_rng(5)
        weights = [0.5 + random.normal(0, 0.01) - 0.3 * (d == "c++") - 0.2 * (d == "go") for _, d in pairs]
        return TermTable.from_triples(*zip(*pairs, strict=True), weights)

    def collection(self):
        docs = {f"d{i}": f"Text {i} of perl about a {term}." for i, term in enumerate(TERMS)}
        queries = {f"q{i}": f"which {term} is it" for i, term in enumerate(TERMS)}
        return Collection.of(docs, queries, {f"q{i}": {f"d{i}": 1} for i in range(len(TERMS))}, name="languages")

    def test_the_file_that_they_are_from_is_what_the_study_takes(self, tmp_path):
        file = tmp_path / "languages.txt"
        file.write_text("\n".join(self.VALUES))
        found = surprises(self.table(), Looking(permutations=2_000, values=str(file))).significant()
        ranker = Toy(words=(("c", -0.6), ("go", -0.6)), scale=0.02)
        answered = {s.value: s.confirmed for s in confirm(found, ranker, self.collection()) if s.kind == "value"}
        assert (answered["c++"], answered["go"]) == (True, True)

    def test_without_a_file_the_others_are_asked_about_and_the_reason_is_told(self):
        table = self.table()
        group = TermClass("near perl", tuple(table.doc_numbers[v] for v in self.VALUES), self.VALUES)
        found = [s for s in value_surprises(table, group, 2_000, 0).found if s.value in ("c++", "go")]
        ranker = Toy(words=(("go", -0.6),), scale=0.02)
        answered = {s.value: s for s in confirm(found, ranker, self.collection())}
        assert answered["c++"].confirmed is None
        assert answered["c++"].outcome == "not asked: a study takes it only from a file of values"
        assert answered["go"].confirmed is True


class TestRowsThatWereCut:
    """What a table that keeps the best terms of each query term says of those that it lacks."""

    @staticmethod
    def cut(top):
        """Nine query terms whose ten years weigh 0.6 and one more 0.45: little less, and the only one cut away."""
        random = np.random.default_rng(3)
        terms, years = [f"term{chr(97 + i)}" for i in range(9)], [str(year) for year in range(2000, 2011)]
        pairs = list(itertools.product(terms, years))
        weights = [0.45 if year == "2010" else random.uniform(0.55, 0.65) for _, year in pairs]
        whole = TermTable.from_triples(*zip(*pairs, strict=True), weights)
        made = whole.prune(top_query=top)
        return TermTable(made.query_terms, made.doc_terms, made.indptr, made.indices, made.weights, {"top": 10})

    def group(self, table):
        """The years, whether there are entries or not."""
        return TermClass("years", tuple(range(len(table.doc_terms))), tuple(table.doc_terms))

    def test_an_absent_entry_is_no_lower_than_it_must_be(self):
        table = self.cut(10)
        tested = value_surprises(table, self.group(table), 2_000, 0)
        lowest = [min(entry.weight for entry in table.doc_terms_for(term, None)) for term in table.query_terms]
        assert next(s for s in tested.found if s.value == "2010").weight == pytest.approx(np.mean(lowest))
        assert any("after the best 10 of a query term" in each.why for each in tested.partly)
        assert tested.unjudged == []

    @pytest.mark.parametrize("again", [None, 10, 50])
    def test_a_table_that_was_pruned_says_so_itself(self, again):
        table = replace(self.cut(10), facts={}).prune(top_query=10).prune(top_query=again)
        assert (most_unseen(table) > 0.5).all()


def selves(weight):
    """A table of makes: half of them are query terms too, and tied to themselves with a weight or not at all."""
    random = np.random.default_rng(6)
    pairs = [(q, d) for q in BRANDS[:6] for d in BRANDS if weight or q != d]
    weights = [weight if q == d else random.uniform(0.2, 0.3) for q, d in pairs]
    return TermTable.from_triples(*zip(*pairs, strict=True), weights, analyzer="whitespace")


@pytest.mark.parametrize("weight", [1.0, None])
def test_what_a_term_weighs_for_itself_says_nothing_of_its_class(weight):
    table = selves(weight)
    group = TermClass("makes", tuple(table.doc_numbers[brand] for brand in BRANDS), BRANDS)
    tested = value_surprises(table, group, 2_000, 0)
    rows = [[table.weight(q, d) for d in BRANDS] for q in BRANDS[:6]]
    plain = [np.mean([row[i] for q, row in zip(BRANDS, rows, strict=False) if q != d]) for i, d in enumerate(BRANDS)]
    for i, brand in enumerate(BRANDS):
        [found] = [s for s in tested.found if s.value == brand]
        assert found.weight == pytest.approx(plain[i], abs=0.01)
    assert tested.partly == [], "nothing is missing"
    assert sum(s.p_value < 0.05 for s in tested.found) <= 2
    texts = {f"t{i}": " ".join(BRANDS) for i in range(9)}
    strong = evidence_surprises(table, postings_of(Collection.of(texts, {}, name="all"), table))
    assert all(s.query_term != s.value for s in strong.found)
    assert strong.unjudged == []
    assert any(s.direction == 1 for s in strong.found)


def test_where_values_stand_without_outliers_is_what_the_study_says():
    """No value stands out, so each is compared with all others: k / (k - 1) times its effect, and as the study tests."""
    study = bias_studies.create(f"bias/substitution(values={'+'.join(BRANDS[:5])})")
    [answer] = answers(Plan(toy_collection(), {"own": study}, [Toy(3)], Engine()))
    found = standings(answer)
    for row in answer.details.values:
        assert found[row.value].effect == pytest.approx(row.effect * 5 / 4)
        assert found[row.value].low == pytest.approx(row.low * 5 / 4)
        assert found[row.value].high == pytest.approx(row.high * 5 / 4)
        assert found[row.value].p_adjusted == pytest.approx(row.p_adjusted)
