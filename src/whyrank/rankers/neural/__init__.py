"""Neural rankers: one loader and one scorer for every model."""
