"""The registry: names resolve late, in a fixed order, and errors say what would have worked."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass

import pytest

from whyrank.core import Registry, UnknownName, WhyrankError, call_of

LAZY = """
class Lazy:
    def __init__(self, size=1):
        self.size = size
"""


@dataclass(frozen=True)
class Thing:
    """A thing with arguments."""

    resource: str | None = None
    size: int = 1
    analyzer: str = "lucene"

    @property
    def id(self) -> str:
        return call_of(self, "thing")


class Shapes:
    """A family of two."""

    def names(self):
        return ["shape/round", "shape/square"]

    def make(self, name, size=1):
        return name, size


@dataclass(frozen=True)
class Family(Shapes):
    """A family that is a record itself."""

    prefix: str = "shape"


@pytest.fixture
def things() -> Registry:
    found = Registry("things", "thing")
    found.register("thing")(Thing)
    return found


@pytest.fixture
def on_path(tmp_path, monkeypatch):
    """A folder that Python imports from; the modules written there are forgotten afterwards."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def install(folder, entries: str, module: str) -> None:
    """Lay down what an installer would: a module and the metadata of its distribution."""
    (folder / "installed_things.py").write_text(module)
    info = folder / "installed_things-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-things\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)


def test_a_builtin_is_not_imported_before_it_is_asked_for(on_path):
    (on_path / "lazy_thing_module.py").write_text(LAZY)
    found = Registry("things", "thing", {"lazy": "lazy_thing_module:Lazy"})
    assert found.names() == ["lazy"]
    assert found.match("l*") == ["lazy"]
    assert "lazy_thing_module" not in sys.modules
    assert found.create("lazy(size=3)").size == 3
    assert "lazy_thing_module" in sys.modules


def test_defaults_fill_only_what_is_accepted_and_not_given(things):
    assert things.create("thing", analyzer="krovetz", seed=3) == Thing(None, 1, "krovetz")
    assert things.create("thing(analyzer=terrier)", analyzer="krovetz") == Thing(None, 1, "terrier")


def test_a_fault_of_the_factory_itself_is_not_blamed_on_the_user(things):
    @things.register("faulty")
    def faulty(size=1):
        raise TypeError("a fault in here")

    with pytest.raises(TypeError, match="a fault in here"):
        things.create("faulty")


@pytest.mark.parametrize("family", [Shapes(), Family()], ids=["plain", "dataclass"])
def test_a_family_makes_all_ids_with_its_prefix(things, family):
    things.register("shape/")(family)
    assert things.names() == ["shape/round", "shape/square", "thing"]
    assert things.create("shape/round(size=2)") == ("shape/round", 2)
    assert things.create("shape/round", size=3, colour="red") == ("shape/round", 3)
    assert things.factory("shape/square") is family
    assert "shape/round" in things
    assert "shape/oval" not in things
    assert "shape/" not in things
    assert "shape" not in things
    for wrong in ("shape/rund", "shape/round(sizes=2)", "shape/round(name=square)"):
        with pytest.raises(UnknownName):
            things.create(wrong)


def test_an_installed_package_is_found_when_it_is_asked_for(on_path, things):
    install(on_path, "[whyrank.things]\nlazy = installed_things:Lazy\n", LAZY)
    assert "lazy" not in Registry("others", "other")
    assert things.create("thing") == Thing()
    assert "installed_things" not in sys.modules
    assert things.create("lazy(size=2)").size == 2


def test_a_registration_and_a_builtin_win_over_a_package(on_path):
    (on_path / "lazy_thing_module.py").write_text(LAZY)
    install(on_path, "[whyrank.things]\nlazy = installed_things:Lazy\nmine = installed_things:Lazy\n", LAZY)
    found = Registry("things", "thing", {"lazy": "lazy_thing_module:Lazy"})
    found.register("mine")(Thing)
    assert type(found.create("lazy")).__module__ == "lazy_thing_module"
    assert found.create("mine") == Thing()


def test_a_broken_package_warns_once_and_does_not_stop_the_rest(on_path, things, caplog):
    entries = "missing = nowhere:Thing\nfails = installed_things:Gone\nlazy = installed_things:Lazy\n"
    install(on_path, f"[whyrank.things]\nfamily/ = nowhere:family\n{entries}", LAZY)
    with caplog.at_level(logging.WARNING):
        assert things.names() == ["lazy", "thing"]
        assert things.match("*") == ["lazy", "thing"]
        assert "missing" not in things
        with pytest.raises(UnknownName, match="unknown thing 'missing'"):
            things.create("missing")
    assert len(caplog.messages) == 3
    assert all("from package 'installed-things' does not load" in message for message in caplog.messages)
    assert things.create("lazy").size == 1


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("thingy(size=1)", UnknownName, "unknown thing 'thingy'; did you mean 'thing'"),
        ("thing(sise=1)", UnknownName, "unknown argument of thing 'thing' 'sise'; did you mean 'size'"),
        ("half:x", WhyrankError, "takes no resource"),
        ("half(size=x)", WhyrankError, "cannot be made"),
        ("file", WhyrankError, "write file:RESOURCE"),
        ("sized", WhyrankError, "write sized"),
        ("declared/round(size=2)", UnknownName, "unknown argument"),
    ],
)
def test_what_cannot_be_made_is_refused(things, text, error, words):
    class Declared(Shapes):
        """A family that declares the arguments of what it makes."""

        arguments = ("colour",)

        def names(self):
            return ["declared/round"]

        def make(self, name, **arguments):
            return name, arguments

    things.register("half")(lambda size=1: size / 2)
    things.register("file")(lambda resource: resource)
    things.register("sized")(lambda *, size, name="x": (size, name))
    things.register("declared/")(Declared())
    with pytest.raises(error, match=words):
        things.create(text)
    assert things.create("sized(name=y)", size=4) == (4, "y")
    assert things.create("declared/round(colour=red)", size=1) == ("declared/round", {"colour": "red"})
    with pytest.raises(WhyrankError, match="already registered"):
        things.register("half")(Thing)
