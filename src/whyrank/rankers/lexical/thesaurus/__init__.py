"""Lexical rankers over a thesaurus, a term table of related terms: BM25T and QLT."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.rankers.lexical.thesaurus.ranker import BM25T, QLT, ThesaurusRanker

front_door(__name__)
