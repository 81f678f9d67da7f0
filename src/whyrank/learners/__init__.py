"""Learning term tables, each way under its name: EM, neural Model 1, PaRM, local-to-global, and those of plugins."""

from typing import Any

from whyrank.core.registry import Registry

table_learners: Registry[Any] = Registry(
    "table_learners",
    "table learner",
    {
        "em": "whyrank.learners.registry:EM",
        "local-to-global": "whyrank.learners.local.learner:LocalToGlobal",
        "neural": "whyrank.learners.registry:Neural",
        "parm": "whyrank.learners.parm.building:Parm",
    },
)
"""Makes learners by call string, `em(iterations=3)`: each has `learn(collection)`, which gives a `TermTable`."""

__all__ = ["table_learners"]
