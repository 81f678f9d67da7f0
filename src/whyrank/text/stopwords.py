"""Stop word lists: Lucene's short one, and files with one word a line."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from whyrank.core.errors import BadInput, WhyrankError

_LUCENE = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these they
this to was will with
"""
LUCENE = frozenset(_LUCENE.split())
"""The 33 English stop words of Lucene."""
INDRI = "WHYRANK_INDRI_STOPWORDS"
"""The variable that names a file with the list of Indri."""


class StopWords(NamedTuple):
    """The words of a list and a digest of the file they came from."""

    words: frozenset[str]
    digest: str


def read_stopwords(path: str) -> StopWords:
    """Read a UTF-8 file with one word a line; blank lines and lines that start with # are ignored."""
    content = _content(path)
    lines = content.removeprefix(b"\xef\xbb\xbf").splitlines()
    words = {word for number, line in enumerate(lines, 1) if (word := _word(path, line, number))}
    if not words:
        raise BadInput(path, "there are no stop words in it", "write one word a line")
    return StopWords(frozenset(words), hashlib.sha256(content).hexdigest()[:16])


def stop_file(name: str, given: str | os.PathLike[str], variable: str) -> str:
    """The stop word file of an analyzer: the one given, else the one that an environment variable names."""
    if not isinstance(given, str | os.PathLike):
        raise WhyrankError(f"analyzer {name!r}: stopwords={given!r} is not a path; write it in quotes")
    if path := os.fspath(given):
        return path
    if not (named := os.environ.get(variable)):
        ways = f"write {name}(stopwords=FILE) or set {variable}=FILE"
        raise WhyrankError(f"analyzer {name!r} needs a stop word list; {ways}")
    return os.path.abspath(os.path.expanduser(named))


def _content(path: str) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()
    except (OSError, ValueError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        remedy = "give a file with one word a line"
        raise BadInput(path, f"cannot read this stop word list ({why})", remedy) from None


def _word(path: str, line: bytes, number: int) -> str:
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        raise BadInput(path, "this is not UTF-8", "save the file as UTF-8", number) from None
    if text.startswith("#"):
        return ""
    if len(text.split()) > 1:
        raise BadInput(path, f"more than one word in a line: {text!r}", "write one word a line", number)
    return text
