"""Edits of content: the query put in or in place of the text, the text repeated, expansions added."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from whyrank.core import BadInput, WhyrankError, check_number, check_text, check_whole


def replace_with_query(query: str) -> str:
    """Replaced by the query itself"""
    return query


def prepend_query(text: str, query: str) -> str:
    """With the query put before it"""
    return f"{query} {text}"


def repeat_document(text: str, *, times: int = 2) -> str:
    """Repeated as a whole"""
    check_whole("repeat-document: times", times, 2)
    check_number("repeat-document: times", times, 2, 1000)
    return " ".join([text] * times)


def doc2query(text: str, rng: random.Random, *, expansions: str = "", model: str = "", n: int = 4) -> str | None:
    """With queries added that the text may answer (Nogueira and Lin, docTTTTTquery, 2019)"""
    if bool(expansions) == bool(model):
        raise WhyrankError(
            "doc2query needs expansions=FILE (JSON lines with text and queries) or model=PATH, one of the two"
        )
    check_whole("doc2query: n", n, 1)
    check_text("doc2query: expansions", expansions)
    check_text("doc2query: model", model)
    if expansions:
        queries = _from_file(expansions).get(text)
    else:
        from whyrank.text.generation import generate

        queries = generate([text], model, n, rng.getrandbits(32))[0]
    return f"{text} {' '.join(queries[:n])}" if queries else None


def _lacking(options: Mapping[str, Any]) -> str:
    return "" if options.get("expansions") or options.get("model") else "it needs expansions=FILE or model=PATH"


doc2query.lacking = _lacking  # type: ignore[attr-defined]


@lru_cache(maxsize=4)
def _from_file(path: str) -> Mapping[str, list[str]]:
    """Expansions by text: one JSON object a line, with `text` and `queries`."""
    if not Path(path).is_file():
        raise BadInput(path, "no such file of expansions", "give JSON lines with text and queries")
    found: dict[str, list[str]] = {}
    with open(path, encoding="utf-8") as file:
        try:
            for number, line in enumerate(file, 1):
                try:
                    row = json.loads(line)
                    text, queries = row["text"], row["queries"]
                except (ValueError, KeyError, TypeError):
                    text, queries = None, None
                if not isinstance(text, str) or not isinstance(queries, list):
                    what = "not a JSON object with text and a list of queries"
                    raise BadInput(path, what, "mend or drop the line", number)
                found[text] = [str(query) for query in queries]
        except UnicodeDecodeError as error:
            raise BadInput(path, f"not UTF-8 ({error.reason})", "give JSON lines with text and queries") from None
    if not found:
        raise BadInput(path, "the file is empty", "give JSON lines with text and queries")
    return found
