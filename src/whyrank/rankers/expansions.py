"""Queries that a model wrote for texts, on disk: each text costs a model's time once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from whyrank.core.text_store import Names, TextStore

_NAMES = Names("makers", "expansions", "maker", "queries", "TEXT")
_LAYOUT = _NAMES.layout("cache of generated queries", 0x77726E71)


class ExpansionStore(TextStore[list[str]]):
    """All queries that were ever generated, by the identity of their maker and the digest of the text."""

    def __init__(self, path: Path) -> None:
        """Open the file, and make it where there is none."""
        super().__init__(path, _LAYOUT, _NAMES)

    def encoded(self, value: list[str]) -> str:
        """Queries as JSON."""
        return json.dumps(value)

    def decoded(self, text: str, stored: Any, identity: str) -> list[str]:
        """Queries from JSON."""
        try:
            found = json.loads(stored)
        except ValueError:
            found = None
        if not isinstance(found, list):
            raise self.layout.damaged(self.path)
        return [str(query) for query in found]
