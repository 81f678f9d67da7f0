"""Front doors: what a package offers to others, imported when it is first used.

    if TYPE_CHECKING:
        from whyrank.data.collection import Collection

    front_door(__name__)

The imports under `TYPE_CHECKING` are the one list of names: type checkers read it, and so does `front_door`.
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pkgutil import get_data
from typing import Any


def front_door(package: str) -> None:
    """Make a package import the names of its `TYPE_CHECKING` block on demand (PEP 562).

    `__getattr__` is set on the module object, where type checkers do not see it: they report unknown names.
    """
    module = sys.modules[package]
    guarded = [node for node in ast.parse(get_data(package, "__init__.py") or b"").body if isinstance(node, ast.If)]
    imports = [node for block in guarded for node in block.body if isinstance(node, ast.ImportFrom)]
    home = {alias.name: node.module or "" for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home[name]), name)

    vars(module).update(__getattr__=get, __dir__=lambda: sorted({*vars(module), *home}), __all__=sorted(home))
