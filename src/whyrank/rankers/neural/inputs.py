"""Texts as token numbers, each tokenised once, and batches of inputs that are put together on the device.

All texts lie end to end in one array on the device. A batch is made there by index arithmetic from where the texts of
each row begin in that array and how many of their tokens are read. Nothing is padded or joined in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from whyrank.core import BadInput, Codes, Ints
from whyrank.networks import CHARACTERS_PER_TOKEN, Ids

if TYPE_CHECKING:
    from torch import Tensor


class InputLayout(NamedTuple):
    """What a model reads: special tokens and texts in a row.

    Attributes:
        parts: token numbers, or the name of a text (`query`, `doc`).
        types: the type of each part.
        pad: the number that rows are filled up with.
        names: of the three inputs; without the last, the model knows no types.
    """

    parts: tuple[Ids | str, ...]
    types: tuple[int, ...]
    pad: int
    names: tuple[str, ...] = ("input_ids", "attention_mask", "token_type_ids")

    @property
    def special(self) -> int:
        """How many special tokens there are."""
        return sum(len(part) for part in self.parts if not isinstance(part, str))


class TokenRows:
    """The token numbers of distinct texts, each text tokenised when it is first needed.

    Attributes:
        ids: of all texts so far, end to end, after one number that belongs to none.
        starts: where each text begins.
        sizes: how many tokens each has.
        digests: of the tokens of each: equal ones are equal texts to the model.
    """

    def __init__(self, tokenise: Callable[[Sequence[str]], list[Ids]], texts: Sequence[str]) -> None:
        self._tokenise, self._texts = tokenise, texts
        self.ids: Ids = np.zeros(1, np.int32)
        self.starts, self.sizes = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
        self.digests = np.zeros((len(texts), 16), np.uint8)
        self._known = np.zeros(len(texts), bool)

    def add(self, codes: Codes) -> None:
        """Tokenise those of some texts that are new."""
        new = np.unique(codes)
        new = new[~self._known[new]]
        if not len(new):
            return
        rows = self._tokenise([self._texts[code] for code in new.tolist()])
        sizes = np.array([len(row) for row in rows], np.int64)
        self.starts[new] = len(self.ids) + np.cumsum(sizes) - sizes
        self.sizes[new], self._known[new] = sizes, True
        digests = b"".join(digest_of_tokens(row) for row in rows)
        self.digests[new] = np.frombuffer(digests, np.uint8).reshape(-1, 16)
        self.ids = np.concatenate([self.ids, *rows])
        self.__dict__.pop("_on_device", None)

    def on(self, device: str) -> Tensor:
        """All token numbers on a device."""
        kept: dict[str, Tensor] = self._on_device
        if device not in kept:
            kept[device] = _send(self.ids, device)
        return kept[device]

    @cached_property
    def _on_device(self) -> dict[str, Tensor]:
        return {}


class Taken(NamedTuple):
    """What is read of some texts: the token numbers of all texts, where each begins, and how many are read."""

    rows: TokenRows
    starts: Ints
    sizes: Ints

    @classmethod
    def of(cls, rows: TokenRows, codes: Codes, sizes: Ints, last: bool) -> Taken:
        """The first tokens of texts, or the last ones."""
        starts = rows.starts[codes]
        return cls(rows, starts + rows.sizes[codes] - sizes if last else starts, sizes)

    def take(self, some: Sequence[int] | Ints) -> Taken:
        """Of some of the texts."""
        return Taken(self.rows, self.starts[some], self.sizes[some])

    def lists(self) -> list[Ids]:
        """The token numbers of each."""
        bounds = zip(self.starts.tolist(), self.sizes.tolist(), strict=True)
        return [self.rows.ids[start : start + size] for start, size in bounds]


class TokenisedTexts:
    """Texts as token numbers without special tokens, so that each text is tokenised once for all its pairs."""

    def __init__(self, tokenizer: Any, last: bool = False) -> None:
        """A copy of a tokenizer of transformers; with `last`, the last tokens of a long text are kept."""
        self.last = last
        own = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
        self.pad = int(next(number for number in own if number is not None))
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise BadInput(tokenizer.name_or_path, "has no fast tokenizer", "add the tokenizer.json of the model")
        self._backend: Any = deepcopy(backend)
        self._backend.no_padding()
        self._backend.no_truncation()

    def ids(self, texts: Sequence[str], most: int) -> list[Ids]:
        """The first (or last) `most` tokens of each text; of a very long one only what can matter is tokenised."""
        near = [self.end(text, most * CHARACTERS_PER_TOKEN) for text in texts]
        found = self._backend.encode_batch(near, add_special_tokens=False)
        return [np.array(self.end(encoding.ids, most), dtype=np.int32) for encoding in found]

    def number(self, token: str) -> int | None:
        """The number of a token; None where the vocabulary lacks it."""
        found: int | None = self._backend.token_to_id(token)
        return found

    def layout(self, typed: bool) -> InputLayout:
        """What the tokenizer puts around a pair, seen on a pair of two letters."""
        pair = self._backend.encode("a", "b")
        parts = np.array([-1 if part is None else part for part in pair.sequence_ids])
        ids, types = np.array(pair.ids, np.int32), pair.type_ids
        first, second = np.flatnonzero(parts == 0), np.flatnonzero(parts == 1)
        kinds = (0, first[0], first[-1] + 1, second[0], len(ids) - 1)
        around = (ids[: first[0]], "query", ids[first[-1] + 1 : second[0]], "doc", ids[second[-1] + 1 :])
        names = ("input_ids", "attention_mask", "token_type_ids")[: 3 if typed else 2]
        return InputLayout(around, tuple(int(types[i]) for i in kinds), self.pad, names)

    def end(self, items: Any, most: int) -> Any:
        """The first items, or the last ones."""
        return items[max(len(items) - most, 0) :] if self.last else items[:most]


def fitting_sizes(first: Ints, second: Ints, room: int) -> tuple[Ints, Ints]:
    """How much of two texts fits: the longer one is cut to what the shorter leaves, or both to half of the room."""
    short = np.minimum(np.minimum(first, second), room // 2)
    fits, other = first + second <= room, room - short
    return (
        np.where(fits, first, np.where(first <= second, short, other)),
        np.where(fits, second, np.where(first <= second, other, short)),
    )


def lay_out(layout: InputLayout, texts: Mapping[str, Taken], device: str, multiple: int = 1) -> dict[str, Tensor]:
    """A batch of inputs as a model wants them, as wide as its longest row (or up to a multiple of some width)."""
    import torch

    sizes = np.sum([each.sizes for each in texts.values()], axis=0) + layout.special
    width = -(-int(np.max(sizes)) // multiple) * multiple
    column, end = torch.arange(width, device=device)[None], torch.zeros((), dtype=torch.int64, device=device)
    ids, types = (torch.full((len(sizes), width), value, device=device) for value in (layout.pad, 0))
    for part, kind in zip(layout.parts, layout.types, strict=True):
        at = column - end
        if isinstance(part, str):
            flat = texts[part].rows.on(device)
            start, size = _send(np.stack([texts[part].starts, texts[part].sizes]), device)[:, :, None]
        elif len(part):
            flat, start, size = _send(part, device), 0, len(part)
        else:
            continue
        inside = (at >= 0) & (at < size)
        ids = torch.where(inside, flat[(at + start).clamp_(0, len(flat) - 1)].long(), ids)
        if kind:
            types.masked_fill_(inside, kind)
        end = end + size
    mask = (column < end).long().expand_as(ids)
    return dict(zip(layout.names, (ids, mask, types), strict=False))


def digest_of_tokens(*parts: Ids | bytes) -> bytes:
    """A digest of token numbers, in parts."""
    found = blake2b(digest_size=16)
    for part in parts:
        content = part if isinstance(part, bytes) else part.tobytes()
        found.update(f"{len(content)} ".encode() + content)
    return found.digest()


def _send(array: np.ndarray[Any, Any], device: str) -> Tensor:
    """An array on a device; nothing waits for it."""
    import torch

    found = torch.from_numpy(np.ascontiguousarray(array))
    return found.pin_memory().to(device, non_blocking=True) if device.startswith("cuda") else found
