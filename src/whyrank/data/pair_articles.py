"""Pair sets of articles and their summaries: XSum, and the stories of CNN and the Daily Mail."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from whyrank.core.errors import BadInput
from whyrank.data.pair_files import tsv_cells
from whyrank.data.pair_parts import flag, in_sample, laid_out, located, needed
from whyrank.data.pair_roles import read_pairs
from whyrank.data.pair_rows import TextPair
from whyrank.data.pairs import PairSet
from whyrank.data.raw import whole_text

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
