"""Retrieval axioms: studies whose contrasts follow from a condition on two (or three) documents of a query."""

from typing import TYPE_CHECKING, Any

from whyrank.core.lazy import front_door
from whyrank.core.registry import Registry

_MODULES = {
    "counts": ("TFC1", "TFC2", "TFC3", "TDC", "M-TDC", "AND", "M-AND", "DIV"),
    "length": ("LNC1", "TF-LNC"),
    "duplicates": ("LNC2",),
    "bounds": ("LB1", "LB2"),
    "proximity": ("TP", "PROX1", "PROX2", "PROX3", "PROX4", "PROX5", "QPHRA"),
    "aspects": ("REG", "ANTI-REG"),
    "semantic": ("STMC1", "STMC2", "STMC3"),
}

_UNLISTED = {
    "axiom/and": "whyrank.studies.axioms.algebra:And",
    "axiom/or": "whyrank.studies.axioms.algebra:Or",
    "axiom/not": "whyrank.studies.axioms.algebra:Not",
    "axiom/sum": "whyrank.studies.axioms.algebra:Sum",
    "axiom/vote": "whyrank.studies.axioms.algebra:Vote",
    "axiom/expression": "whyrank.studies.axioms.expressions:expression",
    "axiom/ORIG": "whyrank.studies.axioms.reranking:ORIG",
    "axiom/ORACLE": "whyrank.studies.axioms.reranking:ORACLE",
}


class Axioms(Registry[Any]):
    """The registry of axioms; combinations and references are made by name, and no pattern finds them."""

    def names(self) -> list[str]:
        """All ids that stand for an axiom of their own."""
        return [name for name in super().names() if name not in _UNLISTED]

    def match(self, pattern: str) -> list[str]:
        """Ids that a shell pattern matches; what is not listed matches its own name alone."""
        return [pattern] if pattern in _UNLISTED else super().match(pattern)


axioms = Axioms(
    "axioms",
    "axiom",
    {
        f"axiom/{name}": f"whyrank.studies.axioms.{module}:{name.replace('-', '_')}"
        for module, names in _MODULES.items()
        for name in names
    }
    | _UNLISTED,
)

if TYPE_CHECKING:
    from whyrank.studies.axioms.algebra import check_pairs
    from whyrank.studies.axioms.axiom import Axiom, Signs
    from whyrank.studies.axioms.expressions import is_pattern, parse_expression
    from whyrank.studies.axioms.preferences import column_name, save_preferences
    from whyrank.studies.axioms.reranking import rerank
    from whyrank.studies.axioms.view import View, Views

front_door(__name__)
