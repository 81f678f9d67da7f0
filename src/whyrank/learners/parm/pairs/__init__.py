"""The pair scorer of PaRM: weights of all pairs of two vocabularies."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.learners.parm.pairs.main import ARCHITECTURE, how_of, open_parm, score_folder, told_by
    from whyrank.learners.parm.pairs.results import Entries, Results, read_log
    from whyrank.learners.parm.pairs.running import How, Say, audits
    from whyrank.learners.parm.pairs.task import NETWORK, RESULTS, TASK, TERMS, Settings, Task, load_task, save_task
    from whyrank.learners.parm.pairs.terms import distinct

front_door(__name__)
