"""The tokenizer of a model folder: pieces of single texts, and what the model wants around a pair of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import BadInput
from whyrank.networks import CHARACTERS_PER_PIECE, Arrays, Ids, lengths_mask, padded
from whyrank.text import positions_of

_TWO_MORE = ("roberta", "xlm-roberta", "camembert", "mpnet")  # their first two positions are not for tokens


class Frame(NamedTuple):
    """Special tokens before a query, between query and text and after the text, and the types of all five parts."""

    before: Ids
    between: Ids
    after: Ids
    types: tuple[int, int, int, int, int]

    @property
    def size(self) -> int:
        """How many special tokens there are."""
        return len(self.before) + len(self.between) + len(self.after)


class Tokens:
    """Texts as token numbers without special tokens, so that each text is tokenised once for all its pairs."""

    def __init__(self, folder: Path, last: bool = False) -> None:
        """Load the tokenizer of a folder; with `last`, the last pieces of a long text are kept."""
        from transformers import AutoTokenizer

        self.folder, self.last = folder, last
        self.tokenizer: Any = AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
        self._backend: Any = getattr(self.tokenizer, "backend_tokenizer", None)
        if self._backend is None:
            raise BadInput(folder, "has no fast tokenizer", "add the tokenizer.json of the model")
        self._backend.no_padding()
        self._backend.no_truncation()

    def ids(self, texts: Sequence[str], most: int) -> list[Ids]:
        """The first (or last) `most` pieces of each text; of a very long one only what can matter is tokenised."""
        near = [self.end(text, most * CHARACTERS_PER_PIECE) for text in texts]
        found = self._backend.encode_batch(near, add_special_tokens=False)
        return [np.array(self.end(encoding.ids, most), dtype=np.int32) for encoding in found]

    def number(self, token: str) -> int:
        """The number of a token; an error where the vocabulary lacks it."""
        found = self._backend.token_to_id(token)
        if found is None:
            raise BadInput(self.folder, f"the tokenizer has no token {token!r}", "name one that it has")
        return int(found)

    @property
    def pad(self) -> int:
        """The number of the token that fills batches up."""
        own = (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id, 0)
        return int(next(number for number in own if number is not None))

    def places(self, config: Any) -> int:
        """The longest input that tokenizer and model allow."""
        found = int(getattr(config, "max_position_embeddings", 0) or 0)
        found -= 2 if config.model_type in _TWO_MORE else 0
        return min(int(self.tokenizer.model_max_length), found if found > 0 else 512)

    @cached_property
    def frame(self) -> Frame:
        """What the tokenizer puts around a pair, seen on a pair of two letters."""
        pair = self._backend.encode("a", "b")
        parts = np.array([-1 if part is None else part for part in pair.sequence_ids])
        ids, types = np.array(pair.ids, np.int32), pair.type_ids
        first, second = np.flatnonzero(parts == 0), np.flatnonzero(parts == 1)
        kinds = (0, first[0], first[-1] + 1, second[0], len(ids) - 1)
        found = tuple(int(types[i]) for i in kinds)
        return Frame(ids[: first[0]], ids[first[-1] + 1 : second[0]], ids[second[-1] + 1 :], found)  # type: ignore[arg-type]

    def pair_arrays(self, queries: Sequence[Ids], docs: Sequence[Ids], most: int) -> Arrays:
        """Framed pairs of up to `most` tokens; where a pair is longer, the longer of the two texts is cut."""
        cut = [self._cut(q, d, most - self.frame.size) for q, d in zip(queries, docs, strict=True)]
        before, between, after, kinds = self.frame
        rows = [np.concatenate([before, q, between, d, after]) for q, d in cut]
        sizes = [[len(before), len(q), len(between), len(d), len(after)] for q, d in cut]
        types = [np.repeat(np.array(kinds, np.int32), each) for each in sizes]
        ids = padded(rows, self.pad)
        return {"ids": ids, "types": padded(types, 0), "mask": lengths_mask(rows, ids.shape[1])}

    def _cut(self, query: Ids, doc: Ids, room: int) -> tuple[Ids, Ids]:
        n, m = shares(len(query), len(doc), room)
        return self.end(query, n), self.end(doc, m)

    def end(self, items: Any, most: int) -> Any:
        """The first items, or the last ones."""
        return items[max(len(items) - most, 0) :] if self.last else items[:most]


def check_length(folder: Path, model: Any, asked: int | None) -> None:
    """Raise an error where more tokens are to be read than the model has positions for."""
    places = positions_of(model)
    if asked is not None and places is not None and asked > places:
        what = f"the model reads {places} tokens at most, and max_length is {asked}"
        raise BadInput(folder, what, f"give max_length={places} or less, and passages=max for long texts")


def shares(first: int, second: int, room: int) -> tuple[int, int]:
    """How much of two texts fits: the longer one is cut to what the shorter leaves, or both to half of the room."""
    if first + second <= room:
        return first, second
    short = min(first, second, room // 2)
    return (short, room - short) if first <= second else (room - short, short)
