"""Behaviour probes: studies that put controlled questions about texts to a ranker."""

from typing import TYPE_CHECKING, Any

from whyrank.core.lazy import front_door
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

if TYPE_CHECKING:
    from whyrank.studies.probes.characteristics import Characteristic
    from whyrank.studies.probes.queries import query_strategies

front_door(__name__)
