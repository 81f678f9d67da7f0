"""`wordpiece:PATH`: the pieces of a model's own tokenizer as terms."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from whyrank.core import BadInput, MissingExtra, WhyrankError
from whyrank.text.analyzer import Analyzer, call_of_factory

_REMEDY = "give a tokenizer.json or a folder that holds one"


def wordpiece(resource: str = "", max_tokens: int | None = None) -> Analyzer:
    """Pieces of a fast tokenizer, without special tokens; of each text the first `max_tokens`."""
    if not resource:
        raise WhyrankError(f"analyzer 'wordpiece' needs a tokenizer; write wordpiece:PATH ({_REMEDY})")
    if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
        raise WhyrankError(f"analyzer 'wordpiece': max_tokens={max_tokens!r} must be a number from 1 up")
    content = _content(resource)
    tokenizer = _tokenizer(resource, content)

    def pieces(texts: Sequence[str]) -> list[list[str]]:
        found = tokenizer.encode_batch([_valid(text) for text in texts], add_special_tokens=False)
        return [encoding.tokens[:max_tokens] for encoding in found]

    call = call_of_factory(wordpiece, {"resource": resource, "max_tokens": max_tokens})
    return Analyzer.of_batches(call, pieces, digests=[hashlib.sha256(content).hexdigest()[:16]])


@lru_cache(maxsize=4)
def _tokenizer(resource: str, content: bytes) -> Any:
    """The tokenizer, without the truncation and padding that its file may carry."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtra("the wordpiece analyzer", "models") from None
    try:
        plain = {**json.loads(content), "truncation": None, "padding": None}
        return Tokenizer.from_str(json.dumps(plain))
    except Exception as error:  # the package raises bare exceptions for anything wrong with the file
        what = f"this is no tokenizer that can be loaded ({error})"
        raise BadInput(resource, what, _REMEDY) from None


def _content(resource: str) -> bytes:
    path = Path(resource).expanduser()
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadInput(file, f"cannot read this tokenizer ({error.strerror})", _REMEDY) from None


def _valid(text: str) -> str:
    """The text without half surrogate pairs, which the package refuses."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
