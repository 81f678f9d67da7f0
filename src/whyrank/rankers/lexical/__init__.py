"""Lexical rankers: BM25, query likelihood, and their versions with a term table."""
