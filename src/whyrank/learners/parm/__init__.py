"""PaRM, the partial relevance model: a relevance thesaurus distilled from any ranker.

`phases` says how both phases are configured, `data` prepares texts, scores and terms, `phase1` and `phase2` are the
phases that `training` runs, `pairs` scores all pairs of terms with the trained network, and `table` writes them.
"""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.learners.parm.data import ParmPrepared, check_parm, prepare_parm
    from whyrank.learners.parm.table import PaRM, beside, build_table, check_out
    from whyrank.learners.parm.training import is_trained, parm_recipe, train_on_target, train_parm

front_door(__name__)
