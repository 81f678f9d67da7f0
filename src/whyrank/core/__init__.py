"""Records, protocols, the registry and the errors that every other room builds on."""

from whyrank.core.errors import BadInput, UnknownName, WhyrankError
from whyrank.core.protocols import Ranker, Study
from whyrank.core.registry import Registry

__all__ = ["BadInput", "Ranker", "Registry", "Study", "UnknownName", "WhyrankError"]
