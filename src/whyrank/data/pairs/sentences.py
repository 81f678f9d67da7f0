"""Published pair sets of sentences and their rewritings: JFLEG, TurkCorpus, ASSET, MSRP, WNC and GYAFC."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from whyrank.core import BadInput, UnknownName, WhyrankError, every_line, find_file, json_records, needed_file
from whyrank.data.pairs.rows import TextPair
from whyrank.data.pairs.sets import existing, layout
from whyrank.data.records import tsv_cells, tsv_records

# What the layouts share: splits, and files that are aligned line by line.


def choose_splits(splits: Sequence[str], wanted: str | None) -> Sequence[str]:
    """The wanted split, or all of them; an unknown one is an error that lists those there are."""
    if wanted is None:
        return splits
    if wanted not in splits:
        raise UnknownName("split", str(wanted), splits)
    return [wanted]


def split_files(path: Path, splits: Sequence[str], wanted: str | None, *names: str) -> dict[str, Path]:
    """The file of each split, which may have any of these names (`{}` is the split), plain or `.gz`.

    A file is the only split of itself; the beginning of its name is its split.
    """
    if path.is_dir():
        return {
            each: needed_file(path, *(name.format(each) for name in names)) for each in choose_splits(splits, wanted)
        }
    if wanted is not None:
        raise WhyrankError(f"{path}: a file has no splits; leave out split={wanted}, or name the folder")
    return {path.name.partition(".")[0]: path}


def align(files: Sequence[Path]) -> Iterator[list[str]]:
    """Stream lines that belong together, one of each file; all files must have the same number of lines.

    Blank lines count, but those that only some files have at their end do not.
    """
    for number, lines in enumerate(zip_longest(*map(every_line, files)), 1):
        if None not in lines:
            yield [line.text for line in lines]
            continue
        short = files[lines.index(None)]
        for file, line in zip(files, lines, strict=True):
            if line is not None and not line.blank:
                what = f"this line has no partner in {short.name}, which ends before it"
                raise BadInput(file, what, "the lines of these files belong together; get both again", number)


def two_columns(file: Path) -> Iterator[tuple[str, str]]:
    """Stream keys and titles, separated by a tab."""
    for cells, line in tsv_cells(file):
        if len(cells) != 2:
            what = f"expected an id or address, a tab and a title, found {len(cells)} columns"
            raise BadInput(file, what, "mend this line", line)
        yield cells[0].strip(), cells[1].strip()


# Sentences with several rewritings each: JFLEG, TurkCorpus and ASSET.


class _Rewritings(NamedTuple):
    """Where the sentences of each role are, and where their rewritings; `{0}` is the split, `{1}` counts them.

    A role has a file with a line for each sentence and, in the form of JSON lines, a field; rewritings are in `refs`.
    """

    splits: tuple[str, ...]
    files: Mapping[str, str]
    fields: Mapping[str, str]
    role: str
    rewritings: str
    number: int


_JFLEG = _Rewritings(
    splits=("dev", "test"),
    files={"source": "{0}/{0}.src", "spellchecked": "{0}/{0}.spellchecked.src"},
    fields={"source": "src", "spellchecked": "spellchecked"},
    role="fluent",
    rewritings="{0}/{0}.ref{1}",
    number=4,
)
_TURKCORPUS = _Rewritings(
    splits=("test", "tune"),
    files={"source": "{0}.8turkers.tok.norm"},
    fields={"source": "norm"},
    role="simple",
    rewritings="{0}.8turkers.tok.turk.{1}",
    number=8,
)
_ASSET = _Rewritings(
    splits=("valid", "test"),
    files={"source": "asset.{0}.orig"},
    fields={},
    role="simple",
    rewritings="asset.{0}.simp.{1}",
    number=10,
)


@layout
def jfleg(resource: Path, split: str | None = None, keep_newline: bool = False) -> Iterator[TextPair]:
    """Learners' sentences and their corrections (roles fluent, source, spellchecked; Napoles et al. 2017).

    Four pairs a sentence, dev and test.

    Args:
        resource: the folder of the data set (`dev/dev.src`, `dev/dev.spellchecked.src`, `dev/dev.ref0` ...), or
            one with `dev.jsonl` and `test.jsonl` (id, src, spellchecked, refs), or one such file.
        split: `dev` or `test`, instead of both.
        keep_newline: leave a line feed at the end of every text, as the published code did.
    """
    return _rewritings(_JFLEG, resource, split, lambda text: f"{text}\n" if keep_newline else text)


@layout
def turkcorpus(resource: Path, split: str | None = None) -> Iterator[TextPair]:
    """Sentences of Wikipedia and simpler versions of them (roles simple, source; Xu et al. 2016).

    Eight pairs a sentence, test and tune; -lrb- and -rrb- become parentheses.

    Args:
        resource: a folder with `test.8turkers.tok.norm`, `test.8turkers.tok.turk.0` ..., or one with `test.jsonl`
            and `tune.jsonl` (id, norm, refs), or one such file.
        split: `test` or `tune`, instead of both.
    """
    return _rewritings(_TURKCORPUS, resource, split, _with_brackets)


@layout
def asset(resource: Path, split: str | None = None) -> Iterator[TextPair]:
    """TurkCorpus' sentences with ten other simplifications (roles simple, source; Alva-Manchego et al. 2020).

    Ten pairs a sentence, valid and test.

    Args:
        resource: a folder with `asset.valid.orig`, `asset.valid.simp.0` ..., or one whose `dataset` is that folder.
        split: `valid` or `test`, instead of both.
    """
    inside = resource / "dataset"
    return _rewritings(_ASSET, inside if inside.is_dir() else resource, split, _with_brackets)


def _with_brackets(text: str) -> str:
    text = re.sub("-lrb-", "(", text.strip(), flags=re.IGNORECASE)
    return re.sub("-rrb-", ")", text, flags=re.IGNORECASE)


def _rewritings(shape: _Rewritings, path: Path, split: str | None, mend: Callable[[str], str]) -> Iterator[TextPair]:
    """One pair for each rewriting of each sentence; `mend` is applied to all texts."""

    def pairs(row_id: str, texts: Mapping[str, str], rewritings: Iterable[str]) -> Iterator[TextPair]:
        given = {role: mend(text) for role, text in texts.items()}
        for number, text in enumerate(rewritings):
            yield TextPair(f"{row_id}-{number}", {**given, shape.role: mend(text)})

    in_lines = any(find_file(path, file.format(each)) for each in shape.splits for file in shape.files.values())
    if shape.fields and not in_lines:
        for file in split_files(path, shape.splits, split, "{}.jsonl").values():
            for record in json_records(file):
                texts = {role: record.text(name) for role, name in shape.fields.items()}
                yield from pairs(record.text("id"), texts, record.texts("refs"))
        return
    for each in choose_splits(shape.splits, split):
        names = [*shape.files.values(), *(shape.rewritings.format(each, i) for i in range(shape.number))]
        lines = align([needed_file(path, name.format(each)) for name in names])
        for number, found in enumerate(lines):
            texts = dict(zip(shape.files, found, strict=False))
            yield from pairs(f"{each}-{number}", texts, found[len(shape.files) :])


# Pairs in tables: the Microsoft Research Paraphrase Corpus and the Wikipedia Neutrality Corpus.

_MSRP_HEADERS = (
    ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"],
    ["label", "id1", "id2", "sentence1", "sentence2"],
)
_WNC_FILES = ("biased.full", "WNC/biased.full", "bias_data/WNC/biased.full")
_WNC_COLUMNS = 5  # id, source and target in tokens, source and target as they were; tags may follow


@layout
def msrp(resource: Path, split: str | None = None) -> Iterator[TextPair]:
    """Paraphrases (roles a, b) of the MSR Paraphrase Corpus (Dolan and Brockett 2005): train and test, label 1.

    Args:
        resource: a folder with `msr_paraphrase_train.txt` and `msr_paraphrase_test.txt`, or with `train.tsv`
            and `test.tsv` (label, id1, id2, sentence1, sentence2); or one such file.
        split: `train` or `test`, instead of both.
    """
    for file in split_files(resource, ("train", "test"), split, "msr_paraphrase_{}.txt", "{}.tsv").values():
        for number, (cells, line) in enumerate(tsv_cells(file)):
            if number == 0 and cells not in _MSRP_HEADERS:
                expected = ", ".join(_MSRP_HEADERS[0])
                raise BadInput(file, "this is not the header of MSRP", f"the columns are {expected}", line)
            if len(cells) != len(_MSRP_HEADERS[0]) or (number and cells[0] not in ("0", "1")):
                raise BadInput(file, "expected 0 or 1, two ids and two sentences", "separate them by tabs", line)
            if cells[0] == "1":
                yield TextPair(f"{cells[1]}-{cells[2]}", {"a": cells[3], "b": cells[4]})


@layout
def wnc(resource: Path, split: str | None = None) -> Iterator[TextPair]:
    """Sentences before and after an edit for neutrality (roles biased, neutral; Pryzant et al. 2020).

    Args:
        resource: `biased.full` or a folder that has it (the raw columns are read), or a folder with `train.tsv`
            and `test.tsv` under the header biased, neutral, or one such file.
        split: `train` or `test` of the second form, instead of both.
    """
    full = find_file(resource, *_WNC_FILES) if resource.is_dir() and split is None else None
    files = {"full": full} if full else split_files(resource, ("train", "test"), split, "{}.tsv")
    for part, file in files.items():
        if {"biased", "neutral"} <= set(next(tsv_cells(file))[0]):
            for number, record in enumerate(tsv_records(file)):
                yield TextPair(f"{part}-{number}", {role: record.text(role) for role in ("biased", "neutral")})
            continue
        for cells, line in tsv_cells(file):
            if len(cells) < _WNC_COLUMNS:
                what = f"expected {_WNC_COLUMNS} columns or more, found {len(cells)}"
                raise BadInput(file, what, "the columns are id, src_tok, tgt_tok, src_raw, tgt_raw, ...", line)
            yield TextPair(cells[0], {"biased": cells[3], "neutral": cells[4]})


# Formal and informal answers, with the questions that they answer: GYAFC.

_GENRES = ("Entertainment_Music", "Family_Relationships")
_OTHER = {"informal": "formal", "formal": "informal"}
_UNMATCHED = "_"


@layout
def gyafc(
    resource: Path, split: str | None = None, genre: str | None = None, qids: str | None = None,
    questions: str | None = None,
) -> Iterator[TextPair]:  # fmt: skip
    """Formal and informal versions of an answer (roles formal, informal, and question where known; Rao et al. 2018).

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
    base = resource / "GYAFC_Corpus" if (resource / "GYAFC_Corpus").is_dir() else resource
    if genre is not None and genre not in _GENRES:
        raise UnknownName("genre", str(genre), _GENRES)
    genres = [each for each in _GENRES if (base / each).is_dir() and genre in (None, each)]
    if not genres:
        raise BadInput(base, f"the folder has no {genre or ' or '.join(_GENRES)}", "name the folder above them")
    file = existing(questions) if questions is not None else find_file(resource, "questions.tsv")
    titles = None if file is None else {_question_id(key): title for key, title in two_columns(file)}
    if titles is None and qids is not None:
        raise WhyrankError("the ids of questions are of no use without their titles; add questions=FILE")
    ids = existing(qids) if qids is not None else base
    for each in genres:
        for part in choose_splits(("tune", "test"), split):
            for source in _OTHER:
                yield from _answers(base, ids, Path(each, part), source, titles)


def _answers(base: Path, ids: Path, below: Path, source: str, titles: Mapping[str, str] | None) -> Iterator[TextPair]:
    """Pairs of the sentences in one file with their rewritings in the four files of the other style."""
    other = _OTHER[source]
    files = [needed_file(base / below, source), *(needed_file(base / below, f"{other}.ref{i}") for i in range(4))]
    if titles is not None:
        files.append(needed_file(ids / below, f"{source}.qids"))
    for number, (text, *rest) in enumerate(align(files)):
        known: dict[str, str] = {}
        if titles is not None:
            question_id = _question_id(rest.pop())
            if question_id != _UNMATCHED and question_id not in titles:
                remedy = "add it to the questions, or write _ where there is none"
                what = f"question {question_id!r} is not among the questions"
                raise BadInput(files[-1], what, remedy, number + 1)
            known = {"question": "" if question_id == _UNMATCHED else titles[question_id]}
        for i, rewriting in enumerate(rest):
            row_id = f"{below.parent.name}-{below.name}-{source}-{number}-{i}"
            yield TextPair(row_id, {source: text, other: rewriting, **known})


def _question_id(text: str) -> str:
    """The id without the mark that some lists put after those of questions."""
    return text.strip().removesuffix("-q")
