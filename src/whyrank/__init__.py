"""whyrank shows what a ranking model really rewards.

import whyrank
findings = whyrank.ask("matched/*", ["bm25", "ql"], "sample", tolerance="10%")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whyrank.data import Collection, open_collection
    from whyrank.rankers import open_ranker
    from whyrank.scoring import Engine, ScoreStore
    from whyrank.studies import Contrasts, Finding, Pair, ask

__version__ = "0.1.0"
_HOMES = {
    "ask": "whyrank.studies.asking",
    "Collection": "whyrank.data",
    "Contrasts": "whyrank.studies",
    "Engine": "whyrank.scoring",
    "Finding": "whyrank.studies",
    "Pair": "whyrank.studies",
    "ScoreStore": "whyrank.scoring",
    "open_collection": "whyrank.data",
    "open_ranker": "whyrank.rankers",
}
__all__ = [
    "Collection",
    "Contrasts",
    "Engine",
    "Finding",
    "Pair",
    "ScoreStore",
    "__version__",
    "ask",
    "open_collection",
    "open_ranker",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for: `import whyrank` itself stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'whyrank' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
