"""All that scores (query, text): lexical models, plain callables; more register themselves."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.rankers.base import Described
    from whyrank.rankers.cascade import CascadeRanker, stacked
    from whyrank.rankers.doc2query import ExpandingRanker
    from whyrank.rankers.fuse import Fuse, FusedRanker, contents_of, write_weights
    from whyrank.rankers.http import hide_values
    from whyrank.rankers.lexical.background import Background
    from whyrank.rankers.modules import files_digest, module_of, source_digest
    from whyrank.rankers.normalisation import query_scale
    from whyrank.rankers.opening import Setting, as_ranker, as_rankers, open_ranker, rankers, tie_tolerance
    from whyrank.rankers.run import RunRanker

front_door(__name__)
