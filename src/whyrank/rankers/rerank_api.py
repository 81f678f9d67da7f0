"""The rerank request that many services share: how it is spelled, and how its answers are read.

| api | request | answer |
| --- | --- | --- |
| `jina` | query, documents, top_n, return_documents | results: [{index, relevance_score}] |
| `cohere` | query, documents, top_n | results: [{index, relevance_score}] |
| `tei` | query, texts, raw_scores, truncate, return_text | [{index, score}] |

`jina` is also what vLLM, Infinity and llama.cpp read; `tei` is Text Embeddings Inference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from whyrank.core.answers import Answered

APIS = ("jina", "tei", "cohere")
_OF_HOST = {"api.jina.ai": "jina", "api.cohere.com": "cohere", "api.cohere.ai": "cohere"}
_LACKING = "the answer has no score for this text"


class WrongAnswer(Exception):
    """A service answered something that is no list of scores."""


def possible_apis(api: str, host: str) -> tuple[str, ...]:
    """How a service may want to be asked, in the order to try; with `auto` an unknown host is tried two ways."""
    if api != "auto":
        return (api,)
    return (_OF_HOST[host],) if host in _OF_HOST else APIS[:2]


def request_body(api: str, query: str, texts: Sequence[str], model: str | None, options: Mapping[str, Any]) -> bytes:
    """The request as JSON in plain ASCII, so that any text can be sent; `options` add to it or replace parts."""
    body: dict[str, Any] = {"query": query, "texts" if api == "tei" else "documents": list(texts)}
    if model is not None:
        body["model"] = model
    if api == "tei":  # raw scores do not saturate as probabilities do; a text that is too long is cut
        body |= {"raw_scores": True, "truncate": True, "return_text": False}
    else:
        body |= {"top_n": len(texts)} | ({"return_documents": False} if api == "jina" else {})
    return json.dumps(body | dict(options)).encode("ascii")


def read_answer(content: bytes, size: int) -> Answered:
    """The scores of `size` texts in the order of the request; a text that the answer leaves out has a reason."""
    scores, reasons = np.full(size, np.nan), dict.fromkeys(range(size), _LACKING)
    for row in _rows(content):
        index, score = _entry(row)
        if not 0 <= index < size:
            raise WrongAnswer(f"the answer has a score for text {index} of {size}")
        if index not in reasons and score is not None:
            raise WrongAnswer(f"the answer has two scores for text {index}")
        if score is not None:
            scores[index] = score
            del reasons[index]
    return Answered(scores, reasons)


def in_words(content: bytes) -> str:
    """What a service says in an error: the message of a JSON answer, else the beginning of the text."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return _page(content)
    for key in ("message", "detail", "error"):
        if isinstance(found, dict) and key in found:
            return _short(str(found[key]))
    return _short(str(found))


def _rows(content: bytes) -> list[Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise WrongAnswer(f"the answer is no JSON but {_page(content) or 'empty'}") from None
    rows = found.get("results") if isinstance(found, dict) else found
    if not isinstance(rows, list):
        raise WrongAnswer(f"the answer has no list of results: {_short(str(found))}")
    return rows


def _entry(row: Any) -> tuple[int, float | None]:
    """The number of a text and its score; None where the service has none."""
    index = row.get("index") if isinstance(row, dict) else None
    if not isinstance(row, dict) or not isinstance(index, int) or isinstance(index, bool):
        raise WrongAnswer(f"a result has no index: {_short(str(row))}")
    score = row.get("relevance_score", row.get("score"))
    if score is None:
        return index, None
    try:
        return index, float(score if isinstance(score, int | float) and not isinstance(score, bool) else "no number")
    except (ValueError, OverflowError):
        raise WrongAnswer(f"a score is no number: {_short(str(row))}") from None


def _page(content: bytes) -> str:
    text = content[:2000].decode("utf-8", "replace")
    return "an HTML page" if "<html" in text.lower() or "<!doctype" in text.lower() else _short(text)


def _short(text: str) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= 160 else joined[:160] + "…"
