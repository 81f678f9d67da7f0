"""How good rankers are: effectiveness, fidelity, tuning, fusion weights, stability and the overlap split."""
