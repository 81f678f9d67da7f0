"""Pair sets of sentences with several rewritings each: JFLEG, TurkCorpus and ASSET."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from whyrank.data.lines import find_file
from whyrank.data.pair_files import json_records
from whyrank.data.pair_parts import aligned, chosen, flag, laid_out, located, needed, parts
from whyrank.data.pair_rows import TextPair
from whyrank.data.pairs import PairSet

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
