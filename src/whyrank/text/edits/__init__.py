"""Edits: one change to a text, so that a ranker can be asked what the change is worth to it."""
