"""PaRM, the partial relevance model: a relevance thesaurus distilled from any ranker."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.learners.parm.building import (
        Build,
        Built,
        audit_file,
        build_table,
        check_out,
        collect_build,
        prepare_build,
        write_built,
    )
    from whyrank.learners.parm.prepared import ParmPrepared, check_place, is_parm, load_parm, save_parm
    from whyrank.learners.parm.preparing import check_parm, prepare_parm
    from whyrank.learners.parm.running import train_parm

front_door(__name__)
