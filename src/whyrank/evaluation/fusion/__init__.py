"""Fitting the weights of a `fuse` from judged queries."""
