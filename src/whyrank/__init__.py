"""whyrank shows what a ranking model really rewards."""

__version__ = "0.1.0"
