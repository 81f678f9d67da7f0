"""Surprises in a term table, and the studies that ask a ranker about them."""
