"""Fidelity: how well one ranker stands in for another."""
