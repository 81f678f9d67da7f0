from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape
from report_samples import NASTY, ToyStudy, toy_answer, toy_contrasts

from whyrank.report.examples import KEPT, choose, marker, shorten
from whyrank.studies import Contrasts, Pair


def chosen(diffs, queries, symmetric=False):
    """Ids of the contrasts chosen at both ends."""
    pairs = [Pair(f"q{q}", ("x", "y"), {"doc_ids": (f"{i}", "-")}) for i, q in enumerate(queries)]
    scores = np.column_stack([np.array(diffs, dtype=float), np.zeros(len(diffs))])
    answer = toy_answer(ToyStudy(symmetric=symmetric), contrasts=Contrasts.from_pairs(pairs), scores=scores)
    found = choose(answer.contrasts, answer.reading)
    return [[int(max(text.id for text in example.texts)) for example in end] for end in (found.high, found.low)]


def test_non_finite_and_zero_differences_are_no_examples():
    assert chosen([np.nan, np.inf, 0, 1, -1], [0, 1, 2, 3, 4]) == [[3], [4]]


def test_a_symmetric_study_has_one_end():
    assert chosen([1, -5, 3], [0, 1, 2], symmetric=True) == [[1, 2, 0], []]


def test_the_favoured_text_of_a_symmetric_study_comes_first():
    contrasts = Contrasts.from_pairs([Pair("q0", ("Ford", "Volvo")), Pair("q1", ("Volvo", "Ford"))])
    answer = toy_answer(ToyStudy(symmetric=True), contrasts=contrasts, scores=[[1.0, 5.0], [4.0, 1.0]])
    found = choose(answer.contrasts, answer.reading)
    assert [[text.text for text in example.texts] for example in found.high] == [["Volvo", "Ford"]] * 2
    assert [example.texts[0].score for example in found.high] == [5.0, 4.0]


@given(st.lists(st.tuples(st.floats(-9, 9), st.integers(0, 4)), min_size=1, max_size=30))
def test_choice_agrees_with_a_plain_search(rows):
    diffs, queries = zip(*rows, strict=True)
    for sign, end in zip((1, -1), chosen(diffs, queries), strict=True):
        ranked = sorted((i for i, d in enumerate(diffs) if sign * d > 0), key=lambda i: -sign * diffs[i])
        firsts = [i for place, i in enumerate(ranked) if queries[i] not in {queries[j] for j in ranked[:place]}][:3]
        others = [i for i in ranked if i not in firsts][: 3 - len(firsts)]
        assert sorted(end) == sorted(firsts + others)


def test_an_example_knows_its_texts():
    found = choose(toy_contrasts(), toy_answer().reading)
    example = found.high[0]
    assert (example.query_id, [text.id for text in example.texts]) == ("q0", ["a0", "b0"])
    assert example.texts[0].text == "long text 0 " + NASTY
    assert (example.diff, example.effect) == (1.0, 1)


def test_a_huge_text_is_cut_but_its_length_known():
    answer = toy_answer(contrasts=Contrasts.from_pairs([Pair("q", ("x" * (KEPT + 5), "y"))]), scores=[[2, 1]])
    text = choose(answer.contrasts, answer.reading).high[0].texts[0]
    assert (len(text.text), text.length) == (KEPT, KEPT + 5)


def test_texts_are_cut_between_words():
    assert shorten("one two three four", 9) == "one two …"
    assert shorten("one", 3) == "one"
    assert shorten("x" * 10, 5) == "xxxxx …"


def test_words_of_the_query_are_marked():
    assert marker("The cat & dog")("A CAT, the concat <dog>") == (
        "A <mark>CAT</mark>, the concat &lt;<mark>dog</mark>&gt;"
    )


@given(st.text(), st.text())
def test_marked_text_is_the_escaped_text(query, text):
    assert marker(query)(text).replace("<mark>", "").replace("</mark>", "") == escape(text)
