"""Axioms as one writes them: `(TFC1(length=5) & M-AND) | -DIV`, `2*TFC1 + M-AND`, `vote(TFC1, DIV, M-AND)`.

A dash inside a name belongs to the name (`M-AND`); a minus between two axioms has blanks around it. `*` binds more
tightly than `+` and `-`, these than `&`, and `&` than `|`. Nothing is evaluated: each axiom, a call string, becomes a
placeholder, Python's grammar finds the structure, and the rest is a handful of operators.
"""

from __future__ import annotations

import ast
import inspect
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from whyrank.core import WhyrankError
from whyrank.studies.axioms.algebra import axiom_of_call, vote
from whyrank.studies.axioms.axiom import Axiom

_VOTE = re.compile(r"vote\((?!\s*[A-Za-z_]\w*\s*=)|minimum\s*=")
_NAME = re.compile(r"[^\W\d][\w./:]*(?:-[\w./:]+)*")
_REST = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])|[-&|+*(),]|\s+")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,  # of an axiom and its weight
}
_PATTERN = re.compile(r"[A-Za-z*?\[][\w./*?\[\]!-]*")


class _Unreadable(Exception):
    """What is wrong with an expression."""


def parse_expression(text: str, **common: Any) -> Axiom:
    """The axiom that an expression describes; `common` fills fields such as `analyzer` in all its parts."""
    try:
        source, calls = _with_placeholders(text)
        tree = ast.parse(source, mode="eval").body
        found = _evaluate(tree, {name: axiom_of_call(call, common) for name, call in calls.items()})
        what = "is a number and no axiom"
    except _Unreadable as error:
        found, what = None, str(error)
    except (SyntaxError, MemoryError, RecursionError):  # the last two: brackets without end
        found, what = None, _bracket(text) or "is no expression of axioms"
    if isinstance(found, Axiom):
        return found
    shown = text if len(text) <= 100 else text[:97] + "..."
    raise WhyrankError(f"{shown!r} {what}; write such as '(TFC1 & M-AND) | -DIV' or '2*TFC1 + M-AND'")


def axiom_of(given: Axiom | str, **common: Any) -> Axiom:
    """An axiom as it is, or from an expression."""
    return parse_expression(given, **common) if isinstance(given, str) else given


def is_pattern(text: str) -> bool:
    """Whether a text is a shell pattern over names of axioms, such as `PROX*`, and no expression."""
    return bool(_PATTERN.fullmatch(text)) and any(c in text for c in "*?[")


def expression(*, of: str, conclusion: Literal["strict", "weak"] | None = None, **common: Any) -> Axiom:
    """The axiom that the expression `of` describes, such as `(TFC1 & M-AND) | -DIV`."""
    if not isinstance(of, str):
        raise WhyrankError(f"axiom 'expression' needs one text, not {of!r}; write expression(of='TFC1 & DIV')")
    made = parse_expression(of, **common)
    return made if conclusion is None else replace(made, conclusion=conclusion)


# what the registry may fill: the fields of all axioms; a combination has no published form to be compatible with
expression.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter("of", inspect.Parameter.KEYWORD_ONLY),
        *(field for field in inspect.signature(Axiom).parameters.values() if field.name != "compat"),
    ]
)


def _with_placeholders(text: str) -> tuple[str, dict[str, str]]:
    """The expression with a name of our own in the place of each call string, and these call strings by name."""
    tokens, calls, at = list[str](), dict[str, str](), 0
    while at < len(text):
        name = None if (plain := _VOTE.match(text, at)) else _NAME.match(text, at)
        if name:
            end = name.end()
            if text[end : end + 1] == "(":
                end = next((i + 1 for i, depth in _depths(text, end) if not depth), len(text) + 1)
            if end > len(text):
                raise _Unreadable("has a bracket that is not closed")
            tokens.append(f"axiom{len(calls)}")
            calls[tokens[-1]] = text[at:end]
        elif plain := plain or _REST.match(text, at):
            end = plain.end()
            tokens.append(plain[0].strip())
        else:
            raise _Unreadable(f"has {text[at]!r} where no expression has it")
        at = end
    return " ".join(tokens).strip(), calls


def _depths(text: str, at: int = 0) -> Iterator[tuple[int, int]]:
    """The round brackets outside quotes from a position on, and how many are open behind each."""
    depth = 0
    while at < len(text):
        quoted = _QUOTED.match(text, at)
        if not quoted and text[at] in "()":
            depth += 1 if text[at] == "(" else -1
            yield at, depth
        at = quoted.end() if quoted else at + 1


def _bracket(text: str) -> str:
    """What is wrong with the brackets of a text, if anything."""
    depths = [0, *(depth for _, depth in _depths(text))]
    if min(depths) < 0:
        return "has a bracket that is not opened"
    return "has a bracket that is not closed" if depths[-1] else ""


def _evaluate(node: ast.AST, known: Mapping[str, Axiom]) -> Any:
    """The axiom, or the number, of a part of the expression."""
    match node:
        case ast.Name(id=name):
            return known[name]
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, known)
        case ast.Call(func=ast.Name(id="vote"), args=[_, *_] as parts, keywords=keywords):
            options = {keyword.arg or "": _evaluate(keyword.value, known) for keyword in keywords}
            return vote(*(_evaluate(part, known) for part in parts), **options)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATORS:
            one, two = _evaluate(left, known), _evaluate(right, known)
            if isinstance(one, Axiom) + isinstance(two, Axiom) != (1 if isinstance(operation, ast.Mult) else 2):
                raise _Unreadable("combines what cannot be combined")
            return _OPERATORS[type(operation)](one, two)
    raise _Unreadable("is no expression of axioms")
