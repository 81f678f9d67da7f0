"""Errors: one line with place and remedy, which survives the way between processes."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whyrank.core import BadInput, MissingExtra, UnknownName, WhyrankError, suggestion

ERRORS = [
    WhyrankError("something is wrong"),
    BadInput("qrels.txt", "no grade", "add one", 3),
    BadInput(Path("data") / "qrels.txt", "no grade"),
    UnknownName("ranker", "bm52", {"ql", "bm25"}),
    MissingExtra("the wordpiece analyzer", "models"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_pickling_keeps_type_message_and_fields(error):
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_all_can_be_caught_as_one_and_are_one_line(error):
    assert isinstance(error, WhyrankError)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("a.txt", "no grade"), "a.txt: no grade"),
        (("a.txt", "no grade", "add one"), "a.txt: no grade; add one"),
        (("a.txt", "no grade", "", 7), "a.txt:7: no grade"),
        (("a.txt", "no grade", "add one", 0), "a.txt:0: no grade; add one"),
        ((Path("d/a.txt"), "no grade", "add one", 7), f"{Path('d/a.txt')}:7: no grade; add one"),
    ],
)
def test_bad_input_names_file_line_and_remedy(given, message):
    assert str(BadInput(*given)) == message


def test_an_unknown_name_suggests_near_ones():
    error = UnknownName("ranker", "bm52", ["ql", "bm25", "bm25t"])
    assert str(error) == "unknown ranker 'bm52'; did you mean 'bm25' or 'bm25t'?"
    assert (error.kind, error.name, error.known) == ("ranker", "bm52", ("bm25", "bm25t", "ql"))


def test_a_name_in_another_case_is_suggested_first():
    known = ["axiom/LB1", "axiom/LNC1", "axiom/TFC1"]
    assert str(UnknownName("axiom", "axiom/tfc1", known)).endswith(
        "did you mean 'axiom/TFC1' or 'axiom/LNC1' or 'axiom/LB1'?"
    )
    assert suggestion("MATCHED/LENGTH|TF", ["matched/length|tf", "ql"]) == "did you mean 'matched/length|tf'?"


WORDS = st.text("abAB/|-", min_size=1, max_size=8)


@given(st.lists(WORDS, min_size=1, max_size=12, unique=True), st.data())
@example(["X" * 300, "Y"], None)
def test_names_that_differ_in_case_alone_come_before_all_others(known, data):
    """Long names too, of which the comparison of letters leaves out those that are frequent."""
    meant = known[0] if data is None else data.draw(st.sampled_from(known))
    given = meant.swapcase()
    same = [name for name in known if name.casefold() == given.casefold()]
    shown = suggestion(given, known).removeprefix("did you mean ").removesuffix("?").split(" or ")
    assert shown[: len(same)] == [repr(name) for name in same][:3]
    assert set(shown) <= {repr(name) for name in known}


def test_an_unknown_name_unlike_any_lists_all():
    assert str(UnknownName("ranker", "zzz", ["ql", "bm25"])) == "unknown ranker 'zzz'; known: bm25, ql"


def test_a_long_list_is_cut_and_counted():
    known = [f"x{i:02}" for i in range(30)]
    assert suggestion("zzz", known) == f"known: {', '.join(known[:12])}, … (30 in all)"
    assert suggestion("zzz", known[:12]) == f"known: {', '.join(known[:12])}"


def test_nothing_known_is_said():
    assert suggestion("zzz", []) == "nothing of this kind is registered"


def test_a_missing_extra_says_how_to_install_it():
    assert "pip install 'whyrank[models]'" in str(MissingExtra("the wordpiece analyzer", "models"))
