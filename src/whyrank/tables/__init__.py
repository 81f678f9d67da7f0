"""Term tables: sparse matrices (query term, document term) -> weight, their files, exports and differences."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.tables.difference import Change, TableDifference, change_columns, change_lines
    from whyrank.tables.exports import short, write_expansions, write_synonyms
    from whyrank.tables.figures import best_of_each, cut_at, self_entries, strongest, summary
    from whyrank.tables.files import SUFFIXES, check_suffix, writer
    from whyrank.tables.parts import check_readable
    from whyrank.tables.table import BUNDLED, TermTable, Weighted, open_table
    from whyrank.tables.words import collection_words, count_words, flag, surface_words

front_door(__name__)
