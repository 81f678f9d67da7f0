"""Behaviour probes: studies that put controlled questions about texts to a ranker."""

from typing import Any

from whyrank.core.registry import Registry

probes: Registry[Any] = Registry(
    "probes",
    "probe",
    {
        "matched/": "whyrank.studies.probes.matched:family",
        "edited/": "whyrank.studies.probes.edited:family",
        "transferred/": "whyrank.studies.probes.transferred:family",
    },
)

__all__ = ["probes"]
