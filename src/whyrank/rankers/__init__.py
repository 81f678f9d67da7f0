"""All that scores (query, text): lexical models, plain callables; more register themselves."""

from whyrank.rankers.lexical.background import Background
from whyrank.rankers.opening import Setting, open_ranker, rankers

__all__ = ["Background", "Setting", "open_ranker", "rankers"]
