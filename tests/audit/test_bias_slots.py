"""Slots: every value of a class is found as a word, replaced everywhere, and nothing else of the text changes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.audit.bias_slots import Slotted, ValueClass, mentions
from whyrank.audit.bias_values import LISTS, values_of
from whyrank.core.errors import WhyrankError

CLASS = ValueClass(("Ford", "BMW", "New Zealand", "Audi", "2019"))
FILLERS = st.lists(st.sampled_from(["the", "Fordham", "bmws", "car", "new", "zealand", "20190", "x-ford", "(", ","]))


def test_values_are_words_in_any_case_and_longer_words_are_not_values():
    assert CLASS.counts("ford FORD fordham x-ford New  Zealand 2019 2019-20 bmw's") == {
        "Ford": 2, "New Zealand": 1, "2019": 1, "BMW": 1,
    }  # fmt: skip


@given(FILLERS, FILLERS, st.sampled_from(CLASS.values), st.sampled_from(CLASS.values), st.booleans())
def test_filling_the_slot_with_what_stood_there_gives_the_text_back(before, after, value, other, small):
    written = value.lower() if small else value
    text = " ".join([*before, written, *after, "and", written])
    slot = CLASS.slot(text)
    # "new" and "zealand" of the fillers may stand beside each other and be a value too
    oracle = [w for w in CLASS.values if re.search(rf"(?i)(?<![\w-]){w.replace(' ', '[ ]+')}(?![\w-])", text)]
    assert {slot.value, *slot.others} == set(oracle)
    here = re.compile(rf"(?i)(?<![\w-]){slot.value.replace(' ', '[ ]+')}(?![\w-])")
    if slot.value != "New Zealand" or "new zealand" not in text.replace(written, ""):
        assert slot.slotted.filled(slot.value).lower() == here.sub(slot.value, text).lower()
    assert slot.slotted.filled(other) == here.sub(lambda m: other.lower() if m[0].islower() else other, text)


def test_the_value_that_comes_most_often_has_the_slot():
    slot = CLASS.slot("Audi, BMW and BMW")
    assert (slot.value, slot.others, slot.slotted.text) == ("BMW", {"Audi"}, "Audi, {value} and {value}")
    assert CLASS.slot("nothing here") is None


def test_small_letters_stay_small():
    slotted = CLASS.slot("a ford is a Ford").slotted
    assert slotted.filled("BMW") == "a bmw is a BMW"
    assert slotted.filled("volvo") == "a volvo is a Volvo"


@pytest.mark.parametrize(
    ("text", "value", "filled"),
    [
        ("an {value} of 2010", "Ford", "a Ford of 2010"),
        ("A {value} of 2010", "Audi", "An Audi of 2010"),
        ("a {value} of 2010", "2019", "a 2019 of 2010"),
        ("manna {value}", "Audi", "manna Audi"),
    ],
)
def test_the_article_follows_the_value(text, value, filled):
    assert Slotted.of(text).filled(value) == filled


def test_a_template_needs_a_slot():
    with pytest.raises(WhyrankError, match="has no slot"):
        Slotted.of("nothing")


def test_mentions():
    assert mentions("Which Car?", "car")
    assert not mentions("which cars", "car")


def test_values(tmp_path):
    file = tmp_path / "v.txt"
    file.write_text("# teas\ngreen tea\nblack tea\n")
    assert values_of(str(file)) == ("green tea", "black tea")
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
