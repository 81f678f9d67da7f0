"""Learning term tables: bitext and EM, and what later learners share."""
