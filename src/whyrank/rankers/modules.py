"""Rankers in other modules: `python:MODULE:NAME` and `pyterrier:MODULE:NAME`, also with `FILE.py` for `MODULE`."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from os import PathLike
from pathlib import Path
from traceback import extract_tb
from types import FunctionType, ModuleType
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from whyrank.core import (
    Answered,
    BadInput,
    Floats,
    MissingExtra,
    Whole,
    WhyrankError,
    apart_from_results,
    file_digest,
)
from whyrank.rankers.base import Described, distinct
from whyrank.rankers.fields import reads_fields, score_with_fields


class ModuleRanker(Described):
    """A ranker that is an attribute of a module; its identity has a hash of the module's source.

    Attributes:
        resource: MODULE:NAME or PATH/FILE.py:NAME.
        version: names the state of what the ranker depends on, so that its scores can be reused in a later run.
        batch_size: pairs per call.
    """

    resource: str
    version: str | int | float | None

    arithmetic: ClassVar[str] = "theirs"

    def __repr__(self) -> str:
        return f"{self.registered}:{self.resource} source={self._source} version={self.version!r}"

    @cached_property
    def _module(self) -> ModuleType:
        return module_of(self.registered, self.resource)

    @cached_property
    def _attribute(self) -> Any:
        return getattr(self._module, self.resource.rpartition(":")[2], None)

    def _make(self, maker: Callable[[], Any]) -> Any:
        """What somebody's class or function makes when it is called without arguments."""
        try:
            return maker()
        except Exception as error:  # other people's code may raise anything
            raise WhyrankError(f"ranker '{self.registered}:{self.resource}' cannot be made: {_why(error)}") from error

    @cached_property
    def _source(self) -> str:
        return source_digest(self._module)


@dataclass(frozen=True, repr=False)
class PythonRanker(ModuleRanker):
    """A function of (queries, docs) that gives one number per pair: `module:callable` or `path/file.py:callable`.

    With a third argument `fields` it is given a mapping for each pair: the id and the fields of the document.
    A class is called once without arguments, and its instance (or its `score` method) scores. The identity has a
    hash of the module's source, of what it imports from beside it, and of the files that the function or class names
    in its attribute `depends_on`. What depends on anything else (a model, a service) is stateful: its scores
    are reused across runs only with `version=`. Plain functions count as stateless and all else as stateful,
    unless `stateful=` says otherwise.

    Attributes:
        stateful: whether scores depend on more than the source; by default only those of a plain function do not.
    """

    resource: str
    stateful: bool | None = None
    version: str | int | float | None = None
    batch_size: Whole = 32

    registered: ClassVar[str] = "python"

    @property
    def tie_tolerance(self) -> Any:
        """What the function, or the object that its class makes, declares as `tie_tolerance`; 0 where it does not."""
        owner = getattr(self._function, "__self__", self._function)
        return getattr(owner, "tie_tolerance", getattr(self._attribute, "tie_tolerance", 0.0))

    @property
    def cacheable(self) -> bool:
        """Whether scores may be reused in a later run."""
        stateful = not isinstance(self._attribute, FunctionType) if self.stateful is None else self.stateful
        return not stateful or self.version is not None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Import the function before the first call, whose time may be limited; what fails shows then."""
        self.__dict__.update(state)
        with suppress(Exception, SystemExit):
            _ = self._function

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> npt.NDArray[Any]:
        """Call the function."""
        if self.wants_fields:
            return np.asarray(score_with_fields(self._function, queries, docs))
        return np.asarray(self._function(queries, docs))

    @cached_property
    def wants_fields(self) -> bool:
        """Whether the function has the argument `fields`."""
        return reads_fields(self._function)

    @cached_property
    def _function(self) -> Callable[..., Any]:
        found = self._attribute
        if not callable(found) and not hasattr(found, "score"):
            name = self.resource.rpartition(":")[2]
            raise WhyrankError(f"ranker 'python:{self.resource}': {self._module.__name__} has no callable {name!r}")
        if isinstance(found, type):
            found = self._make(found)
        function: Callable[..., Any] = getattr(found, "score", found)
        return function

    @cached_property
    def _source(self) -> str:
        return source_digest(self._module, getattr(self._attribute, "depends_on", ()))


@dataclass(frozen=True, repr=False)
class PyTerrierRanker(ModuleRanker):
    """A PyTerrier transformer that scores texts: `module:attr` or `path/file.py:attr`.

    It is given a data frame with the columns qid, query, docno and text, one row per pair. It returns a frame with
    qid, docno and score, in any order. What is no transformer but can be called is called once without
    arguments to make one. Rows that it leaves out are counted as pairs without a score. A score must depend on its
    pair alone: what ranks or normalises within a list sees the batches of the engine, which mean nothing.

    The identity has a hash of the module's source and of what it imports from beside it. `version=` names what else
    the transformer depends on (an index, a model), and only with it scores are reused in a later run.
    """

    resource: str
    version: str | int | float | None = None
    batch_size: Whole = 64

    registered: ClassVar[str] = "pyterrier"

    @property
    def cacheable(self) -> bool:
        """Whether scores may be reused in a later run."""
        return self.version is not None

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Give all distinct pairs to the transformer in one frame."""
        return TransformerRanker(self._transformer, self.name).score(queries, docs)

    @cached_property
    def _transformer(self) -> Any:
        found, what = self._attribute, f"ranker 'pyterrier:{self.resource}'"
        if (isinstance(found, type) or not hasattr(found, "transform")) and callable(found):
            found = self._make(found)
        if not hasattr(found, "transform"):
            name = self.resource.rpartition(":")[2]
            raise WhyrankError(f"{what}: {name!r} is no transformer; it needs transform(df)")
        return found


@dataclass(frozen=True)
class TransformerRanker:
    """A PyTerrier transformer as a ranker; what it depends on is not known, so its scores are not stored."""

    transformer: Any
    name: str = ""
    batch_size: ClassVar[int] = 64
    arithmetic: ClassVar[str] = "theirs"
    cacheable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """By default it has the name of its class."""
        object.__setattr__(self, "name", self.name or type(self.transformer).__name__)

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Give all distinct pairs to the transformer in one frame."""
        query, doc = distinct(queries), distinct(docs)
        pairs = list(zip(query.codes.tolist(), doc.codes.tolist(), strict=True))
        if not pairs:
            return np.zeros(0)
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise MissingExtra("ranker 'pyterrier'", "pyterrier") from None
        rows = [(f"q{q}", query.texts[q], f"d{d}", doc.texts[d]) for q, d in dict.fromkeys(pairs)]
        columns = ["qid", "query", "docno", "text"]
        given = pandas.DataFrame(rows, columns=columns, dtype=object)  # any text, however odd
        frame = self.transformer.transform(given)
        for name in ("qid", "docno", "score"):
            if name not in getattr(frame, "columns", ()):
                raise WhyrankError(f"ranker {self.name!r} gave back no column {name!r}; it must score the pairs")
        keys = list(zip(frame["qid"].astype(str), frame["docno"].astype(str), strict=True))
        if len(set(keys)) < len(keys):
            raise WhyrankError(f"ranker {self.name!r} gave back two rows for one pair; it must give one score each")
        found = dict(zip(keys, frame["score"].astype(float), strict=True))
        scores = np.array([found.get((f"q{q}", f"d{d}"), np.nan) for q, d in pairs])
        missing = [i for i, (q, d) in enumerate(pairs) if (f"q{q}", f"d{d}") not in found]
        return Answered(scores, dict.fromkeys(missing, "the transformer gave no row for this pair")).scores_or_raise()


# Importing modules, and digests of all that a module depends on.


def module_of(kind: str, resource: str) -> ModuleType:
    """Import the module of a resource; whatever that raises is one line that names the ranker."""
    module, _, name = resource.rpartition(":")
    if not module or not name:
        raise WhyrankError(f"ranker '{kind}:{resource}': write {kind}:MODULE:NAME or {kind}:FILE.py:NAME")
    try:
        with apart_from_results():
            if module.endswith(".py"):
                spec = importlib.util.spec_from_file_location(Path(module).stem, module)
                assert spec is not None
                assert spec.loader is not None
                found = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(found)
                return found
            if "" not in sys.path and str(Path.cwd()) not in sys.path:
                sys.path.insert(0, str(Path.cwd()))  # a console script does not look in the working folder by itself
            return importlib.import_module(module)
    except (Exception, SystemExit) as error:  # other people's code may raise anything while it is imported
        raise WhyrankError(f"ranker '{kind}:{resource}' cannot be imported: {_why(error)}") from error


def _why(error: BaseException) -> str:
    """What other people's code raised, and at which line of it."""
    ours = (__file__, importlib.__file__, "<frozen ")
    theirs = [each for each in extract_tb(error.__traceback__) if not each.filename.startswith(ours)]
    where = f" at {theirs[-1].filename}:{theirs[-1].lineno}" if theirs else ""
    return f"{type(error).__name__}: {error}{where}"


def source_digest(module: ModuleType, depends_on: object = ()) -> str:
    """First 16 hex digits of a SHA-256 over a module's source, what it imports from beside it, and files it names.

    Beside it are the modules of its package, or of its folder where it is in no package, and of folders below; what
    is installed is not. Imports inside functions count too.
    """
    file = getattr(module, "__file__", None)
    sources = local_sources(module, Path(file).resolve()) if file else {}
    files = files_digest(module.__name__, depends_on, Path(file).parent if file else Path())
    parts = [module.__name__ if not file else "", sorted(sources.items()), files]
    return sha256(repr(parts).encode()).hexdigest()[:16]


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
            problem = f"cannot be read ({error.strerror or error}), and ranker {what!r} names it in depends_on"
            raise BadInput(path, problem, "correct the path there") from None
    return found


@lru_cache(maxsize=256)
def _digest_at(path: Path, size: int, mtime_ns: int) -> str:
    return file_digest(path)


class _Source(NamedTuple):
    """A source file as it was when it was first looked at: its digest, and the names of what it imports."""

    digest: str
    imports: frozenset[str]


_sources: WeakKeyDictionary[ModuleType, _Source] = WeakKeyDictionary()  # a file may change after it was imported


def local_sources(module: ModuleType, file: Path) -> dict[str, str]:
    """Digests of a module and of what it imports, directly or not, from beside it, by name."""
    by_name = sys.modules.get(module.__name__) is module  # else it was read from a file, and has no package
    depth = module.__name__.count(".") + (file.name == "__init__.py") if by_name else 0
    home = file.parents[depth]
    root = home / module.__name__.split(".")[0] if depth else home
    waiting: list[tuple[str, ModuleType | None, Path]] = [(module.__name__ if by_name else "", module, file)]
    found: dict[str, str] = {}
    while waiting:
        name, loaded, path = waiting.pop()
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        source = (_sources.get(loaded) if loaded else None) or _read_source(path, package)
        if loaded:
            _sources[loaded] = source
        found[name] = source.digest
        for each in sorted(source.imports - set(found) - {other for other, *_ in waiting}):
            if (local := _local_file(each, home, root)) is not None:
                waiting.append((each, sys.modules.get(each), local))
    return found


def _read_source(file: Path, package: str) -> _Source:
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
    with_parents = {".".join(part[:end]) for part in parts for end in range(1, len(part) + 1)}
    return _Source(sha256(content).hexdigest(), frozenset(n for n in with_parents if n.split(".")[0] != "whyrank"))


def _local_file(name: str, home: Path, root: Path) -> Path | None:
    """The file of a module, imported or not, where it is below `root` and neither Python's own nor installed."""
    module, path = sys.modules.get(name), home.joinpath(*name.split("."))
    known = getattr(module, "__file__", None)
    if module is not None and not known:
        return None
    candidates = [Path(known)] if known else [path / "__init__.py", path.with_name(f"{path.name}.py")]
    file = next((each.resolve() for each in candidates if os.path.isfile(each)), None)
    installed, stdlib = {"site-packages", "dist-packages"}, Path(sysconfig.get_paths()["stdlib"]).resolve()
    if file is None or root.name in installed or file.is_relative_to(stdlib) or not file.is_relative_to(root):
        return None
    return None if set(file.relative_to(root).parts) & installed else file
