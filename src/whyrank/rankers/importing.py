"""Objects in other people's modules: `MODULE:NAME` or `FILE.py:NAME`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from contextlib import redirect_stdout
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from whyrank.core.errors import WhyrankError
from whyrank.core.files import file_digest


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


def source_digest(module: ModuleType) -> str:
    """First 16 hex digits of the SHA-256 of a module's source, or of its name where it has no file."""
    file = getattr(module, "__file__", None)
    return file_digest(file) if file else sha256(module.__name__.encode()).hexdigest()[:16]


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
