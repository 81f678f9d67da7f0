"""Slots: every value of a class is found as a word, replaced everywhere, and nothing else of the text changes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toy_bias import toy_collection
from whyrank.core import WhyrankError
from whyrank.studies.bias import LISTS, bias_studies, values_of
from whyrank.studies.bias.values import BUNDLED, Slotted, ValueClass

CLASS = ValueClass(("Ford", "BMW", "New Zealand", "Audi", "2019"))
FILLERS = st.lists(st.sampled_from(["the", "Fordham", "bmws", "car", "new", "zealand", "20190", "x-ford", "(", ","]))


def test_values_are_words_and_longer_words_are_not_values():
    assert CLASS.counts("Ford FORD Fordham x-Ford New  Zealand 2019 2019-20 BMW's") == {
        "Ford": 2, "New Zealand": 1, "2019": 1, "BMW": 1,
    }  # fmt: skip


def test_names_have_a_capital_unless_nothing_in_the_text_has_one():
    nations = ValueClass(("French", "Polish"))
    assert nations.counts("Use nail polish, French or Polish.") == {"French": 1, "Polish": 1}
    assert nations.counts("use nail polish, french or not") == {"French": 1, "Polish": 1}
    assert nations.slot("Use nail polish remover") is None
    assert ValueClass(("french", "polish")).counts("Polish or French") == {"french": 1, "polish": 1}, "no names"


def test_words_of_values_that_stay_in_a_text_are_others():
    nations = ValueClass(("French", "Polish", "Thai"))
    slot = nations.slot("A French shoe, thai polish, french cloth.")
    assert (slot.value, slot.others) == ("French", {"French", "Polish", "Thai"})
    assert slot.slotted.text == "A {value} shoe, thai polish, french cloth."
    assert nations.slot("A French shoe.").others == frozenset()
    assert ValueClass(("value", "worth")).slot("The worth of it").others == frozenset(), "a slot is no word"


@pytest.mark.parametrize("apostrophe", "'’")
@pytest.mark.parametrize(("ending", "found"), [("t", 0), ("T", 0), ("ll", 0), ("ve", 0), ("d", 0), ("s", 1), ("", 1)])
def test_a_contraction_is_no_value_and_a_possessive_is(apostrophe, ending, found):
    assert sum(ValueClass(("dollars", "won")).counts(f"It won{apostrophe}{ending} matter").values()) == found
    assert len(ValueClass(("dollars", "won")).named(f"It won{apostrophe}{ending} matter")) == found


def test_words_that_mostly_mean_other_things_make_no_template_but_take_their_turn():
    money = bias_studies.create("bias/currency").value_class
    assert money.slot("He won 20 pounds of it") is None
    assert not money.counts("Rand Paul won")
    slot = money.slot("It costs 20 dollars, he won")
    assert (slot.value, slot.others, slot.slotted.filled("won")) == ("dollars", {"won"}, "It costs 20 won, he won")
    people = bias_studies.create("bias/nationality").value_class
    assert people.slot("2 dollars to polish a slab") is None
    assert people.slot("A Polish slab").value == "Polish"
    assert bias_studies.create("bias/currency(values=pounds+grams)").value_class.slot("20 pounds").value == "pounds"


@given(FILLERS, FILLERS, st.sampled_from(CLASS.values), st.sampled_from(CLASS.values), st.booleans())
def test_filling_the_slot_with_what_stood_there_gives_the_text_back(before, after, value, other, small):
    written = value.lower() if small else value
    text = " ".join([*before, written, *after, "and", written])
    cased = text != text.lower()
    slot = CLASS.slot(text)
    if cased and small and value != "2019":
        assert slot is None or slot.value == "2019"
        return
    # "new" and "zealand" of the fillers may stand beside each other and be a value too
    oracle = [w for w in CLASS.values if re.search(rf"(?i)(?<![\w-]){w.replace(' ', '[ ]+')}(?![\w-])", text)]
    assert {slot.value, *slot.others} == set(oracle)
    if cased and "new zealand" in text:
        return
    here = re.compile(rf"(?i)(?<![\w-]){slot.value.replace(' ', '[ ]+')}(?![\w-])")
    if slot.value != "New Zealand" or "new zealand" not in text.replace(written, ""):
        assert slot.slotted.filled(slot.value).lower() == here.sub(slot.value, text).lower()
    assert slot.slotted.filled(other) == here.sub(lambda m: other.lower() if m[0].islower() else other, text)


@pytest.mark.parametrize(
    ("text", "value", "filled"),
    [
        ("an {value} of 2010", "Ford", "a Ford of 2010"),
        ("A {value} of 2010", "Audi", "An Audi of 2010"),
        ("a {value} of 2010", "2019", "a 2019 of 2010"),
        ("manna {value}", "Audi", "manna Audi"),
        ("a {value}", "+1", "a +1"),
    ],
)
def test_the_article_follows_the_value(text, value, filled):
    assert Slotted.of(text).filled(value) == filled


AN = """Uzbek Umbrian unnamed uninhabited unimportant unidentified urban usher utter Uber hour honest honour heir
    F-150 X-ray s-class 8 80 800 8,000 11 18 1812 18,000 1100 8th 18th onerous oak"""
A = """Ukrainian Ugandan Uruguayan European UK US U.S. UN USA Utah union unique universal used user usual utility uranium
    one-way once-loved house Honolulu hotel BMW Ford long fast 1 10 110 180 1990 2019 7 1180000 11000"""


@pytest.mark.parametrize(("article", "other", "words"), [("an", "a", AN), ("a", "an", A)])
def test_an_is_before_vowels_that_are_heard_and_a_before_all_others(article, other, words):
    for word in words.split():
        assert Slotted.of(f"Such {other} {{value}} thing").filled(word) == f"Such {article} {word} thing"


@pytest.mark.parametrize("name", ["car-brand", "country", "currency", "first-name", "nationality", "when-year"])
def test_every_value_fits_into_every_written_template(name):
    """Of all values of the lists, one alone is written with a vowel and spoken without."""
    study = bias_studies.create(f"bias/{name}(templates=written)")
    grid = study.grid(toy_collection())
    assert len(grid) == len((BUNDLED / f"{name}.tsv").read_text().splitlines())
    for template, row in zip(grid.templates, grid.texts(), strict=True):
        for value, text in zip(grid.values, row, strict=True):
            article = "an" if value[0] in "AEIOU" and value != "Ukrainian" else "a"
            before = [m[1].lower() for m in re.finditer(rf"\b(an?) {value}\b", text, re.IGNORECASE)]
            asked = re.search(r"\ba {value}", template.slotted.text, re.IGNORECASE)
            assert before == ([article] if asked else []), text


def test_values(tmp_path):
    file = tmp_path / "v.txt"
    file.write_text("# teas\ngreen tea\n#\n#metoo\nblack tea\nc#\n")
    assert values_of(str(file)) == ("green tea", "#metoo", "black tea", "c#")
    assert values_of("2000..2002") == ("2000", "2001", "2002")
    assert values_of("a+b") == ("a", "b")
    assert len(values_of("car-makes")) == 29


@pytest.mark.parametrize("given", ["nofile", "a+", "a+A", "2000..1999", "1..99999", "a+a"])
def test_wrong_values(given):
    with pytest.raises(WhyrankError):
        values_of(given)


@pytest.mark.parametrize("name", [name for name in LISTS if name != "letters"])
def test_lists_have_no_value_twice_and_find_each_of_their_values(name):
    values = LISTS[name]
    assert len({value.lower() for value in values}) == len(values) >= 20
    assert ValueClass(values).counts(", ".join(values)) == dict.fromkeys(values, 1)


@pytest.mark.parametrize("text", ["Bir FİAT aldım.", "Bir Fıat aldım.", "Bir Fiat aldım."])
def test_letters_that_have_several_cases(text):
    slot = ValueClass(("Ford", "Fiat")).slot(text)
    assert (slot.value, slot.slotted.filled("Ford")) == ("Fiat", "Bir Ford aldım.")
    assert ValueClass(("Ford", "Fiat")).named(text) == {"Fiat"}
