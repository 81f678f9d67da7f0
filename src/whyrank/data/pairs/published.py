"""Pair sets that come as tables: the Microsoft Research Paraphrase Corpus and the Wikipedia Neutrality Corpus."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from whyrank.core import BadInput, UnknownName, WhyrankError
from whyrank.data.lines import RawLine, array_items, every_line, find_file, whole_text
from whyrank.data.pairs.rows import Record, TextPair, json_records, read_pairs, tsv_cells, tsv_records
from whyrank.data.pairs.sets import PairSet

# What the readers of published layouts share: places, splits, options, and files aligned line by line.


class Part(NamedTuple):
    """One split of a data set and the file that holds it."""

    split: str
    file: Path


def located(resource: str) -> Path:
    """The file or folder of a layout, which must be there."""
    path = Path(resource).expanduser()
    if not path.exists():
        raise BadInput(path, "there is no such file or folder", "write LAYOUT:PATH")
    return path


def laid_out(layout: str, path: Path, pairs: Iterable[TextPair]) -> PairSet:
    """The pair set of a layout, named after the layout and the place."""
    place = path.resolve().name if path.is_dir() else path.name.partition(".")[0]
    return PairSet.of(pairs, layout if place == layout else f"{layout}:{place}", str(path))


def chosen(splits: Sequence[str], wanted: str | None) -> Sequence[str]:
    """The wanted split, or all of them; an unknown one is an error that lists those there are."""
    if wanted is None:
        return splits
    if wanted not in splits:
        raise UnknownName("split", str(wanted), splits)
    return [wanted]


def parts(path: Path, splits: Sequence[str], wanted: str | None, *names: str) -> list[Part]:
    """The files of the splits, which may have any of these names (`{}` is the split), plain or `.gz`.

    A file is the only part of itself; the beginning of its name is its split.
    """
    if path.is_file():
        if wanted is not None:
            raise WhyrankError(f"{path}: a file has no splits; leave out split={wanted}, or name the folder")
        return [Part(path.name.partition(".")[0], path)]
    asked = chosen(splits, wanted)
    return [Part(split, needed(path, *(name.format(split) for name in names))) for split in asked]


def needed(folder: Path, *names: str) -> Path:
    """The first of these files that a folder has, plain or `.gz`; an error when it has none."""
    file = find_file(folder, *names)
    if file is None:
        raise BadInput(folder, f"the folder has no {' or '.join(names)} (nor with .gz)", "add it, or choose a split")
    return file


def flag(name: str, value: Any) -> bool:
    """An option that is True or False; `true` is a string in a call string, and not what was meant."""
    if not isinstance(value, bool):
        raise WhyrankError(f"{name}={value!r} is neither True nor False; write {name}=True")
    return value


def in_sample(name: str) -> bool:
    """The published choice of about 10%: the first byte of the SHA-256 of a name, modulo 10, is 0."""
    return hashlib.sha256(name.encode()).digest()[0] % 10 == 0


def aligned(files: Sequence[Path]) -> Iterator[list[str]]:
    """Stream lines that belong together, one of each file; all files must have the same number of lines.

    Blank lines count, but those that only some files have at their end do not.
    """
    for number, lines in enumerate(zip_longest(*map(every_line, files)), 1):
        if None in lines:
            _check_rest(files, lines, number)
        else:
            yield [line.text for line in lines]


def _check_rest(files: Sequence[Path], lines: Sequence[RawLine | None], number: int) -> None:
    short = next(file for file, line in zip(files, lines, strict=True) if line is None)
    for file, line in zip(files, lines, strict=True):
        if line is not None and line.text.strip():
            what = f"this line has no partner in {short.name}, which ends before it"
            raise BadInput(file, what, "the lines of these files belong together; get both again", number)


# Pair sets of articles and their summaries: XSum, and the stories of CNN and the Daily Mail.

_SECTION = re.compile(r"\[SN\]([A-Z-]+)\[SN\]")
_SECTIONS = {"title": "TITLE", "summary": "FIRST-SENTENCE", "body": "RESTBODY"}
_SHA1 = re.compile(r"[0-9a-f]{40}")


def xsum(resource: str, sample10: bool = False) -> PairSet:
    """News articles and their first sentences (roles summary, body, and title where known; Narayan et al. 2018).

    Args:
        resource: a folder of `*.summary` files (sections `[SN]TITLE[SN]`, `[SN]FIRST-SENTENCE[SN]` and
            `[SN]RESTBODY[SN]`), also in folders below; or JSON lines with id, title, text and summary, a file
            or the folder of `articles.jsonl`; all lines have a title or none has.
        sample10: keep the published tenth, by the SHA-256 of the name `ID.summary`.
    """
    path, sample = located(resource), flag("sample10", sample10)
    files = sorted(path.rglob("*.summary"), key=lambda file: (file.name, file)) if path.is_dir() else []
    found = _summaries(files, sample) if files else _json_articles(path, sample)
    return laid_out("xsum", path, found)


def cnndm(resource: str, titles: str | None = None, sample10: bool = False) -> PairSet:
    """Stories and their highlights (roles summary, body, and title where known; See et al. 2017).

    Args:
        resource: a folder of `*.story` files, also in folders below: the text, then `@highlight` before each
            highlight. The summary has a line for each of them.
        titles: a file with a story's id or address, tab, title; `*titles.tsv` in the folder unless given.
            A story that it does not name has an empty title; without such a file there is no role title.
        sample10: keep the published tenth, by the SHA-256 of the id.
    """
    path, sample = located(resource), flag("sample10", sample10)
    known = _titles([located(titles)] if titles is not None else sorted(path.glob("*titles.tsv*")))
    files = sorted(path.rglob("*.story"), key=lambda file: (file.name, file))
    if not files:
        raise BadInput(path, "there are no .story files in it", "name the folder that holds them")
    return laid_out("cnndm", path, (_story(file, known) for file in files if not sample or in_sample(_id(file))))


def _id(file: Path) -> str:
    return file.name.partition(".")[0]


def _summaries(files: list[Path], sample: bool) -> Iterator[TextPair]:
    for file in files:
        if not sample or in_sample(f"{_id(file)}.summary"):
            yield TextPair(_id(file), _sections(file))


def _sections(file: Path) -> dict[str, str]:
    _, *parts = _SECTION.split(whole_text(file))
    found = dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))
    if missing := [name for name in _SECTIONS.values() if name not in found]:
        raise BadInput(file, f"the section [SN]{missing[0]}[SN] is missing", "get the file again")
    return {role: found[name] for role, name in _SECTIONS.items()}


def _json_articles(path: Path, sample: bool) -> Iterator[TextPair]:
    file = needed(path, "articles.jsonl") if path.is_dir() else path
    for row_id, texts in read_pairs(file, {"body": "text"}):
        if missing := {"summary", "body"} - set(texts):
            raise BadInput(file, f"{missing.pop()!r} is missing", "the fields are id, title, text and summary")
        if not sample or in_sample(f"{row_id}.summary"):
            yield TextPair(row_id, {role: text for role, text in texts.items() if role in _SECTIONS})


def _story(file: Path, titles: dict[str, str] | None) -> TextPair:
    body, *highlights = (part.strip() for part in whole_text(file).split("@highlight"))
    known = {} if titles is None else {"title": titles.get(_id(file), "")}
    return TextPair(_id(file), {"summary": "\n".join(highlights), "body": body, **known})


def _titles(files: list[Path]) -> dict[str, str] | None:
    """Titles by the id of their story, which is the SHA-1 of its address."""
    found: dict[str, str] = {}
    for file in files:
        for cells, line in tsv_cells(file):
            if len(cells) != 2:
                raise BadInput(file, "expected an id or address, a tab and a title", "", line)
            key = cells[0].strip()
            found[key if _SHA1.fullmatch(key) else hashlib.sha1(key.encode()).hexdigest()] = cells[1].strip()
    return found if files else None


# GYAFC (Rao and Tetreault 2018): formal and informal answers, with the questions that they answer.

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
    titles = _pair_formality_titles(path, questions)
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


def _pair_formality_titles(path: Path, questions: str | None) -> dict[str, str] | None:
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


# Natural Questions as DPR distributes them (Karpukhin et al. 2020): questions, answers and passages.

_FILES = ("biencoder-nq-train.json", "biencoder-nq-dev.json")


def nq(resource: str, every_passage: bool = False) -> PairSet:
    """Questions with exactly one answer, and a passage that has it.

    The roles are question, answer, passage, and the passage's title and passage_id. A question without a passage
    has an empty one.

    Args:
        resource: `biencoder-nq-train.json` (a list of question, answers and positive_ctxs), or its folder. The
            file is streamed.
        every_passage: a pair for every positive passage, as in the published probe, not the first one only.
    """
    path, every = located(resource), flag("every_passage", every_passage)
    file = needed(path, *_FILES) if path.is_dir() else path
    return laid_out("nq", path, _answered(file, every))


def _answered(file: Path, every: bool) -> Iterator[TextPair]:
    for number, item in enumerate(array_items(file)):
        record = _record(file, item.line, item.value)
        answers = record.texts("answers") if record.fields.get("answers") else []
        if len(answers) != 1:
            continue
        asked = {"question": record.text("question"), "answer": answers[0]}
        passages = [_passage(record, each) for each in _listed(record, "positive_ctxs")] or [_NONE]
        for i, passage in enumerate(passages if every else passages[:1]):
            yield TextPair(f"{number}-{i}" if every else str(number), {**asked, **passage})


_NONE = {"passage": "", "title": "", "passage_id": ""}


def _passage(question: Record, value: Any) -> dict[str, str]:
    record = _record(question.path, question.line, value)
    key = next((key for key in ("passage_id", "psg_id") if key in record.fields), None)
    return {
        "passage": record.text("text"),
        "title": record.text("title") if "title" in record.fields else "",
        "passage_id": str(record.fields[key]) if key else "",
    }


def _listed(record: Record, name: str) -> list[Any]:
    value = record.fields.get(name, [])
    if not isinstance(value, list):
        raise record.wrong(f"{name!r} is not a list")
    return value


def _record(file: Path, line: int, value: Any) -> Record:
    if not isinstance(value, dict):
        raise BadInput(file, "expected an object here", "the file is a list of objects, as DPR distributes it", line)
    return Record(file, line, value)


# Pair sets of sentences with several rewritings each: JFLEG, TurkCorpus and ASSET.

_LEFT, _RIGHT = re.compile("-lrb-", re.IGNORECASE), re.compile("-rrb-", re.IGNORECASE)


class Rewritten(NamedTuple):
    """A sentence by its roles, and what several people made of it."""

    id: str
    texts: Mapping[str, str]
    rewritings: Sequence[str]


def jfleg(resource: str, split: str | None = None, keep_newline: bool = False) -> PairSet:
    """Learners' sentences and their corrections (roles fluent, source, spellchecked; Napoles et al. 2017).

    Four pairs a sentence, dev and test.

    Args:
        resource: the folder of the data set (`dev/dev.src`, `dev/dev.spellchecked.src`, `dev/dev.ref0` ...), or
            one with `dev.jsonl` and `test.jsonl` (id, src, spellchecked, refs), or one such file.
        split: `dev` or `test`, instead of both.
        keep_newline: leave a line feed at the end of every text, as the published code did.
    """
    path, splits = located(resource), ("dev", "test")
    end = "\n" if flag("keep_newline", keep_newline) else ""
    if path.is_dir() and any(find_file(path, f"{each}/{each}.src") for each in splits):
        names = ("{0}/{0}.src", "{0}/{0}.spellchecked.src", *(f"{{0}}/{{0}}.ref{i}" for i in range(4)))
        found = _from_lines(path, chosen(splits, split), names, ("source", "spellchecked"))
    else:
        files = parts(path, splits, split, "{}.jsonl")
        fields = {"source": "src", "spellchecked": "spellchecked"}
        found = (each for part in files for each in _from_json(part.file, fields))
    return laid_out("jfleg", path, _spread(found, "fluent", lambda text: text + end))


def turkcorpus(resource: str, split: str | None = None) -> PairSet:
    """Sentences of Wikipedia and simpler versions of them (roles simple, source; Xu et al. 2016).

    Eight pairs a sentence, test and tune; -lrb- and -rrb- become parentheses.

    Args:
        resource: a folder with `test.8turkers.tok.norm`, `test.8turkers.tok.turk.0` ..., or one with `test.jsonl`
            and `tune.jsonl` (id, norm, refs), or one such file.
        split: `test` or `tune`, instead of both.
    """
    path, splits = located(resource), ("test", "tune")
    if path.is_dir() and any(find_file(path, f"{each}.8turkers.tok.norm") for each in splits):
        names = ("{}.8turkers.tok.norm", *(f"{{}}.8turkers.tok.turk.{i}" for i in range(8)))
        found = _from_lines(path, chosen(splits, split), names, ("source",))
    else:
        files = parts(path, splits, split, "{}.jsonl")
        found = (each for part in files for each in _from_json(part.file, {"source": "norm"}))
    return laid_out("turkcorpus", path, _spread(found, "simple", _with_brackets))


def asset(resource: str, split: str | None = None) -> PairSet:
    """TurkCorpus' sentences with ten other simplifications (roles simple, source; Alva-Manchego et al. 2020).

    Ten pairs a sentence, valid and test.

    Args:
        resource: a folder with `asset.valid.orig`, `asset.valid.simp.0` ..., or one whose `dataset` is that folder.
        split: `valid` or `test`, instead of both.
    """
    path = located(resource)
    folder = path / "dataset" if (path / "dataset").is_dir() else path
    names = ("asset.{}.orig", *(f"asset.{{}}.simp.{i}" for i in range(10)))
    found = _from_lines(folder, chosen(("valid", "test"), split), names, ("source",))
    return laid_out("asset", path, _spread(found, "simple", _with_brackets))


def _from_lines(
    folder: Path, splits: Sequence[str], names: Sequence[str], roles: Sequence[str]
) -> Iterator[Rewritten]:
    """Read aligned files: first one of each role, then the rewritings."""
    for split in splits:
        files = [needed(folder, name.format(split)) for name in names]
        for number, texts in enumerate(aligned(files)):
            given = dict(zip(roles, texts, strict=False))
            yield Rewritten(f"{split}-{number}", given, texts[len(roles) :])


def _from_json(file: Path, fields: Mapping[str, str]) -> Iterator[Rewritten]:
    for record in json_records(file):
        given = {role: record.text(name) for role, name in fields.items()}
        yield Rewritten(record.text("id"), given, record.texts("refs"))


def _spread(found: Iterator[Rewritten], role: str, mend: Callable[[str], str]) -> Iterator[TextPair]:
    """One pair for each rewriting."""
    for each in found:
        given = {name: mend(text) for name, text in each.texts.items()}
        for number, text in enumerate(each.rewritings):
            yield TextPair(f"{each.id}-{number}", {**given, role: mend(text)})


def _with_brackets(text: str) -> str:
    return _RIGHT.sub(")", _LEFT.sub("(", text.strip()))


_MSRP_HEADERS = (
    ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"],
    ["label", "id1", "id2", "sentence1", "sentence2"],
)
_WNC_PLACES = ("biased.full", "WNC/biased.full", "bias_data/WNC/biased.full")
_WNC_COLUMNS = 5  # id, source and target in tokens, source and target as they were; tags may follow


def msrp(resource: str, split: str | None = None) -> PairSet:
    """Paraphrases (roles a, b) of the MSR Paraphrase Corpus (Dolan and Brockett 2005): train and test, label 1.

    Args:
        resource: a folder with `msr_paraphrase_train.txt` and `msr_paraphrase_test.txt`, or with `train.tsv`
            and `test.tsv` (label, id1, id2, sentence1, sentence2); or one such file.
        split: `train` or `test`, instead of both.
    """
    path = located(resource)
    files = parts(path, ("train", "test"), split, "msr_paraphrase_{}.txt", "{}.tsv")
    return laid_out("msrp", path, (pair for part in files for pair in _paraphrases(part.file)))


def wnc(resource: str, split: str | None = None) -> PairSet:
    """Sentences before and after an edit for neutrality (roles biased, neutral; Pryzant et al. 2020).

    Args:
        resource: `biased.full` or a folder that has it (the raw columns are read), or a folder with `train.tsv`
            and `test.tsv` under the header biased, neutral, or one such file.
        split: `train` or `test` of the second form, instead of both.
    """
    path = located(resource)
    full = find_file(path, *_WNC_PLACES) if path.is_dir() and split is None else None
    files = [Part("full", full)] if full else parts(path, ("train", "test"), split, "{}.tsv")
    return laid_out("wnc", path, (pair for part in files for pair in _edits(part)))


def _paraphrases(file: Path) -> Iterator[TextPair]:
    for number, (cells, line) in enumerate(tsv_cells(file)):
        if number == 0 and cells not in _MSRP_HEADERS:
            expected = ", ".join(_MSRP_HEADERS[0])
            raise BadInput(file, "this is not the header of MSRP", f"the columns are {expected}", line)
        if len(cells) != len(_MSRP_HEADERS[0]) or (number and cells[0] not in ("0", "1")):
            raise BadInput(file, "expected 0 or 1, two ids and two sentences", "separate them by tabs", line)
        if cells[0] == "1":
            yield TextPair(f"{cells[1]}-{cells[2]}", {"a": cells[3], "b": cells[4]})


def _edits(part: Part) -> Iterator[TextPair]:
    first, _ = next(tsv_cells(part.file), ([], 0))
    if not {"biased", "neutral"} <= set(first):
        yield from _full_edits(part.file)
        return
    for number, record in enumerate(tsv_records(part.file)):
        yield TextPair(f"{part.split}-{number}", {role: record.text(role) for role in ("biased", "neutral")})


def _full_edits(file: Path) -> Iterator[TextPair]:
    for cells, line in tsv_cells(file):
        if len(cells) < _WNC_COLUMNS:
            what = f"expected {_WNC_COLUMNS} columns or more, found {len(cells)}"
            raise BadInput(file, what, "the columns are id, src_tok, tgt_tok, src_raw, tgt_raw, ...", line)
        yield TextPair(cells[0], {"biased": cells[3], "neutral": cells[4]})
