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
    assert isinstance(error, WhyrankError)
    assert "\n" not in str(error)


MANY = [f"x{i:02}" for i in range(30)]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (BadInput("a.txt", "no grade"), "a.txt: no grade"),
        (BadInput("a.txt", "no grade", "", 7), "a.txt:7: no grade"),
        (BadInput(Path("d/a.txt"), "no grade", "add one", 0), "d/a.txt:0: no grade; add one"),
        (UnknownName("ranker", "bm52", ["ql", "bm25", "bm25t"]), "'bm52'; did you mean 'bm25' or 'bm25t'?"),
        (UnknownName("axiom", "tfc1", ["LB1", "LNC1", "TFC1"]), "did you mean 'TFC1' or 'LNC1'?"),
        (UnknownName("ranker", "zzz", ["ql", "bm25"]), "unknown ranker 'zzz'; known: bm25, ql"),
        (UnknownName("ranker", "zzz", MANY), f"known: {', '.join(MANY[:12])}, … (30 in all)"),
        (UnknownName("ranker", "zzz", []), "nothing of this kind is registered"),
        (MissingExtra("the wordpiece analyzer", "models"), "pip install 'whyrank[models]'"),
    ],
)
def test_messages_name_what_is_wrong_where_and_the_remedy(error, message):
    assert str(error).endswith(message)


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
