"""Front doors: what a package offers to others, imported when it is first used.

    if TYPE_CHECKING:
        from whyrank.data import Collection

    __getattr__, __dir__ = front_door(__name__)

The imports under `TYPE_CHECKING` are the one list of names: type checkers read it, and so does `front_door`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pkgutil import get_data
from typing import Any


def front_door(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that imports the names of its `TYPE_CHECKING` block on demand."""
    source = get_data(package, "__init__.py") or b""
    guarded = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    imports = [node for block in guarded for node in block.body if isinstance(node, ast.ImportFrom)]
    home = {alias.asname or alias.name: (node.module or "", alias.name) for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = home[name]
        found = getattr(import_module(module), original)
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return get, names
