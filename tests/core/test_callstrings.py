"""Call strings: every call can be written, and what is written parses back to an equal call."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whyrank.core import Call, WhyrankError, format_value, parse_call
from whyrank.core.callstrings import arguments_of

TRICKY = "()[]{}'\"\\,=:#|/% \n\t1aé\u2028\U0001f600"
texts = st.one_of(st.text(), st.text(TRICKY), st.sampled_from(["None", "True", "1e3", "-1", "inf", "nan", "[1]", ""]))
numbers = st.one_of(st.integers(), st.floats(allow_nan=False))
atoms = st.one_of(texts, numbers, st.booleans(), st.none())
values = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(atoms, inner, max_size=3)
    ),
    max_leaves=8,
)
names = st.from_regex(r"[a-z][a-z0-9-]{0,8}(/[a-z|-]{1,8})?", fullmatch=True)
keys = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
resources = st.one_of(st.none(), st.text(TRICKY + "b.-", min_size=1), st.text(min_size=1))
calls = st.builds(Call, names, resources, st.dictionaries(keys, values, max_size=3))


@given(calls)
@example(Call("n", "('", {"a": "b "}))  # a bracket and a quote in the resource
@example(Call("n", None, {"a": "(b=1", "c": "x)"}))  # brackets in quoted values
@example(Call("n", "folder (copy)"))
@example(Call("n", "blank at the end "))
@example(Call("n", "a:b:c", {"x": [math.inf, -math.inf, {"k": (math.inf,)}]}))
@example(Call("n", None, {"a": "1#x", "b": "a[0]", "c": "[x"}))
def test_what_is_written_parses_back_to_an_equal_call(call):
    back = parse_call(str(call))
    assert back == call
    assert repr(back) == repr(call)  # equality alone takes True for 1 and -0.0 for 0.0
    assert str(back) == str(call)


@given(st.text(TRICKY + "nb."))
@example("bm25 ()")
@example(" bm25 ( k1 = 2 , b = x ) ")
@example("n:x('(b=1)")
@example("n(a=[1]x,b={})")
def test_any_text_is_an_error_that_quotes_it_or_has_a_stable_form(text):
    found = parsed(text)
    stable = parse_call(str(found)) == found if isinstance(found, Call) else None
    assert stable or repr(text) in str(found) or "://" in text  # of a URL, only what cannot be a secret


def parsed(text: str) -> Call | WhyrankError:
    try:
        return parse_call(text)
    except WhyrankError as error:
        return error


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bm25", Call("bm25")),
        ("bm25()", Call("bm25")),
        ("bm25(k1=1.2,b=0.75)", Call("bm25", None, {"k1": 1.2, "b": 0.75})),
        (" bm25 ( k1 = 2 , b = x ) ", Call("bm25", None, {"k1": 2, "b": "x"})),
        ("bm25(k1=2,)", Call("bm25", None, {"k1": 2})),
        ("bm25t:table.parquet(match=max-tf)", Call("bm25t", "table.parquet", {"match": "max-tf"})),
        ("matched/length|tf(tolerance=10%)", Call("matched/length|tf", None, {"tolerance": "10%"})),
        ("python:mod.py:rank", Call("python", "mod.py:rank")),
        ("http://host:80/rerank?a=b", Call("http", "//host:80/rerank?a=b")),
        ("n:dir (copy)/x", Call("n", "dir (copy)/x")),
        ("n:dir(copy)()", Call("n", "dir(copy)")),
        ("n:dir(copy)(a=1)", Call("n", "dir(copy)", {"a": 1})),
        ("n:half(open", Call("n", "half(open")),
        ("n:half(open(a=1)", Call("n", "half(open", {"a": 1})),
    ],
)
def test_parts_of_a_call(text, expected):
    assert parse_call(text) == expected


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("5", 5), ("-1.5e3", -1500.0), ("1_000", 1000), ("1e999", math.inf), ("True", True), ("None", None),
        ("true", "true"), ("lucene", "lucene"), ("/data/stop.txt", "/data/stop.txt"),
        ("C:\\lists\\stop.txt", "C:\\lists\\stop.txt"), ("a[0]", "a[0]"), ("[x]", "[x]"), ("1#x", "1#x"),
        ("10%", "10%"), ("top:100", "top:100"), ("'5'", "5"), ('"it\'s (not) a, b = c"', "it's (not) a, b = c"),
        ("'two\\nlines'", "two\nlines"), ("[1, 'a)', (2,)]", [1, "a)", (2,)]),
        ("{'a': [1], 2: None}", {"a": [1], 2: None}), ("()", ()), ("[]", []), ("{}", {}),
    ],
)  # fmt: skip
def test_values_are_literals_or_bare_strings(written, value):
    found = parse_call(f"n(first={written}, last=0)").arguments
    assert found == {"first": value, "last": 0}
    assert type(found["first"]) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "(a=1)", ":resource", "name:", "name:(a=1)", "bm25(k1=1", "bm25 k1", "bm25)", "bm25(1)",
        "bm25(k1)", "bm25(k1=)", "bm25(k1==2)", "bm25(=2)", "bm25(,)", "bm25(k1=1,,b=2)", "bm25(k1=1 b=2)",
        "bm25(k1=1,k1=2)", "bm25(9a=1)", "bm25(a=two words)", "bm25(a='open)", "bm25(a='x'y)", "bm25(a=x'y')",
        "bm25(a='\\x')", "bm25(a='two\nlines')", "bm25(a=[1,x])", "bm25(a=[1,2)", "bm25(a={[]: 1})",
        "bm25(a=(1,2)", "bm25(a=f(x))", "bm25(a=" + "(" * 300 + ")" * 300 + ")", "n:dir(copy)",
    ],
)  # fmt: skip
def test_malformed_texts_are_quoted_in_the_error(text):
    with pytest.raises(WhyrankError) as caught:
        parse_call(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("value", [math.nan, [math.nan], object(), b"x", {1, 2}, 1j, np.zeros(2)])
def test_a_value_without_notation_is_refused(value):
    with pytest.raises(WhyrankError, match="cannot be written in a call string"):
        format_value(value)


@dataclass(frozen=True)
class Thing:
    needed: str
    plain: int = 3
    made: list[int] = field(default_factory=list)
    hidden: int = field(default=0, init=False)


def test_arguments_are_those_that_differ_from_the_defaults():
    assert arguments_of(Thing("x")) == {"needed": "x"}
    assert arguments_of(Thing("x", 4, [1])) == {"needed": "x", "plain": 4, "made": [1]}
    assert arguments_of(Thing("x", 3, [])) == {"needed": "x"}
