"""The collection: documents, queries, graded judgements and runs, from wherever they come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from whyrank.data.grades import Grades, grades_for
from whyrank.data.plain import Judgements, Texts, plain_qrels, plain_texts
from whyrank.data.references import References
from whyrank.data.trec import Qrels, Run


@dataclass(repr=False, eq=False)
class Collection:
    """A test collection.

    Judgements and runs may mention documents and queries that are not here (a note counts them): evaluation
    needs them, and whoever needs a text looks whether `docs` has it. `notes` tells of problems that were not
    fatal.
    """

    name: str
    docs: Mapping[str, str]
    queries: dict[str, str]
    qrels: Qrels = field(default_factory=dict)
    runs: Mapping[str, Run] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    grades: Grades = field(default_factory=Grades)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        docs: Texts,
        queries: Texts,
        qrels: Judgements = (),
        *,
        runs: Mapping[str, Run] | None = None,
        name: str = "collection",
        titles: Mapping[str, str] | None = None,
        grades: Grades | None = None,
        strict: bool = False,
    ) -> Collection:
        """Make a collection from plain Python.

        Args:
            docs: id -> text, or pairs of id and text; a mapping that is not a dict is kept as it is, unread.
            queries: id -> text, or pairs of id and text.
            qrels: query id -> document id -> grade, or triples of these.
            runs: name -> query id -> document id -> score.
            name: stands in tables; a known name (such as `dl19`) brings the meaning of its grades.
            titles: id -> title, where titles are needed on their own.
            grades: the meaning of the grades; else known by name or inferred.
            strict: whether an empty text, or an unknown id in judgements or runs, is an error.
        """
        notes: list[str] = []
        unread = isinstance(docs, Mapping) and not isinstance(docs, dict)
        kept = cast("Mapping[str, str]", docs) if unread else plain_texts("docs", docs, notes, strict)
        asked, judged = plain_texts("queries", queries, notes, strict), plain_qrels(qrels, notes)
        references = References(asked, kept, strict)
        for source, mentioned in {"qrels": judged, **_labelled(runs or {})}.items():
            notes += references.check(source, mentioned)
        scale = grades_for(name, judged, notes, grades)
        return cls(name, kept, asked, judged, runs or {}, titles or {}, scale, notes)

    def __repr__(self) -> str:
        """Name and sizes; the texts would fill the screen."""
        judgements = sum(map(len, self.qrels.values()))
        return (
            f"Collection({self.name!r}, {len(self.docs):,} docs, {len(self.queries):,} queries, "
            f"{judgements:,} judgements, {len(self.runs):,} runs)"
        )


def _labelled(runs: Mapping[str, Run]) -> Mapping[str, Mapping[str, Mapping[str, object]]]:
    return {f"run {name!r}": run for name, run in runs.items()}
