"""Axioms on counts of query terms against nested loops over their definitions."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import pytest
from count_oracles import COLLECTIONS, CUTS, LENGTHS, check_signs, crowd, found_by, made, near, oracle, real
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.studies.axioms.counts import AND, DIV, M_AND, M_TDC, TDC, TFC1, TFC3
from whyrank.studies.axioms.length import TF_LNC

COMPAT = "camara-hauff"
CASES = [(TFC1, None), (TFC1, COMPAT), (TFC3, None), (TDC, None), (M_TDC, None), (M_TDC, COMPAT), (TF_LNC, None)]
CASES += [(AND, None), (M_AND, None), (DIV, None)]
every_axiom = pytest.mark.parametrize(("kind", "compat"), CASES, ids=lambda case: getattr(case, "name", case))


def tfc1(axiom, facts, one, two):
    sums = [sum(doc.count[q] for q in facts.terms) for doc in (one, two)]
    least = all(one.count[q] >= two.count[q] for q in facts.terms)
    return near(one.length, two.length, axiom.length) and min(sums) >= 1 and least and sums[0] > sums[1]


def tfc3(axiom, facts, one, two):
    for a in facts.terms:
        for b in facts.terms:
            if a == b or one.count[a] == 0 or one.count[b] == 0 or two.count[b] != 0:
                continue
            others = all(one.count[q] == two.count[q] for q in facts.terms if q not in (a, b))
            similar = near(facts.idf(a), facts.idf(b), axiom.idf) and near(one.length, two.length, axiom.length)
            if two.count[a] == one.count[a] + one.count[b] and others and similar:
                return True
    return False


def tdc(axiom, facts, one, two):
    differ = [q for q in facts.terms if one.count[q] != two.count[q]]
    if len(differ) != 2 or not near(one.length, two.length, axiom.length):
        return False
    for a, b in (differ, differ[::-1]):
        same = one.count[a] + one.count[b] == two.count[a] + two.count[b]
        if same and one.count[a] > two.count[a] and facts.idf(a) >= facts.idf(b):
            return True
    return False


def m_tdc(axiom, facts, one, two):
    sums = [sum(doc.count[q] for q in facts.terms) for doc in (one, two)]
    differ = [q for q in facts.terms if one.count[q] != two.count[q]]
    if sums[0] != sums[1] or not differ or not near(one.length, two.length, axiom.length):
        return False
    covered = set()
    for a in differ:
        for b in differ:
            rarity = [1 / max(facts.cf[q], 1) if axiom.compat else facts.idf(q) for q in (a, b)]
            swapped = one.count[a] == two.count[b] and one.count[b] == two.count[a] and one.count[a] > two.count[a]
            if swapped and rarity[0] >= rarity[1] and facts.asked.count(a) >= facts.asked.count(b):
                covered |= {a, b}
    return covered == set(differ)


def tf_lnc(axiom, facts, one, two):
    for w in facts.terms:
        others = all(one.count[q] == two.count[q] for q in facts.terms if q != w)
        rests = [doc.length - doc.count[w] for doc in (one, two)]
        if one.count[w] > two.count[w] and others and near(*rests, axiom.length):
            return True
    return False


def and_(axiom, facts, one, two):
    full = [all(doc.count[q] for q in facts.terms) for doc in (one, two)]
    return len(facts.terms) >= 2 and near(one.length, two.length, axiom.length) and full[0] and not full[1]


def m_and(axiom, facts, one, two):
    had = [sum(doc.count[q] > 0 for q in facts.terms) for doc in (one, two)]
    return len(facts.terms) >= 2 and near(one.length, two.length, axiom.length) and had[0] > had[1]


def div(axiom, facts, one, two):
    def jaccard(doc):
        asked, words = set(facts.terms), set(doc.count)
        return Fraction(len(asked & words), max(1, len(asked | words)))

    return near(one.length, two.length, axiom.length) and jaccard(one) < jaccard(two)


RULES = {TFC1: tfc1, TFC3: tfc3, TDC: tdc, M_TDC: m_tdc, TF_LNC: tf_lnc, AND: and_, M_AND: m_and, DIV: div}


def rule_of(axiom):
    return partial(RULES[type(axiom)], axiom)


def expected(axiom, collection):
    return oracle(axiom, collection, rule_of(axiom))


@every_axiom
@given(collection=COLLECTIONS, cut=CUTS, length=LENGTHS, idf=st.sampled_from([0, 0.3, "10%", "50%", "100%"]))
@settings(max_examples=60)
def test_equals_nested_loops(kind, compat, collection, cut, length, idf):
    """Same instances, same winners, each once."""
    more = {"idf": idf} if kind is TFC3 else {}
    axiom = kind(analyzer="whitespace", compat=compat, max_tokens=cut, length=length, **more)
    assert found_by(axiom, collection) == expected(axiom, collection)


@every_axiom
def test_a_crowd_of_documents(kind, compat):
    """Here each axiom has instances, and contrasts carry the texts and grades of their ids."""
    collection = crowd()
    axiom = kind(analyzer="whitespace", compat=compat, length=1)
    found = axiom.contrasts(collection)
    ids, queries = found.labels["doc_ids"].values().tolist(), found.labels["query_id"].values().tolist()
    assert found_by(axiom, collection) == expected(axiom, collection) != []
    check_signs(axiom, collection, rule_of(axiom))
    assert [[found.docs[d] for d in row] for row in found.doc] == [[collection.docs[d] for d in row] for row in ids]
    assert [found.queries[q] for q in found.query] == [collection.queries[q] for q in queries]
    assert found.labels["relevance"].tolist() == [[int(d[1:]) % 3 for d in row] for row in ids]


@every_axiom
@pytest.mark.parametrize("name", ["cranfield", "msmarco_dl19"])
def test_real_collections(kind, compat, name, data_folder, collections):
    axiom = kind(compat=compat, max_tokens=60)
    found = found_by(axiom, collections(name))
    assert found == expected(axiom, collections(name))
    assert found or kind is AND, "no document has all terms of a long query"


@pytest.fixture(scope="module")
def collections(data_folder):
    opened = {}
    return lambda name: opened.get(name) or opened.setdefault(name, real(data_folder / name))


LONG = " ".join("xyz" * 5)
OUTSIDE = [
    (TFC1, "a b", "a a", "a", f"a {LONG}", "length"),
    (TFC1, "a b", "a a", "a", "x", "no query term"),
    (TFC3, "a b", "a b", "a a", f"a a {LONG}", "length"),
    (TFC3, "a b", "a b", "a a", "a a a", "other sum"),
    (TDC, "a b", "a x y z", "b x y z", f"b {LONG}", "length"),
    (TDC, "a b", "a x y z", "b x y z", "b b x y z", "other sum"),
    (M_TDC, "a b", "a x y z", "b x y z", f"b {LONG}", "length"),
    (M_TDC, "a b", "a x y z", "b x y z", "b b x y z", "other sum"),
    (TF_LNC, "a b", "a a x", "a x", "a x y", "length of the rest"),
    (TF_LNC, "a b", "a a x", "a x", "b a x", "a second term"),
]


@pytest.mark.parametrize(("kind", "query", "winner", "loser", "outside", "why"), OUTSIDE, ids=lambda x: str(x)[:12])
def test_preconditions_exclude(kind, query, winner, loser, outside, why):
    """The first pair is an instance; with the other loser it is none."""
    collection = made([winner, loser, outside, "b", "b y"], [query])
    axiom = kind(analyzer="whitespace")
    assert axiom.preference(query, winner, loser, collection) == 1, why
    assert axiom.preference(query, loser, winner, collection) == -1, why
    assert axiom.preference(query, winner, outside, collection) == 0, why
    assert ("q0", ("d0", "d1")) in found_by(axiom, collection)
    assert not [row for row in found_by(axiom, collection) if set(row[1]) == {"d0", "d2"}]


def test_query_frequency_and_rarity_decide_exchanges():
    """M-TDC asks that the rarer term is not less frequent in the query, by document or by collection frequency."""
    collection = made(["a x", "b x", "b y", "a a a a"], ["a b", "a b b"])
    pair = collection.docs["d0"], collection.docs["d1"]
    assert M_TDC(analyzer="whitespace").preference("a b", *pair, collection) == 0  # both directions hold
    assert M_TDC(analyzer="whitespace", compat=COMPAT).preference("a b", *pair, collection) == -1
    assert M_TDC(analyzer="whitespace").preference("a b b", *pair, collection) == -1


def test_an_exchange_goes_both_ways():
    """Two terms that take over the count of a third have not exchanged it: their own counts went nowhere."""
    collection = made(["b c", "b c"], ["a b c"])
    assert M_TDC(analyzer="whitespace").preference("a b c", "a a b c", "b b c c", collection) == 0
    assert M_TDC(analyzer="whitespace").preference("a b c", "a a b c", "a b b c", collection) == 1


@pytest.mark.parametrize("axiom", [TDC(analyzer="whitespace"), M_TDC(analyzer="whitespace", compat=COMPAT)])
def test_a_word_that_the_collection_lacks_is_as_rare_as_one_that_occurs_once(axiom):
    assert axiom.preference("a b", "a", "b", made(["b"], ["a"])) == 0
    assert axiom.preference("a b", "a", "b", made(["b", "b x"], ["a"])) == 1


def test_both_orders_only_under_compat():
    collection = made(["a x", "b x"], ["a b"])
    assert found_by(M_TDC(analyzer="whitespace"), collection) == []
    assert found_by(TDC(analyzer="whitespace"), collection) == []
    both = [("q0", ("d0", "d1")), ("q0", ("d1", "d0"))]
    assert found_by(M_TDC(analyzer="whitespace", compat=COMPAT), collection) == both


@pytest.mark.parametrize("percent", [10, 29, 35, 57, 58, 70, 82])
def test_a_share_of_the_length_includes_its_end(percent):
    """29% of 100 tokens are 29, although 0.29 * 100 is less in floating point."""
    axiom = TFC1(analyzer="whitespace", length=f"{percent}%")
    for longer in range(50, 400, 10):
        room = percent * longer // 100
        texts = ["a a " + "x " * (longer - 2), "a " + "x " * (longer - room - 1), "a " + "x " * (longer - room - 2)]
        assert axiom.preference("a", texts[0], texts[1]) == 1
        assert axiom.preference("a", texts[0], texts[2]) == 0


@pytest.mark.parametrize(
    ("kind", "query", "first", "second", "length", "wanted"),
    [
        (AND, "berlin wall", "wall berlin", "wall wall", None, 1),
        (AND, "berlin wall", "wall berlin a a a", "wall wall", 2, 0),  # 5 and 2 tokens
        (AND, "wall wall", "wall", "cat", None, 0),  # one distinct term
        (AND, "berlin wall", "wall", "cat", None, 0),  # neither has all
        (M_AND, "berlin wall fall", "wall fall", "berlin berlin", None, 1),
        (M_AND, "wall", "wall", "cat", None, 0),
        (M_AND, "berlin wall", "wall berlin a a a", "wall", "50%", 0),
        (DIV, "wall", "wall a cat", "wall a", None, 1),
        (DIV, "wall", "wall a a a", "wall a", None, 0),  # sets, not counts
        (DIV, "wall", "", "wall", None, 1),
        (DIV, "wall", "wall a cat", "wall a", 0, 0),
        (DIV, "", "", "", None, 0),
    ],
)
def test_small_cases_of_coverage(kind, query, first, second, length, wanted):
    study = kind(analyzer="whitespace", length=length)
    assert study.preference(query, first, second) == wanted
    assert study.preference(query, second, first) == -wanted


def test_close_fractions_are_told_apart():
    """13,333 / 40,000 is less than 13,334 / 40,003, but not by a billionth."""
    words = [f"w{i}" for i in range(40_000)]
    first, second = words[:13_333], [*words[:13_334], "x", "y", "z"]
    study = DIV(analyzer="whitespace", max_tokens=None)
    assert study.preference(*map(" ".join, (words, first, second))) == 1


def test_max_tokens_hides_the_rest():
    study = AND(analyzer="whitespace", max_tokens=2)
    assert study.preference("berlin wall", "a berlin wall", "a cat") == 0
    assert study.preference("berlin wall", "berlin wall", "a cat") == 1
