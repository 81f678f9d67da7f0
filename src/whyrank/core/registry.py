"""One lazy registry per kind of thing: probes, rankers, analyzers, collections, ...

A name resolves in this order: registered in this process, plugin files included; built in (a lazy `module:attr`); an
installed entry point of the group `whyrank.<kind>`. Nothing built in is imported before it is asked for.
"""

from __future__ import annotations

import fnmatch
import importlib
import inspect
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from whyrank.core.callstrings import Call, arguments_of, parse_call
from whyrank.core.errors import UnknownName, WhyrankError
from whyrank.core.parameters import check_arguments
from whyrank.core.plugins import load_plugins

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
log = logging.getLogger(__name__)


@runtime_checkable
class Family(Protocol):
    """A factory of many related objects whose ids share a prefix, such as `matched/`."""

    def names(self) -> Iterable[str]:
        """Ids that the family can make now, prefix included."""
        ...

    def make(self, name: str, **arguments: Any) -> Any:
        """Make the object with this id."""
        ...


class Registry(Generic[T]):
    """Finds, lists and makes the objects of one kind by name or call string.

    A key that ends in `/` stands for a `Family`: one object that makes all ids with that prefix.
    """

    def __init__(self, kind: str, one: str, builtin: Mapping[str, str] | None = None) -> None:
        self.kind, self.one = kind, one
        self._builtin = dict(builtin or {})
        self._factories: dict[str, Any] = {}
        self._broken: set[str] = set()

    def register(self, name: str) -> Callable[[F], F]:
        """Register a class or function under a name; a name can be taken only once, but for a notebook's own."""

        def add(factory: F) -> F:
            known = self._factories.get(name)
            again = known is not None and known.__module__ == factory.__module__ == "__main__"
            if (known is not None or name in self._builtin) and not again:
                raise WhyrankError(f"{self.one} {name!r} is already registered; choose another name")
            self._factories[name] = factory
            return factory

        return add

    def forget(self, name: str) -> None:
        """Take back a registration made in this process."""
        self._factories.pop(name, None)

    def create(self, text: str, **defaults: Any) -> T:
        """Make the object that a call string describes; `defaults` fill arguments it accepts but was not given."""
        return self.build(parse_call(text), **defaults)

    def build(self, call: Call, **defaults: Any) -> T:
        """Make the object of a parsed call string."""
        factory = self.factory(call.name)
        declared = getattr(factory, "arguments", ()) if _is_family(factory) else ()  # by name of what it makes
        accepted = {p.name for p in _parameters(factory)}
        accepted |= set(declared(call.name) if callable(declared) else declared)
        not_filled = set(getattr(factory, "not_filled", ()))  # where a default of the same name means another thing
        arguments = {k: v for k, v in defaults.items() if k in accepted - not_filled} | dict(call.arguments)
        if call.resource is not None:
            arguments["resource"] = call.resource
        unknown = [key for key in arguments if key not in accepted]
        if "resource" in unknown:
            raise WhyrankError(f"{self.one} {call.name!r} takes no resource after the colon ({call.resource!r})")
        if unknown:
            raise UnknownName(f"argument of {self.one} {call.name!r}", unknown[0], accepted - {"resource"})
        missing = [p.name for p in _parameters(factory) if p.default is p.empty and p.name not in arguments]
        if missing:
            how = ":RESOURCE" if missing[0] == "resource" else f"({missing[0]}=...)"
            raise WhyrankError(f"{self.one} {call.name!r} needs {missing[0]!r}; write {call.name}{how}")
        check_arguments(call.name, _target(factory), arguments)
        try:
            made: T = factory.make(call.name, **arguments) if _is_family(factory) else factory(**arguments)
        except (TypeError, ValueError) as error:
            if not call.arguments:
                raise
            raise WhyrankError(f"{self.one} {str(call)!r} cannot be made: {error}") from error
        return made

    def factory(self, name: str) -> Any:
        """The class, function or family behind a name."""
        load_plugins()
        for key in (name, name.partition("/")[0] + "/"):
            found = self._find(key)
            if found is not None and (not _is_family(found) or name in set(found.names())):
                return found
        raise UnknownName(self.one, name, self.names())

    def names(self) -> list[str]:
        """All ids that can be made now, families spelled out, sorted; plugins that do not load are left out."""
        load_plugins()
        found: set[str] = set()
        for key in {*self._builtin, *self._factories, *self._entry_points()}:
            if key.endswith("/"):
                family = self._find(key)
                found.update(family.names() if family is not None else ())
            elif key in self._builtin or self._find(key) is not None:
                found.add(key)
        return sorted(found)

    def match(self, pattern: str) -> list[str]:
        """Ids that a shell pattern matches; an error that suggests names when there are none."""
        found = fnmatch.filter(self.names(), pattern)
        if not found:
            raise UnknownName(self.one, pattern, self.names())
        return found

    def __contains__(self, name: str) -> bool:
        try:
            self.factory(name)
        except UnknownName:
            return False
        return True

    def _find(self, key: str) -> Any:
        if key in self._factories:
            return self._factories[key]
        if key in self._builtin:
            module, _, attribute = self._builtin[key].partition(":")
            self._factories[key] = getattr(importlib.import_module(module), attribute)
        elif key not in self._broken and (point := self._entry_points().get(key)):
            try:
                self._factories[key] = point.load()
            except Exception as error:  # a broken plugin must not stop the rest
                self._broken.add(key)
                source = point.dist.name if point.dist else "?"
                log.warning("%s %r from package %r does not load: %s", self.one, key, source, error)
        return self._factories.get(key)

    def _entry_points(self) -> dict[str, EntryPoint]:
        return _installed(self.kind, tuple(sys.path))


@lru_cache
def _installed(kind: str, path: tuple[str, ...]) -> dict[str, EntryPoint]:
    """What installed packages offer of a kind; to look for them takes longer than all else that a registry does."""
    return {point.name: point for point in entry_points(group=f"whyrank.{kind}")}


def call_of(obj: Any, name: str, without: Iterable[str] = ()) -> str:
    """The call string of a dataclass instance that is registered under `name`; `without` are in the name already."""
    arguments = {key: value for key, value in arguments_of(obj).items() if key not in set(without)}
    resource = arguments.pop("resource", None)
    return str(Call(name, resource, arguments))


def _is_family(factory: Any) -> bool:
    return not isinstance(factory, type) and isinstance(factory, Family)


@cache
def _parameters(factory: Any) -> list[inspect.Parameter]:
    """The parameters that can be given by keyword; a family gets the name from us."""
    ours = {"name"} if _is_family(factory) else set()
    found = inspect.signature(_target(factory)).parameters.values()
    return [p for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in ours]


def _target(factory: Any) -> Any:
    """What is called with the arguments."""
    return factory.make if _is_family(factory) else factory
