"""Learning term tables, each way under its name: EM, neural Model 1, PaRM, local-to-global, and those of plugins."""

from typing import TYPE_CHECKING, Any

from whyrank.core.lazy import front_door
from whyrank.core.registry import Registry

table_learners: Registry[Any] = Registry(
    "table_learners",
    "table learner",
    {
        "em": "whyrank.learners.registry:EM",
        "local-to-global": "whyrank.learners.local.learner:LocalToGlobal",
        "neural": "whyrank.learners.registry:Neural",
        "parm": "whyrank.learners.parm.table:Parm",
    },
)
"""Makes learners by call string, `em(iterations=3)`: each has `learn(collection)`, which gives a `TermTable`."""

if TYPE_CHECKING:
    from whyrank.learners.neural import ARCHITECTURE, export_table, open_network

front_door(__name__)
