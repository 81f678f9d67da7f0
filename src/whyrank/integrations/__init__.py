"""Neighbours: rankers and studies inside PyTerrier and sentence-transformers; a module needs its own package."""
