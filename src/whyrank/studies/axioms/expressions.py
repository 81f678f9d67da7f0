"""Axioms as one writes them: `(TFC1(length=5) & M-AND) | -DIV`, `2*TFC1 + M-AND`, `vote(TFC1, DIV, M-AND)`.

A dash inside a name belongs to the name (`M-AND`); a minus between two axioms has blanks around it. `*` binds more
tightly than `+` and `-`, these than `&`, and `&` than `|`. Nothing is evaluated: names and their arguments are call
strings, and the rest is a handful of operators.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, NamedTuple

from whyrank.core import WhyrankError, parse_call
from whyrank.studies.axioms import algebra
from whyrank.studies.axioms.axiom import Axiom

_NAME = re.compile(r"[^\W\d][\w./:]*(?:-[\w./:]+)*")
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])")
_OPERATORS = re.compile(r"[-&|+*()]")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_ARGUMENT = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)")
_PATTERN = re.compile(r"[A-Za-z*?\[][\w./*?\[\]!-]*")
_UNREADABLE = (SyntaxError, ValueError, MemoryError, RecursionError)  # the last two: brackets without end


def parse_expression(text: str, **common: Any) -> Axiom:
    """The axiom that an expression describes; `common` fills fields such as `analyzer` in all its parts."""
    return _Parser(text, common).axiom()


def axiom_of(given: Axiom | str, **common: Any) -> Axiom:
    """An axiom as it is, or from an expression."""
    return parse_expression(given, **common) if isinstance(given, str) else given


def is_pattern(text: str) -> bool:
    """Whether a text is a shell pattern over names of axioms, such as `PROX*`, and no expression."""
    return bool(_PATTERN.fullmatch(text)) and any(c in text for c in "*?[")


def expression(*, of: str, conclusion: str | None = None, **common: Any) -> Axiom:
    """The axiom that the expression `of` describes, such as `(TFC1 & M-AND) | -DIV`."""
    if not isinstance(of, str):
        raise WhyrankError(f"axiom 'expression' needs one text, not {of!r}; write expression(of='TFC1 & DIV')")
    made = parse_expression(of, **common)
    return made if conclusion is None else replace(made, conclusion=conclusion)


# what the registry may fill: the fields of all axioms; a combination has no published form to be compatible with
expression.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter("of", inspect.Parameter.KEYWORD_ONLY),
        *(
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default)
            for field in fields(Axiom)
            if field.name != "compat"
        ),
    ]
)


class _Token(NamedTuple):
    """A number, an operator, or a name with its arguments."""

    text: str
    is_axiom: bool


class _Parser:
    """Puts a placeholder for each axiom, lets Python's grammar find the structure, and combines."""

    def __init__(self, text: str, common: dict[str, Any]) -> None:
        self.text, self.common = text, common
        self.known: dict[str, str] = {}

    def axiom(self) -> Axiom:
        """The axiom of the whole text."""
        try:
            found = self._made(self._tree())
        except RecursionError:
            raise self._problem("is nested too deeply") from None
        if not isinstance(found, Axiom):
            raise self._problem("is a number and no axiom")
        return found

    def _tree(self) -> ast.expr:
        source = " ".join(self._placed(token) for token in self._tokens())
        try:
            return ast.parse(source, mode="eval").body
        except _UNREADABLE:
            raise self._problem(_bracket(self.text) or "is no expression of axioms") from None

    def _tokens(self) -> Iterator[_Token]:
        at = 0
        while at < len(self.text):
            name, plain = _NAME.match(self.text, at), _plain(self.text, at)
            if name:
                end = self._after_arguments(name.end())
                yield _Token(self.text[at:end], True)
            elif plain:
                end = plain.end()
                yield _Token(plain[0], False)
            elif self.text[at].isspace():
                end = at + 1
            else:
                raise self._problem(f"has {self.text[at]!r} where no expression has it")
            at = end

    def _after_arguments(self, at: int) -> int:
        if self.text[at : at + 1] != "(":
            return at
        depth = 0
        for place, char in _unquoted(self.text, at):
            depth += (char == "(") - (char == ")")
            if not depth:
                return place + 1
        raise self._problem("has a bracket that is not closed")

    def _placed(self, token: _Token) -> str:
        if not token.is_axiom:
            return token.text
        placeholder = f"axiom{len(self.known)}"
        self.known[placeholder] = token.text
        return placeholder

    def _made(self, node: ast.expr) -> Axiom | float:
        match node:
            case ast.Name(id=placeholder):
                return self._leaf(self.known[placeholder])
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self._made(operand)
                return algebra.reverse(inner) if isinstance(inner, Axiom) else -inner
            case ast.BinOp(left=left, op=operator, right=right):
                return self._combined(operator, self._made(left), self._made(right))
        raise self._problem("is no expression of axioms")

    def _combined(self, operator: ast.operator, left: Axiom | float, right: Axiom | float) -> Axiom:
        match operator, left, right:
            case (ast.Mult(), Axiom(), int() | float()):
                return algebra.times(left, right)
            case (ast.Mult(), int() | float(), Axiom()):
                return algebra.times(right, left)
            case (ast.BitAnd(), Axiom(), Axiom()):
                return algebra.both(left, right)
            case (ast.BitOr(), Axiom(), Axiom()):
                return algebra.either(left, right)
            case (ast.Add(), Axiom(), Axiom()):
                return algebra.plus(left, right)
            case (ast.Sub(), Axiom(), Axiom()):
                return algebra.plus(left, algebra.times(right, -1))
        raise self._problem("combines what cannot be combined")

    def _leaf(self, text: str) -> Axiom:
        name, bracket, inside = text.partition("(")
        if name == "vote" and bracket and not _ARGUMENT.match(inside):
            return self._vote(inside[:-1])
        return algebra.made_from(text, self.common)

    def _vote(self, inside: str) -> Axiom:
        pieces = list(_pieces(inside))
        named = [piece for piece in pieces if _ARGUMENT.match(piece)]
        arguments = parse_call(f"vote({','.join(named)})").arguments
        if arguments.keys() - {"minimum"}:
            raise self._problem("has a vote with more than axioms and minimum=SHARE")
        return algebra.vote(*(parse_expression(p, **self.common) for p in pieces if p not in named), **arguments)

    def _problem(self, what: str) -> WhyrankError:
        shown = self.text if len(self.text) <= 100 else self.text[:97] + "..."
        return WhyrankError(f"{shown!r} {what}; write such as '(TFC1 & M-AND) | -DIV' or '2*TFC1 + M-AND'")


def _plain(text: str, at: int) -> re.Match[str] | None:
    return _NUMBER.match(text, at) or _OPERATORS.match(text, at)


def _unquoted(text: str, at: int = 0) -> Iterator[tuple[int, str]]:
    """The characters outside quotes, with their places."""
    while at < len(text):
        quoted = _QUOTED.match(text, at)
        if not quoted:
            yield at, text[at]
        at = quoted.end() if quoted else at + 1


def _bracket(text: str) -> str:
    """What is wrong with the brackets of a text, if anything."""
    depth = 0
    for _, char in _unquoted(text):
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return "has a bracket that is not opened"
    return "has a bracket that is not closed" if depth else ""


def _pieces(text: str) -> Iterator[str]:
    """The text cut at commas outside brackets and quotes."""
    depth, start = 0, 0
    for place, char in _unquoted(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and not depth:
            yield text[start:place]
            start = place + 1
    yield text[start:]
