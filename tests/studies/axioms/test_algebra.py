"""Combinations of axioms: truth tables, laws, call strings and expressions."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.data import Collection
from whyrank.studies.axioms import Axiom, axioms, is_pattern, parse_expression
from whyrank.studies.axioms.algebra import And, Not, Sum, plus, reverse, vote
from whyrank.studies.axioms.counts import DIV, M_AND, TFC1, TFC2
from whyrank.studies.axioms.duplicates import LNC2
from whyrank.studies.axioms.length import LNC1

UNLISTED = ("and", "or", "not", "sum", "vote", "expression", "ORIG", "ORACLE")


@dataclass(frozen=True, kw_only=True)
class DigIt(Axiom):
    """The text whose word at `place` is the larger number wins."""

    place: int = 0
    note: str = ""

    name: ClassVar[str] = "DIG-IT"
    favours: ClassVar[str] = "the larger number"

    def wins(self, view, a, b):
        numbers = np.array([int(text.split()[self.place]) for text in view.pool.texts])
        return numbers[a] > numbers[b]

    def remarks(self, views):
        return {"silent": 3} if self.place else {}


@dataclass(frozen=True, kw_only=True)
class Weak(DigIt):
    """The same, with a weak conclusion."""

    name: ClassVar[str] = "W"
    strict: ClassVar[bool] = False


@pytest.fixture(autouse=True, scope="module")
def registered():
    for kind in (DigIt, Weak):
        axioms.register(f"axiom/{kind.name}")(kind)
    yield
    for kind in (DigIt, Weak):
        axioms.forget(f"axiom/{kind.name}")


TEXTS = [" ".join(digits) for digits in product("012", repeat=3)]
IDS = [text.replace(" ", "") for text in TEXTS]
COLLECTION = Collection.of(dict(zip(IDS, TEXTS, strict=True)), {"q": "1"}, {"q": dict.fromkeys(IDS, 0)})
COMMON = {"analyzer": "whitespace", "max_tokens": 99}


def leaf(place: int, **more) -> DigIt:
    return DigIt(place=place, **COMMON, **more)


def matrix(axiom: Axiom) -> np.ndarray:
    [view] = axiom.views(COLLECTION)
    return axiom.matrix(view)


def signs_of(a: int, b: int) -> tuple[int, ...]:
    """What three axioms say of two texts, from the texts alone."""
    return tuple((x > y) - (x < y) for x, y in zip(TEXTS[a].split(), TEXTS[b].split(), strict=True))


SIGNS = [[signs_of(a, b) for b in range(len(TEXTS))] for a in range(len(TEXTS))]


def sign(number) -> int:
    return (number > 0) - (number < 0)


# --- trees of combinations: what they mean, as Python operators, as text

WEIGHTS = st.sampled_from([1, 2, -1, 0.1, 0.2, 0.3, -0.3, -2.5, 0])


def _larger(inner):
    weighted = st.lists(st.tuples(WEIGHTS, inner), min_size=1, max_size=3)
    voting = st.tuples(st.lists(inner, min_size=1, max_size=4), st.sampled_from([0, 0.25, 0.3, 0.5, 0.6, 0.75]))
    return st.one_of(
        st.tuples(st.just("and"), inner, inner),
        st.tuples(st.just("or"), inner, inner),
        st.tuples(st.just("not"), inner),
        st.tuples(st.just("sum"), weighted),
        st.tuples(st.just("vote"), voting),
    )


TREES = st.recursive(st.integers(0, 2), _larger, max_leaves=6)


def total(tree, signs) -> Fraction:
    if isinstance(tree, tuple) and tree[0] == "sum":
        return sum((Fraction(str(weight)) * total(part, signs) for weight, part in tree[1]), Fraction(0))
    return Fraction(meaning(tree, signs))


def meaning(tree, signs) -> int:
    match tree:
        case int(place):
            return signs[place]
        case ("and", one, two):
            found = {meaning(one, signs), meaning(two, signs)}
            return found.pop() if len(found) == 1 else 0
        case ("or", one, two):
            return meaning(one, signs) or meaning(two, signs)
        case ("not", one):
            return -meaning(one, signs)
        case ("sum", _):
            return sign(total(tree, signs))
        case ("vote", (parts, minimum)):
            votes = [meaning(part, signs) for part in parts]
            up, down = votes.count(1), votes.count(-1)
            needed = Fraction(str(minimum)) * len(votes)
            return 1 if up > down and up > needed else -1 if down > up and down > needed else 0
    raise AssertionError(tree)


def built(tree) -> Axiom:
    match tree:
        case int(place):
            return leaf(place)
        case ("and", one, two):
            return built(one) & built(two)
        case ("or", one, two):
            return built(one) | built(two)
        case ("not", one):
            return -built(one)
        case ("sum", weighted):
            terms = [weight * built(part) for weight, part in weighted]
            return plus(*terms)
        case ("vote", (parts, minimum)):
            return vote(*map(built, parts), minimum=minimum)
    raise AssertionError(tree)


def written(tree) -> str:
    match tree:
        case int(place):
            return f"DIG-IT(place={place})" if place else "DIG-IT"
        case ("and", one, two):
            return f"({written(one)} & {written(two)})"
        case ("or", one, two):
            return f"({written(one)}|{written(two)})"
        case ("not", one):
            return f"-{written(one)}"
        case ("sum", weighted):
            return "(" + " + ".join(f"{weight}*({written(part)})" for weight, part in weighted) + ")"
        case ("vote", (parts, minimum)):
            return f"vote({', '.join(map(written, parts))}, minimum={minimum})"
    raise AssertionError(tree)


class TestMeaning:
    @given(TREES)
    @settings(max_examples=40)
    def test_every_tree_says_what_its_table_says(self, tree):
        table = {signs: meaning(tree, signs) for signs in product((-1, 0, 1), repeat=3)}
        expected = [[table[signs] for signs in row] for row in SIGNS]
        assert matrix(built(tree)).tolist() == expected

    @given(TREES)
    @settings(max_examples=30)
    def test_text_operators_and_call_string_give_one_axiom(self, tree):
        axiom = built(tree)
        assert parse_expression(written(tree), **COMMON) == axiom
        again = axioms.create(axiom.id)
        assert again == axiom
        assert again.id == axiom.id
        assert hash(again) == hash(axiom)
        assert (again.concludes, again.positive) == (axiom.concludes, axiom.positive)

    @given(TREES)
    @settings(max_examples=15)
    def test_laws(self, tree):
        axiom = built(tree)
        own = matrix(axiom)
        for same in (axiom & axiom, axiom | axiom, reverse(-axiom), vote(axiom, axiom), 3 * axiom, axiom + axiom):
            assert np.array_equal(matrix(same), own)
        assert np.array_equal(matrix(-axiom), -own)
        assert not matrix(axiom - axiom).any()
        assert not matrix(axiom & -axiom).any()

    @given(TREES, TREES, TREES)
    @settings(max_examples=10)
    def test_agreement_and_fallback_are_associative(self, x, y, z):
        a, b, c = map(built, (x, y, z))
        assert (a & b) & c == a & (b & c)
        assert (a | b) | c == a | (b | c)

    def test_decimal_weights_are_exact(self):
        axiom = 0.1 * leaf(0) + 0.2 * leaf(1) - 0.3 * leaf(2)
        found = matrix(axiom)
        assert found[IDS.index("111"), IDS.index("000")] == 0
        huge = matrix(1e300 * leaf(0) + 1e-300 * leaf(1))
        assert huge[IDS.index("010"), IDS.index("000")] == 1
        assert huge[IDS.index("010"), IDS.index("100")] == -1

    def test_winners_come_first_in_contrasts(self):
        found = (leaf(0) & leaf(1)).contrasts(COLLECTION)
        rows = found.labels["doc_ids"].values()
        expected = {(a, b) for a in IDS for b in IDS if a[0] > b[0] and a[1] > b[1]}
        assert {tuple(row) for row in rows} == expected
        assert len(rows) == len(expected)
        assert found.dropped == {"DIG-IT(place=1): silent": 3}


class TestForm:
    def test_call_strings(self):
        assert (TFC1() & LNC1(variant="length")).id == "axiom/and(of=('TFC1', 'LNC1(variant=length)'))"
        assert (-DIV(analyzer="whitespace")).id == "axiom/not(analyzer=whitespace,of=('DIV',))"
        assert (2 * TFC1() + M_AND()).id == "axiom/sum(of=('TFC1', 'M-AND'),weights=(2.0, 1.0))"
        assert (TFC1() + M_AND()).id == "axiom/sum(of=('TFC1', 'M-AND'))"
        assert vote(TFC1(compat="camara-hauff"), DIV()).id == "axiom/vote(of=('TFC1(compat=camara-hauff)', 'DIV'))"

    @given(st.text(max_size=12), st.text(max_size=12))
    @settings(max_examples=30)
    def test_quotes_and_brackets_in_arguments(self, one, two):
        axiom = -(leaf(0, note=one) & leaf(1, note=two)) | leaf(2, note=one + two)
        assert axioms.create(axiom.id) == axiom

    def test_parts_take_what_is_common_from_the_combination(self):
        spec = """axiom/and(of=['TFC1(length=5)', 'or(of=("DIV", "M-AND"))'])"""
        axiom = axioms.create(spec, analyzer="whitespace", max_tokens=7, compat="camara-hauff")
        first, second = axiom.parts
        assert first == TFC1(length=5, analyzer="whitespace", max_tokens=7)
        assert second.parts == (DIV(analyzer="whitespace", max_tokens=7), M_AND(analyzer="whitespace", max_tokens=7))
        assert replace(axiom, max_tokens=9).parts[0].max_tokens == 9

    def test_spelling_does_not_matter(self):
        given = And(of=["axiom/TFC1(length=10)", "LNC1(variant='length')"])
        assert given == TFC1() & LNC1(variant="length")
        assert Not(of="DIV") == -DIV()
        assert Sum(of="TFC1", weights=2) == 2 * TFC1()
        assert (3 * (0.1 * TFC1() + DIV())).weights == (0.3, 3.0), "weights multiply as decimals"

    def test_a_conclusion_of_its_own_keeps_a_combination_whole(self):
        weak = replace(TFC1() & DIV(), conclusion="weak")
        assert len((weak & M_AND()).of) == 2
        assert isinstance(-replace(-TFC1(), conclusion="weak"), Not)
        assert len((replace(TFC1() + DIV(), conclusion="weak") + M_AND()).of) == 2

    def test_patterns_do_not_find_combinations(self):
        listed = set(axioms.match("*"))
        assert listed == set(axioms.names()) >= {"axiom/TFC1", "axiom/AND", "axiom/M-AND"}
        for name in (f"axiom/{name}" for name in UNLISTED):
            assert (name in listed, name in axioms, axioms.match(name)) == (False, True, [name])

    def test_the_conclusion_follows_from_the_parts(self):
        """Agreement is strict where any part is; all others are weak where any part is."""
        strict, weak = DigIt(), Weak()
        strong = [strict & weak, strict | strict, -strict, strict + strict, vote(strict, strict)]
        slack = [weak & weak, weak | strict, strict | weak, -weak, 2 * strict + weak, vote(strict, strict, weak)]
        slack += [replace(strict & weak, conclusion="weak"), replace(strict, conclusion="weak") | strict]
        assert {axiom.concludes for axiom in strong} == {"strict"}
        assert {axiom.concludes for axiom in slack} == {"weak"}


REFUSED = {
    "no expression": ["", "TFC1 &", "TFC1 if TFC1 else DIV", "vote()"],
    "no expression|nested": ["(" * 3000 + "TFC1" + ")" * 3000, "-" * 5000 + "TFC1"],
    "bracket that is not closed": ["TFC1 & (DIV | (M-AND)", "TFC1(length=3"],
    "bracket that is not opened": ["(TFC1 & DIV)) | (M-AND"],
    "where no expression has it": ["TFC1 @ DIV", "__import__('os').system('true')", "2TFC1"],
    "unknown axiom|no expression": ["lambda: TFC1", "TFC1.length", "TFC4 & DIV"],
    "is a number": ["2"],
    "cannot be combined|no expression": ["TFC1 + 2", "2 * 3", "TFC1 * DIV", "2 ** TFC1"],
    "must be a number": ["1e999*TFC1", "sum(of=('TFC1', 'DIV'),weights=(1, True))"],
    "'length'": ["TFC1(lenght=3)"],
    "vote|minimum|below 1": ["vote(TFC1, of=3)", "vote(TFC1, minimum=1)", "vote(TFC1, minimum=-1)"],
    "needs 'of'": ["and"],
    "call strings": ["and(of=())", "and(of=(1, 2))"],
    "one axiom": ["not(of=('TFC1', 'DIV'))"],
    "one weight for each": ["sum(of=('TFC1', 'DIV'),weights=(1,))"],
    "has no condition on two documents": ["TFC1 & TFC2", "LNC2 | TFC1", "-LB2", "or(of=('TFC2', 'TFC1'))"],
    "same analyzer|same max_tokens": ["TFC1(analyzer=whitespace) & DIV", "and(of=('TFC1(max_tokens=3)', 'DIV'))"],
    "compat": ["and(of='TFC1',compat='camara-hauff')"],
}


class TestExpressions:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("axiom/TFC1(length=3)", lambda: TFC1(length=3)),
            ("-M-AND", lambda: -M_AND()),
            ("TFC1 - M-AND", lambda: TFC1() - M_AND()),
            ("TFC1 & M-AND(length=5) | -DIV", lambda: TFC1() & M_AND(length=5) | -DIV()),
            ("TFC1 | DIV & M-AND", lambda: TFC1() | (DIV() & M_AND())),
            ("TFC1 & DIV + M-AND", lambda: TFC1() & (DIV() + M_AND())),
            ("2*TFC1 + .5 * DIV+M-AND", lambda: 2 * TFC1() + 0.5 * DIV() + M_AND()),
            ("2*(TFC1 - DIV)", lambda: 2 * TFC1() + -2 * DIV()),
            ("vote(TFC1, DIV | M-AND, minimum=0.4)", lambda: vote(TFC1(), DIV() | M_AND(), minimum=0.4)),
            ("vote(of=('TFC1','DIV'))", lambda: vote(TFC1(), DIV())),
            ("expression(of='TFC1 & DIV') | M-AND", lambda: TFC1() & DIV() | M_AND()),
            ("and(of=('TFC1', 'not(of=DIV)'))", lambda: TFC1() & -DIV()),
            ("DIG-IT(note='a & b) | (c')", lambda: DigIt(note="a & b) | (c")),
            ("TFC1\n  &\tDIV", lambda: TFC1() & DIV()),
        ],
    )
    def test_reads(self, text, expected):
        assert parse_expression(text) == expected()

    def test_through_the_registry(self):
        common = {"analyzer": "whitespace", "max_tokens": 5}
        spec = "axiom/expression(of='(TFC1 & M-AND) | -DIV',max_tokens=5)"
        made = axioms.create(spec, analyzer="whitespace", compat="camara-hauff")
        assert made == (TFC1(**common) & M_AND(**common)) | -DIV(**common)
        assert axioms.create("axiom/expression(of='TFC1 | DIV',conclusion=weak)").concludes == "weak"

    @pytest.mark.parametrize(("text", "says"), [(text, says) for says, texts in REFUSED.items() for text in texts])
    def test_one_clear_line(self, text, says):
        with pytest.raises(WhyrankError, match=says) as problem:
            parse_expression(text)
        assert "\n" not in str(problem.value)
        assert len(str(problem.value)) < 400

    @given(st.text(alphabet="TFC1 DIV-M&|+*()2.,='\"", max_size=25))
    @settings(max_examples=200)
    def test_nonsense_never_gives_anything_but_an_axiom_or_an_error(self, text):
        with suppress(WhyrankError):
            assert isinstance(parse_expression(text), Axiom)

    def test_patterns(self):
        assert all(map(is_pattern, ["*", "PROX*", "axiom/TFC[12]", "M-*"]))
        assert not any(map(is_pattern, ["TFC1", "2*TFC1", "TFC1 * 2", "TFC1&DIV", "-DIV*2", "LNC1(variant=length)"]))


class TestWrongParts:
    @pytest.mark.parametrize(
        "field", [{"analyzer": "whitespace"}, {"pairs": "all"}, {"candidates": "x"}, {"seed": 1}]
    )
    def test_common_fields_that_differ(self, field):
        with pytest.raises(WhyrankError, match=f"same {next(iter(field))}"):
            vote(TFC1(), DIV(**field))

    @pytest.mark.parametrize("other", ["TFC1", 3, TFC2(), LNC2(), Axiom])
    def test_what_is_no_axiom_on_two_documents(self, other):
        for combine in (lambda x: TFC1() & x, lambda x: TFC1() | x, lambda x: TFC1() + x, vote):
            with pytest.raises(WhyrankError, match=r"no axiom|no condition on two documents"):
                combine(other)

    @pytest.mark.parametrize("taken", ["MINE", "TFC1"])
    def test_an_axiom_that_is_not_registered_under_its_name(self, taken):
        kind = dataclass(frozen=True, kw_only=True)(type("Mine", (DigIt,), {"name": taken}))
        with pytest.raises(WhyrankError, match=rf"Mine is not registered.*@axioms.register\('axiom/{taken}'\)"):
            TFC1() & kind()


RUN = {"q": {"a": 3.0, "b": 2.0, "c": 1.0, "gone": 9.0}}
SMALL = Collection.of(
    {"a": "x", "b": "x x", "c": "y", "d": "z"},
    {"q": "x"},
    {"q": {"a": 0, "b": 2, "d": 1}},
    runs={"first": RUN, "other": {"q": {"c": 2.0, "a": 1.0}}},
)


class TestReferences:
    def cells(self, text: str, **common) -> dict[tuple[str, str], int]:
        axiom = parse_expression(text, pairs="all", analyzer="whitespace", **common)
        [view] = axiom.views(SMALL)
        ids, found = view.pool.doc_ids, axiom.matrix(view)
        return {
            (ids[i], ids[j]): int(found[i, j]) for i in range(len(ids)) for j in range(len(ids)) if found[i, j] > 0
        }

    def test_the_order_of_a_run(self):
        assert set(self.cells("ORIG", candidates="first")) == {("a", "b"), ("a", "c"), ("b", "c")}
        assert set(self.cells("-ORIG", candidates="first")) == {("b", "a"), ("c", "a"), ("c", "b")}
        assert set(self.cells("ORIG", candidates="other")) == {("c", "a")}

    def test_the_order_of_judgements(self):
        """`c` is not judged, so it counts as non-relevant, as `a` is."""
        expected = {("b", "d"), ("b", "a"), ("d", "a"), ("b", "c"), ("d", "c")}
        assert set(self.cells("ORACLE", candidates="first")) == expected

    @pytest.mark.parametrize("candidates", [None, "first", "no.run"])
    def test_texts_without_ids_are_in_no_run(self, candidates):
        axiom = parse_expression("TFC1 | ORIG | ORACLE", analyzer="whitespace", candidates=candidates)
        assert axiom.preference("x", "x x", "x") == 1
        assert axiom.preference("x", "z", "y") == 0
        assert axiom.preference("x", "z", "y", SMALL) == 0
