"""Published pair sets of longer texts: summaries (XSum, CNN and Daily Mail) and passages (Natural Questions)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, ValidationError

from whyrank.core import BadInput, needed_file, read_json, read_text
from whyrank.data.pairs.rows import TextPair, read_pairs
from whyrank.data.pairs.sentences import two_columns
from whyrank.data.pairs.sets import existing, layout

_SECTION = re.compile(r"\[SN\]([A-Z-]+)\[SN\]")
_SECTIONS = {"title": "TITLE", "summary": "FIRST-SENTENCE", "body": "RESTBODY"}
_SHA1 = re.compile(r"[0-9a-f]{40}")


@layout
def xsum(resource: Path, sample10: bool = False) -> Iterator[TextPair]:
    """News articles and their first sentences (roles summary, body, and title where known; Narayan et al. 2018).

    Args:
        resource: a folder of `*.summary` files (sections `[SN]TITLE[SN]`, `[SN]FIRST-SENTENCE[SN]` and
            `[SN]RESTBODY[SN]`), also in folders below; or JSON lines with id, title, text and summary, a file
            or the folder of `articles.jsonl`; all lines have a title or none has.
        sample10: keep the published tenth, by the SHA-256 of the name `ID.summary`.
    """
    files = _below(resource, "*.summary")
    found = map(_sections, files) if files else _json_articles(resource)
    return (pair for pair in found if not sample10 or _in_sample(f"{pair.id}.summary"))


@layout
def cnndm(resource: Path, titles: str | None = None, sample10: bool = False) -> Iterator[TextPair]:
    """Stories and their highlights (roles summary, body, and title where known; See et al. 2017).

    Args:
        resource: a folder of `*.story` files, also in folders below: the text, then `@highlight` before each
            highlight. The summary has a line for each of them.
        titles: a file with a story's id or address, tab, title; `*titles.tsv` in the folder unless given.
            A story that it does not name has an empty title; without such a file there is no role title.
        sample10: keep the published tenth, by the SHA-256 of the id.
    """
    lists = [existing(titles)] if titles is not None else sorted(resource.glob("*titles.tsv*"))
    known = {
        key if _SHA1.fullmatch(key) else hashlib.sha1(key.encode()).hexdigest(): title  # of a story's address
        for file in lists
        for key, title in two_columns(file)
    }
    files = _below(resource, "*.story")
    if not files:
        raise BadInput(resource, "there are no .story files in it", "name the folder that holds them")
    for file in files:
        if not sample10 or _in_sample(_stem(file)):
            body, *highlights = (part.strip() for part in read_text(file).split("@highlight"))
            title = {"title": known.get(_stem(file), "")} if lists else {}
            yield TextPair(_stem(file), {"summary": "\n".join(highlights), "body": body, **title})


def _in_sample(name: str) -> bool:
    """The published choice of about 10%: the first byte of the SHA-256 of a name, modulo 10, is 0."""
    return hashlib.sha256(name.encode()).digest()[0] % 10 == 0


def _below(path: Path, pattern: str) -> list[Path]:
    return sorted(path.rglob(pattern), key=lambda file: (file.name, file)) if path.is_dir() else []


def _stem(file: Path) -> str:
    return file.name.partition(".")[0]


def _sections(file: Path) -> TextPair:
    _, *parts = _SECTION.split(read_text(file))
    found = dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))
    if missing := [name for name in _SECTIONS.values() if name not in found]:
        raise BadInput(file, f"the section [SN]{missing[0]}[SN] is missing", "get the file again")
    return TextPair(_stem(file), {role: found[name] for role, name in _SECTIONS.items()})


def _json_articles(path: Path) -> Iterator[TextPair]:
    file = needed_file(path, "articles.jsonl") if path.is_dir() else path
    for row_id, texts in read_pairs(file, {"body": "text"}):
        if "summary" not in texts:
            raise BadInput(file, "'summary' is missing", "the fields are id, title, text and summary")
        yield TextPair(row_id, {role: text for role, text in texts.items() if role in _SECTIONS})


# Questions, answers and passages: Natural Questions as DPR distributes them (Karpukhin et al. 2020).

_NQ_FILES = ("biencoder-nq-train.json", "biencoder-nq-dev.json")


class _Passage(BaseModel):
    text: str
    title: str = ""
    passage_id: str | int = Field(default="", validation_alias=AliasChoices("passage_id", "psg_id"))


_NO_PASSAGE = _Passage.model_validate({"text": ""})


class _Question(BaseModel):
    question: str
    answers: list[str] = []
    positive_ctxs: list[_Passage] = []


@layout
def nq(resource: Path, every_passage: bool = False) -> Iterator[TextPair]:
    """Questions with exactly one answer, and a passage that has it.

    The roles are question, answer, passage, and the passage's title and passage_id. A question without a passage
    has an empty one.

    Args:
        resource: `biencoder-nq-train.json` (a list of question, answers and positive_ctxs), or its folder. The
            file is read whole into memory.
        every_passage: a pair for every positive passage, as in the published probe, not the first one only.
    """
    file = needed_file(resource, *_NQ_FILES) if resource.is_dir() else resource
    try:
        questions = TypeAdapter(list[_Question]).validate_python(read_json(file))
    except ValidationError as error:
        problem = error.errors()[0]
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"])
        remedy = "the file must be one JSON array of objects, as DPR distributes it"
        raise BadInput(file, f"item {where}: {problem['msg']}" if where else problem["msg"], remedy) from None
    for number, each in enumerate(questions):
        if len(each.answers) != 1:
            continue
        question = {"question": each.question, "answer": each.answers[0]}
        passages = each.positive_ctxs or [_NO_PASSAGE]
        for i, passage in enumerate(passages if every_passage else passages[:1]):
            texts = {"passage": passage.text, "title": passage.title, "passage_id": str(passage.passage_id)}
            yield TextPair(f"{number}-{i}" if every_passage else str(number), {**question, **texts})
