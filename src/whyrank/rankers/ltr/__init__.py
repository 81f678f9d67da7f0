"""Learning to rank: gradient-boosted trees over lexical features."""
