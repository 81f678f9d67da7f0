"""Texts as numbers for networks without a transformer: whole words, each with a row in a matrix of vectors."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from whyrank.core.errors import BadInput
from whyrank.networks.pieces import Ids, Pieces

KIND = "whyrank words"
_WORD = re.compile(r"[^\W_]+")
_REMEDY = "train or copy the network again"


class Words(Pieces):
    """Lower-case runs of letters and digits as a `Tokeniser`: a list of known words, the others by hash.

    Number 0 is padding, known word i has i + 1, and an unknown one falls into one of `buckets` after them by its
    CRC-32: two different unknown words rarely share a number, and an unknown word of the query still meets itself in
    a text. Without buckets, unknown words are left out.
    """

    def __init__(self, words: Sequence[str], buckets: int = 1000) -> None:
        """Number a list of words; of a word that occurs twice the first place counts."""
        self.path, self.words, self.buckets = Path(), tuple(words), buckets
        self._known = {word: i + 1 for i, word in reversed(list(enumerate(self.words)))}
        found = {"kind": KIND, "buckets": buckets, "words": self.words}
        self.content = json.dumps(found, separators=(",", ":")).encode() + b"\n"

    def ids(self, texts: Sequence[str], most: int) -> list[Ids]:
        """The first `most` words of each text."""
        return [np.fromiter(islice(self._numbers(text), most), dtype=np.int32) for text in texts]

    def __len__(self) -> int:
        return 1 + len(self.words) + self.buckets

    @cached_property
    def special(self) -> dict[str, int]:
        """The number of padding; there are no other special tokens."""
        return {"pad": 0}

    def spell(self, ids: Sequence[int]) -> list[str]:
        """The words themselves; a bucket as its number in brackets."""
        named = ("[PAD]", *self.words)
        return [named[i] if i < len(named) else f"[{i - len(named)}]" for i in map(int, ids)]

    def numbers(self, tokens: Sequence[str]) -> list[int]:
        """Numbers of the given words; unknown ones are left out."""
        return [self._known[token] for token in tokens if token in self._known]

    def _numbers(self, text: str) -> Iterator[int]:
        for word in map(re.Match.group, _WORD.finditer(text.lower())):
            if (number := self._known.get(word)) is not None:
                yield number
            elif self.buckets:
                yield 1 + len(self.words) + zlib.crc32(word.encode("utf-8", "surrogatepass")) % self.buckets


def open_pieces(folder: str | Path) -> Pieces:
    """The tokens of a network's folder: words where its tokenizer.json is a list of them, else pieces."""
    file = Path(folder) / "tokenizer.json"
    found = _read(file)
    if found.get("kind") != KIND:
        return Pieces(folder)
    words, buckets = found.get("words"), found.get("buckets")
    if not isinstance(words, list) or not isinstance(buckets, int) or not all(isinstance(w, str) for w in words):
        raise BadInput(file, "is no list of words with a number of buckets", _REMEDY)
    return Words(words, buckets)


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise BadInput(file, f"cannot be read ({error})", _REMEDY) from None
    return found if isinstance(found, dict) else {}
