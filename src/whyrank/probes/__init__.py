"""Behaviour probes: studies that put controlled questions about texts to a ranker."""

from typing import Any

from whyrank.core.registry import Registry

probes: Registry[Any] = Registry(
    "probes",
    "probe",
    {
        "matched/": "whyrank.probes.matched:family",
        "edited/": "whyrank.probes.edited:family",
        "transferred/": "whyrank.probes.transferred:family",
    },
)

__all__ = ["probes"]
