"""Collections: documents, queries, judgements and runs, and the readers for them."""

from whyrank.data.collection import Collection
from whyrank.data.disk import texts_of
from whyrank.data.grades import Grades
from whyrank.data.runs import open_run
from whyrank.data.spec import collections, open_collection
from whyrank.data.trec import Qrels, Run, ranking, read_qrels, read_run, write_qrels, write_run

__all__ = [
    "Collection",
    "Grades",
    "Qrels",
    "Run",
    "collections",
    "open_collection",
    "open_run",
    "ranking",
    "read_qrels",
    "read_run",
    "texts_of",
    "write_qrels",
    "write_run",
]
