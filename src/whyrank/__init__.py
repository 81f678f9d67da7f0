"""whyrank shows what a ranking model really rewards.

import whyrank
audit = whyrank.audit(["bm25", "ql"], "sample", "matched/*", tolerance="10%")
"""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.data import Collection, open_collection
    from whyrank.evaluation import evaluate
    from whyrank.evaluation.fidelity import fidelity
    from whyrank.explain import explain
    from whyrank.learners import learn
    from whyrank.rankers import open_ranker
    from whyrank.report.audit import Audit, audit, open_audit
    from whyrank.report.comparison import Comparison, compare
    from whyrank.scoring import Engine, ScoreStore, rank
    from whyrank.studies import Contrasts, Finding, Pair
    from whyrank.tables import TermTable, open_table

__version__ = "0.2.0"
front_door(__name__)
