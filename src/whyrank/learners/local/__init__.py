"""Local explanations of ranked lists, gathered into one table."""
