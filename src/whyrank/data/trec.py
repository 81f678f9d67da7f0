"""TREC runs and judgements, read and written; and the order of a ranking, which is decided here alone.

A run line is `query_id Q0 doc_id rank score tag`, a judgement `query_id 0 doc_id grade`; further columns are
ignored. The rank column is written but never trusted: the scores alone give the order. A run may begin with a header
of ir_metadata: YAML behind `#`, which other tools may refuse, so it is written on request only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from whyrank.core import BadInput, Line, WhyrankError, read_lines, write_lines
from whyrank.data.tallies import Tally

Run = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]
_HEADER = ("# ir_metadata.start", "# ir_metadata.end")
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")


def ranking(scores: Mapping[str, float]) -> list[str]:
    """Document ids from best to worst: score descending, ties by document id descending, NaN last.

    Ties go by id in descending order because trec_eval breaks them so when it reads a run: evaluation here
    and there sees the same ranking.
    """
    by_id = sorted(scores, reverse=True)
    return sorted(by_id, key=lambda doc_id: (math.isnan(scores[doc_id]), -scores[doc_id]))


def read_run(path: str | PathLike[str]) -> Run:
    """Read a six-column run as query_id -> doc_id -> score; a header of ir_metadata is passed over."""
    run: Run = {}
    inside = False
    for line in read_lines(path := Path(path)):
        if inside or line.text.strip() == _HEADER[0]:
            inside = line.text.strip() != _HEADER[1]
            continue
        query_id, _, doc_id, _, score = _columns(path, line, 6, "query_id Q0 doc_id rank score tag")[:5]
        scores = run.setdefault(query_id, {})
        if doc_id in scores:
            what = f"document {doc_id!r} occurs twice for query {query_id!r}"
            raise BadInput(path, what, "keep one line of each", line.number)
        try:
            scores[doc_id] = float(score)
        except ValueError:
            what = f"score {score!r} is not a number"
            raise BadInput(path, what, "the score is column 5", line.number) from None
        if math.isnan(scores[doc_id]):
            raise BadInput(path, "the score is NaN", "leave such documents out", line.number)
    if inside:
        raise BadInput(path, "the header of ir_metadata does not end", f"put a line {_HEADER[1]!r} behind it")
    return run


def write_run(
    path: str | PathLike[str], run: Mapping[str, Mapping[str, float]], tag: str = "whyrank",
    metadata: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Write a run in one step, each query in the order of `ranking`, ranks from 1.

    Scores are written with all their digits, so that reading them back gives the same numbers to the last
    bit. Blanks in the tag become underscores. A NaN is refused, because no reader can place it. `metadata`
    (`whyrank.scoring.run_metadata`) stand before it.
    """
    write_lines(Path(path), run_lines(run, tag, metadata))


def run_lines(
    run: Mapping[str, Mapping[str, float]], tag: str = "whyrank", metadata: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """The lines of a run file, without their ends."""
    if metadata is not None:
        import yaml

        header = yaml.safe_dump(dict(metadata), sort_keys=False, allow_unicode=True, width=10_000)
        yield from (_HEADER[0], *(f"# {line}" for line in header.splitlines()), _HEADER[1])
    tag = "_".join(tag.split()) or "whyrank"
    for query_id, scores in run.items():
        for rank, doc_id in enumerate(ranking(scores), 1):
            score = float(scores[doc_id])
            if math.isnan(score):
                raise WhyrankError(f"the score of document {doc_id!r} for query {query_id!r} is NaN; leave it out")
            yield f"{_one_word(query_id)} Q0 {_one_word(doc_id)} {rank} {score!r} {tag}"


def read_qrels(path: str | PathLike[str], notes: list[str] | None = None, strict: bool = True) -> Qrels:
    """Read judgements as query_id -> doc_id -> grade; a line that repeats another is counted in `notes`.

    Both shapes are read: TREC's four columns, and BEIR's three columns with a header, separated by tabs. A line
    that contradicts an earlier one is an error; without `strict` the earlier one counts and `notes` tell of it.
    """
    return collect_qrels(path := Path(path), _qrels_lines(path), notes, strict)


class Judgement(NamedTuple):
    """One row of a file with judgements; the grade is text, and must be a whole number."""

    query_id: str
    doc_id: str
    grade: str
    line: int


def collect_qrels(
    path: Path, rows: Iterable[Judgement], notes: list[str] | None = None, strict: bool = True
) -> Qrels:
    """Judgements as query_id -> doc_id -> grade; `notes` and `strict` as of `read_qrels`."""
    qrels: Qrels = {}
    repeated = 0
    contradicting = Tally("judgements that contradict an earlier line, which counts")
    for query_id, doc_id, text, line in rows:
        if not _INTEGER.fullmatch(text):
            raise BadInput(path, f"grade {text!r} is not an integer", "write grades as 0, 1, 2, ...", line)
        grades, grade = qrels.setdefault(query_id, {}), int(text)
        repeated += grades.get(doc_id) == grade
        if (known := grades.setdefault(doc_id, grade)) != grade:
            if strict:
                what = f"document {doc_id!r} was judged {known} for query {query_id!r} before, here {grade}"
                raise BadInput(path, what, "keep one of the two", line)
            contradicting.add(f"line {line}")
    if notes is not None:
        notes += [f"{path.name}: judgements that repeat an earlier line: {repeated:,}"] if repeated else []
        notes += contradicting.notes(path.name)
    return qrels


def _qrels_lines(path: Path) -> Iterator[Judgement]:
    beir = False
    for number, line in enumerate(read_lines(path)):
        columns = line.text.split("\t")
        if number == 0 and len(columns) == 3 and not _INTEGER.fullmatch(columns[2].strip()):
            beir = True
            continue
        if beir and len(columns) < 3:
            what = f"expected 3 columns separated by tabs (query-id, corpus-id, score), found {len(columns)}"
            raise BadInput(path, what, "mend this line", line.number)
        if not beir:
            columns = _columns(path, line, 4, "query_id 0 doc_id grade")
            del columns[1]
        yield Judgement(columns[0], columns[1], columns[2].strip(), line.number)


def write_qrels(path: str | PathLike[str], qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write judgements in TREC's four columns, in one step."""
    lines = (
        f"{_one_word(query_id)} 0 {_one_word(doc_id)} {int(grade)}"
        for query_id, grades in qrels.items()
        for doc_id, grade in grades.items()
    )
    write_lines(Path(path), lines)


def _columns(path: Path, line: Line, wanted: int, shape: str) -> list[str]:
    columns = line.text.split()
    if len(columns) < wanted:
        what = f"expected {wanted} columns ({shape}), found {len(columns)}"
        raise BadInput(path, what, "mend this line", line.number)
    return columns


def _one_word(text_id: str) -> str:
    # a byte order mark would be taken for the file's own when it stands first
    if text_id.split() != [text_id] or text_id.startswith("\ufeff"):
        raise WhyrankError(f"id {text_id!r} cannot be written to a TREC file; use ids without blanks")
    return text_id
