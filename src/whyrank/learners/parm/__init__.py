"""PaRM, the partial relevance model: a relevance thesaurus distilled from any ranker."""
