"""IBM Model 1 by expectation maximisation."""
