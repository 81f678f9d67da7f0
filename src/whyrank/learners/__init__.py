"""Learning term tables, each way under its name: EM, neural Model 1, PaRM, local-to-global, and those of plugins."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.learners.neural import ARCHITECTURE, export_table, open_network
    from whyrank.learners.registry import learn, table_learners

front_door(__name__)
