"""Collections: documents, queries, judgements and runs, and the readers for them."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.core.lines import every_line, read_lines
    from whyrank.data.collection import Collection, first_stage, open_run
    from whyrank.data.disk import texts_of
    from whyrank.data.formats import (
        YAML_ERRORS,
        parse_yaml,
        problem_of,
        read_mapping,
        read_parquet,
        read_yaml,
        write_parquet,
    )
    from whyrank.data.grades import Grades
    from whyrank.data.spec import collections, open_collection
    from whyrank.data.splitting import corpus_of, parse_parts, split_collection, write_split
    from whyrank.data.trec import Run, ranking, read_qrels, read_run, run_lines, write_qrels, write_run

front_door(__name__)
