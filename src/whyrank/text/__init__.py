"""Text as terms: analyzers, vocabularies and token arrays."""

from whyrank.text.analyzers import Analyzer, analyzers
from whyrank.text.vocabulary import Tokens, Vocabulary

__all__ = ["Analyzer", "Tokens", "Vocabulary", "analyzers"]
