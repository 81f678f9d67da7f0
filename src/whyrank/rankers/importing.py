"""Objects in other people's modules: `MODULE:NAME` or `FILE.py:NAME`."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import sysconfig
from contextlib import redirect_stdout, suppress
from functools import lru_cache
from hashlib import sha256
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from weakref import WeakKeyDictionary

from whyrank.core import BadInput, WhyrankError, file_digest

_INSTALLED = ("site-packages", "dist-packages")


class _Source(NamedTuple):
    """A source file as it was when it was first looked at: its digest, and the names of what it imports."""

    digest: str
    imports: frozenset[str]


_sources: WeakKeyDictionary[ModuleType, _Source] = WeakKeyDictionary()  # a file may change after it was imported


def module_of(kind: str, resource: str) -> ModuleType:
    """Import the module of a resource; whatever that raises is one line that names the ranker."""
    module, _, name = resource.rpartition(":")
    if not module or not name:
        raise WhyrankError(f"ranker '{kind}:{resource}': write {kind}:MODULE:NAME or {kind}:FILE.py:NAME")
    try:
        with redirect_stdout(sys.stderr):
            return _from_file(Path(module)) if module.endswith(".py") else _from_name(module)
    except (Exception, SystemExit) as error:  # other people's code may raise anything while it is imported
        raise WhyrankError(f"ranker '{kind}:{resource}' cannot be imported: {error}") from error


def source_digest(module: ModuleType, depends_on: object = ()) -> str:
    """First 16 hex digits of a SHA-256 over a module's source, what it imports from beside it, and files it names.

    Beside it are the modules of its package, or of its folder where it is in no package, and of folders below; what
    is installed is not. Imports inside functions count too.
    """
    file = getattr(module, "__file__", None)
    found = _beside(module, Path(file).resolve()) if file else {}
    named = files_digest(module.__name__, depends_on, Path(file).parent if file else Path())
    return sha256(repr([module.__name__ if not file else "", sorted(found.items()), named]).encode()).hexdigest()[:16]


def files_digest(what: str, depends_on: object, folder: Path) -> list[str]:
    """Digests of the content of files that a ranker names in `depends_on`, relative to a folder or absolute."""
    if not isinstance(depends_on, list | tuple) or not all(isinstance(each, str | PathLike) for each in depends_on):
        raise WhyrankError(f"ranker {what!r}: depends_on must be a list of paths, not {depends_on!r}")
    found = []
    for path in (folder / each for each in depends_on):
        try:
            facts = path.stat()
            found.append(_digest_at(path, facts.st_size, facts.st_mtime_ns))
        except OSError as error:
            what = f"cannot be read ({error.strerror or error}), and ranker {what!r} names it in depends_on"
            raise BadInput(path, what, "correct the path there") from None
    return found


@lru_cache(maxsize=256)
def _digest_at(path: Path, size: int, mtime_ns: int) -> str:
    return file_digest(path)


def _beside(module: ModuleType, file: Path) -> dict[str, str]:
    """Digests of a module and of what it imports, directly or not, from beside it, by name."""
    inside = sys.modules.get(module.__name__) is module  # else it was read from a file, and has no package
    depth = module.__name__.count(".") + (file.name == "__init__.py") if inside else 0
    home = file.parents[depth]
    root = home / module.__name__.split(".")[0] if depth else home
    waiting: list[tuple[str, ModuleType | None, Path]] = [(module.__name__ if inside else "", module, file)]
    found: dict[str, str] = {}
    while waiting:
        name, loaded, place = waiting.pop()
        package = name if place.name == "__init__.py" else name.rpartition(".")[0]
        source = _sources.get(loaded) if loaded else None
        source = source or _source(place, package)
        if loaded:
            _sources[loaded] = source
        found[name] = source.digest
        for each in sorted(source.imports - set(found) - {other for other, *_ in waiting}):
            there = sys.modules.get(each)
            if (path := _file_of(each, there, home)) is not None and _is_below(path, root):
                waiting.append((each, there, path))
    return found


def _source(file: Path, package: str) -> _Source:
    content, names = file.read_bytes(), set[str]()
    with suppress(SyntaxError, ValueError):  # a compiled module
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
                base = ".".join([*above, *([node.module] if node.module else [])])
                names |= {f"{base}.{alias.name}" for alias in node.names}
    parts = [name.split(".") for name in names]
    everything = {".".join(part[:end]) for part in parts for end in range(1, len(part) + 1)}
    return _Source(sha256(content).hexdigest(), frozenset(n for n in everything if n.split(".")[0] != "whyrank"))


def _file_of(name: str, module: ModuleType | None, home: Path) -> Path | None:
    """The file of a module that is imported, or that will be when it is needed."""
    known = getattr(module, "__file__", None)
    path = home.joinpath(*name.split("."))
    places = [Path(known)] if known else [path / "__init__.py", path.with_name(f"{path.name}.py")]
    return next((place.resolve() for place in places if place.is_file()), None) if known or module is None else None


def _is_below(file: Path, root: Path) -> bool:
    installed = root.name in _INSTALLED or file.is_relative_to(Path(sysconfig.get_paths()["stdlib"]).resolve())
    return file.is_relative_to(root) and not installed and not set(file.relative_to(root).parts) & set(_INSTALLED)


def _from_name(name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # a console script does not look in the working folder by itself
    return importlib.import_module(name)


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError(f"no such file: {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
