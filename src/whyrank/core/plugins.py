"""Plugins without packaging: Python files that register what they add, named by `--plugin` or `WHYRANK_PLUGINS`."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Iterable
from hashlib import sha256
from os import PathLike
from pathlib import Path

from whyrank.core.errors import BadInput
from whyrank.core.progress import apart_from_results

VARIABLE = "WHYRANK_PLUGINS"
_loaded: dict[Path, BadInput | None] = {}


def load_plugins(files: Iterable[str | PathLike[str]] = ()) -> None:
    """Import files that register probes, rankers and so on, and before them those of `WHYRANK_PLUGINS`, each once.

    What lies beside a file can be imported by it. A file that fails is an error each time that it is named.
    """
    named = [each for each in os.environ.get(VARIABLE, "").split(os.pathsep) if each]
    for path in (Path(each).expanduser().resolve() for each in (*named, *files)):
        if path not in _loaded:
            _loaded[path] = None  # a file that looks something up while it is imported does not start again
            _loaded[path] = _problem(path)
        if (problem := _loaded[path]) is not None:
            raise problem


class Plugins:
    """The plugins that this process has imported; where this is unpickled, they are loaded."""

    def __reduce__(self) -> tuple[object, ...]:
        return load_plugins, ([path for path, problem in _loaded.items() if problem is None],)


def _problem(path: Path) -> BadInput | None:
    """Import a file under a name of its own; what is wrong with it where that fails."""
    if not path.is_file() or path.suffix != ".py":
        return BadInput(path, "there is no such plugin", "give a file that ends in .py")
    name = f"whyrank_plugin_{path.stem}_{sha256(os.fsencode(path)).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        with apart_from_results():
            spec.loader.exec_module(sys.modules[name])
    except (Exception, SystemExit) as error:  # other people's code may raise anything while it is imported
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        lines += [error.lineno] if isinstance(error, SyntaxError) and error.filename == str(path) else []
        why = " ".join(f"{type(error).__name__}: {error}".split())
        return BadInput(path, f"this plugin cannot be imported ({why})", "correct it", lines[-1] if lines else None)
    return None
