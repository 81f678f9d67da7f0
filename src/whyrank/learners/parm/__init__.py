"""PaRM, the partial relevance model: a relevance thesaurus distilled from any ranker."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.learners.parm.preparing import ParmPrepared, check_parm, prepare_parm
    from whyrank.learners.parm.running import is_trained, train_parm
    from whyrank.learners.parm.table import Built, Parm, beside, build_table, check_out

front_door(__name__)
