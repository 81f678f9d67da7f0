"""Training: samplers, losses and one trainer for every network."""
