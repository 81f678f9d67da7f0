"""Term tables: sparse matrices (query term, document term) -> weight, their files, exports and differences."""

from whyrank.tables.table import TermTable, open_table

__all__ = ["TermTable", "open_table"]
