"""Natural Questions as DPR distributes them (Karpukhin et al. 2020): questions, answers and passages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whyrank.core.errors import BadInput
from whyrank.data.json_array import array_items
from whyrank.data.pair_files import Record
from whyrank.data.pair_parts import flag, laid_out, located, needed
from whyrank.data.pair_rows import TextPair
from whyrank.data.pairs import PairSet

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
