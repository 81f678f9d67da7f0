"""`whyrank data check`: what a collection has, what is odd about it, and which studies it allows, in plain words."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from whyrank.cli.command import argument
from whyrank.cli.console import plural
from whyrank.cli.options import Input
from whyrank.core import WhyrankError, printable

if TYPE_CHECKING:
    from whyrank.data import Collection

READ = 100_000  # documents that are looked at
LONG = 10_000  # words of a text that most models cut
QUERIES = 20  # whose documents every study is tried on
DRAWN = 20  # contrasts of a study, enough to see that it has some
NAMED = 6  # studies or ids that a line names
_HEADS = ("id", "qid", "query_id", "query-id", "query", "text")
_TAG = re.compile(r"<[^<>]{1,200}>|\{\{[^{}]{1,200}\}\}")


@dataclass(frozen=True, kw_only=True)
class CheckCommand(Input):
    """Say what a collection has, what is odd about it, and which studies it allows.

    Attributes:
        json: print JSON on standard output.
    """

    collection: str = argument("COLLECTION", "sample")
    json: bool = False

    def run(self) -> None:
        """Look and print."""
        from whyrank import data

        collection = data.open_collection(self.collection, self.strict)
        facts, odd = facts_of(collection), oddities(collection)
        allowed, refused = studies_of(collection)
        found = {
            "collection": collection.name, **facts, "odd": [*collection.notes, *odd], "studies": allowed,
            "without_contrasts": refused,
        }  # fmt: skip
        print(json.dumps(found, indent=1) if self.json else "\n".join(map(printable, _lines(found))))


class Words(NamedTuple):
    """How many words the shortest, the middle and the longest of some texts have."""

    least: int
    median: float
    most: int

    @classmethod
    def of(cls, texts: Sequence[str]) -> Words:
        """Words are what blanks separate."""
        lengths = [len(text.split()) for text in texts] or [0]
        return cls(min(lengths), median(lengths), max(lengths))

    def __str__(self) -> str:
        if self.least == self.most:
            return plural(self.most, "word")
        return f"{self.least:,} to {self.most:,} words (median {self.median:,g})"


def facts_of(collection: Collection) -> dict[str, Any]:
    """What there is: documents, queries, judgements and runs."""
    grades = Counter(grade for judged in collection.qrels.values() for grade in judged.values())
    names = dict.fromkeys(name for each in islice(collection.fields, READ) for name in collection.fields[each])
    return {
        "documents": len(collection.docs),
        "words": Words.of(list(islice(collection.docs.values(), READ)))._asdict(),
        "titles": len(collection.titles),
        "fields": list(names),
        "queries": len(collection.queries),
        "query_words": Words.of(list(collection.queries.values()))._asdict(),
        "judgements": grades.total(),
        "judged_queries": len(collection.qrels.keys() & collection.queries.keys()),
        "grades": {_grade(collection, grade): grades[grade] for grade in sorted(grades)},
        "relevant_from": collection.grades.relevant,
        "runs": list(collection.runs),
    }


def _grade(collection: Collection, grade: int) -> str:
    name = collection.grades.name(grade)
    return name if name == str(grade) else f"{grade} ({name})"


def oddities(collection: Collection) -> list[str]:
    """What is odd about texts, queries, judgements and runs, beyond notes on reading them; one line for each kind."""
    found: dict[str, list[str]] = {}
    seen: dict[int, str] = {}
    for doc_id, text in islice(collection.docs.items(), READ):
        if seen.setdefault(hash(text), doc_id) != doc_id and text.strip():
            found.setdefault("documents with the text of another document", []).append(doc_id)
        if len(text) > LONG and (text.count(" ") > LONG or len(text) > 10 * LONG):
            found.setdefault(f"documents of more than {LONG:,} words, which most models cut", []).append(doc_id)
        if "<" in text or "{{" in text:
            marked = sum(map(len, _TAG.findall(text)))
            if marked > len(text) / 3:
                found.setdefault("documents that are mostly markup", []).append(doc_id)
    asked: dict[str, str] = {}
    for query_id, text in collection.queries.items():
        if asked.setdefault(" ".join(text.casefold().split()), query_id) != query_id:
            found.setdefault("queries with the text of another query", []).append(query_id)
        if query_id.lower() in _HEADS and text.lower() in _HEADS:
            found.setdefault("queries that are the names of columns", []).append(query_id)
        judged = collection.qrels.get(query_id, {})
        if collection.qrels and not judged:
            found.setdefault("queries without judgements", []).append(query_id)
        elif judged and max(judged.values()) < collection.grades.relevant:
            found.setdefault("queries without a relevant document", []).append(query_id)
    found |= {
        f"queries without a document in the run {name}": missing
        for name, run in collection.runs.items()
        if (missing := [query_id for query_id in collection.queries if not run.get(query_id)])
    }
    lines = [f"{what}: {len(ids):,} ({_some(ids)})" for what, ids in found.items()]
    grades = {grade for judged in collection.qrels.values() for grade in judged.values()}
    if len(grades) == 1:
        lines.append(
            f"all judgements have the grade {grades.pop()}: studies that compare grades have nothing to compare"
        )
    if len(collection.docs) > READ:
        lines.append(f"texts were looked at up to the document number {READ:,} of {len(collection.docs):,}")
    return lines


def studies_of(collection: Collection) -> tuple[list[str], dict[str, str]]:
    """The studies that have contrasts on the documents of a few queries, and why the others have none."""
    from whyrank.scoring import Engine
    from whyrank.studies import Request, all_studies, choose_studies
    from whyrank.studies.catalogue import usual_studies
    from whyrank.studies.sampling import draw_contrasts

    judged_first = sorted(collection.queries, key=lambda query_id: query_id not in collection.qrels)
    some = {query_id: collection.queries[query_id] for query_id in judged_first[:QUERIES]}
    part = replace(collection, queries=some, qrels={q: collection.qrels[q] for q in some if q in collection.qrels})
    patterns, catalogue = usual_studies(""), all_studies()
    names = [name for pattern in patterns for name in catalogue.match(pattern)]
    chosen = choose_studies(Request(studies=patterns, collection=lambda: part, rankers=lambda _: [], engine=Engine()))
    allowed, refused = list[str](), dict[str, str]()
    for name in names:
        if name not in chosen.studies:
            refused[name] = str(getattr(catalogue.make([name], {})[name], "unavailable", ""))
            continue
        try:
            contrasts = draw_contrasts(chosen.studies[name], chosen.collection, DRAWN).contrasts
        except WhyrankError as error:
            refused[name] = str(error)
            continue
        if len(contrasts):
            allowed.append(name)
        else:
            reasons = sorted(contrasts.dropped.items(), key=lambda item: -item[1])
            why = reasons[0][0] if reasons and reasons[0][1] else "no two texts meet its condition"
            refused[name] = f"{why} (of {plural(len(some), 'query', 'queries')})"
    return allowed, refused


def _lines(found: Mapping[str, Any]) -> list[str]:
    """What was found, in words."""
    titles = f", {found['titles']:,} with a title" if found["titles"] else ""
    fields = f"; fields: {', '.join(found['fields'])}" if found["fields"] else ""
    lines = [
        found["collection"],
        f"  {plural(found['documents'], 'document')} of {Words(**found['words'])}{titles}{fields}",
        f"  {plural(found['queries'], 'query', 'queries')} of {Words(**found['query_words'])}",
    ]
    if found["judgements"]:
        grades = ", ".join(f"{count:,} of grade {name}" for name, count in found["grades"].items())
        judged = plural(found["judged_queries"], "query", "queries")
        lines.append(f"  {plural(found['judgements'], 'judgement')} of {judged}: {grades}; "
                     f"relevant from {found['relevant_from']}")  # fmt: skip
    else:
        lines.append("  no judgements: evaluation, and studies that compare grades, are not possible")
    lines.append(f"  runs: {', '.join(found['runs'])}" if found["runs"] else "  no runs: BM25 retrieves candidates")
    lines += ["Notes, and what is odd:", *(f"  {line}" for line in found["odd"] or ["nothing"])]
    families = Counter(name.partition("/")[0] for name in found["studies"])
    shown = ", ".join(f"{count} {family}/*" for family, count in families.items())
    lines.append(f"Studies that it allows: {plural(len(found['studies']), 'study', 'studies')} ({shown})")
    reasons: dict[str, list[str]] = {}
    for name, reason in found["without_contrasts"].items():
        reasons.setdefault(reason, []).append(name)
    if reasons:
        lines.append("Studies without a contrast:")
        lines += [f"  {reason}: {_some(names)}" for reason, names in reasons.items()]
    return lines


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED:,} more" if len(names) > NAMED else "")
