"""GYAFC (Rao and Tetreault 2018): formal and informal answers, with the questions that they answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from whyrank.core.errors import BadInput, UnknownName, WhyrankError
from whyrank.data.lines import find_file
from whyrank.data.pair_files import tsv_cells
from whyrank.data.pair_parts import aligned, chosen, laid_out, located, needed
from whyrank.data.pair_rows import TextPair
from whyrank.data.pairs import PairSet

_GENRES = ("Entertainment_Music", "Family_Relationships")
_OTHER = {"informal": "formal", "formal": "informal"}
_UNMATCHED = "_"


def gyafc(
    resource: str,
    split: str | None = None,
    genre: str | None = None,
    qids: str | None = None,
    questions: str | None = None,
) -> PairSet:
    """Formal and informal versions of an answer (roles formal, informal, and question where it is known).

    Tune and test, both directions, four rewritings each. Without a question map there is no role question; with
    one, a pair whose question was not found has an empty question.

    Args:
        resource: the folder with `Entertainment_Music` and `Family_Relationships` (or one of them), or with
            `GYAFC_Corpus` that has them; below them `tune/informal`, `tune/formal.ref0` ...
        split: `tune` or `test`, instead of both.
        genre: one of the two folders, instead of both.
        qids: a folder with the ids of the questions, `GENRE/SPLIT/informal.qids` and `formal.qids`, a line for
            each sentence, `_` where none was found; the folder itself unless given.
        questions: a file with id, tab, title of the question (Yahoo! Answers L6); `questions.tsv` unless given.
    """
    path = located(resource)
    base = path / "GYAFC_Corpus" if (path / "GYAFC_Corpus").is_dir() else path
    titles = _titles(path, questions)
    ids = located(qids) if qids is not None else base
    if titles is None and qids is not None:
        raise WhyrankError("the ids of questions are of no use without their titles; add questions=FILE")
    rows = (
        pair
        for each in _genres(base, genre)
        for part in chosen(("tune", "test"), split)
        for source in _OTHER
        for pair in _rewritten(base, ids, Path(each, part), source, titles)
    )
    return laid_out("gyafc", path, rows)


def _genres(base: Path, wanted: str | None) -> list[str]:
    if wanted is not None and wanted not in _GENRES:
        raise UnknownName("genre", str(wanted), _GENRES)
    found = [each for each in _GENRES if (base / each).is_dir() and wanted in (None, each)]
    if not found:
        raise BadInput(base, f"the folder has no {wanted or ' or '.join(_GENRES)}", "name the folder above them")
    return found


def _rewritten(
    base: Path, ids: Path, below: Path, source: str, titles: Mapping[str, str] | None
) -> Iterator[TextPair]:
    """Pairs of the sentences in one file with their rewritings in the four files of the other style."""
    other = _OTHER[source]
    files = [needed(base / below, source), *(needed(base / below, f"{other}.ref{i}") for i in range(4))]
    if titles is not None:
        files.append(needed(ids / below, f"{source}.qids"))
    for number, (text, *rest) in enumerate(aligned(files)):
        known = {} if titles is None else {"question": _question(files[-1], number + 1, rest.pop(), titles)}
        for i, rewriting in enumerate(rest):
            row_id = f"{below.parent.name}-{below.name}-{source}-{number}-{i}"
            yield TextPair(row_id, {source: text, other: rewriting, **known})


def _question(file: Path, line: int, question_id: str, titles: Mapping[str, str]) -> str:
    question_id = _plain(question_id)
    if question_id == _UNMATCHED:
        return ""
    if question_id not in titles:
        remedy = "add it to the questions, or write _ where there is none"
        raise BadInput(file, f"question {question_id!r} is not among the questions", remedy, line)
    return titles[question_id]


def _titles(path: Path, questions: str | None) -> dict[str, str] | None:
    file = located(questions) if questions is not None else find_file(path, "questions.tsv")
    if file is None:
        return None
    found: dict[str, str] = {}
    for cells, line in tsv_cells(file):
        if len(cells) != 2:
            raise BadInput(file, f"expected an id, a tab and a title, found {len(cells)} columns", "", line)
        found[_plain(cells[0])] = cells[1].strip()
    return found


def _plain(question_id: str) -> str:
    """The id without the mark that some lists put after those of questions."""
    return question_id.strip().removesuffix("-q")
