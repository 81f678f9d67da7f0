"""Checkpoints of EM: the state after an iteration in one file, written beside and renamed.

A line of JSON (what was learned from, and how far), then the sums by source word (float64), then the values of all
shards in their order. No file that is cut short or that belongs to another bitext is read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from whyrank.core import EMPTY, KEY, BadInput, Flags, Floats, check_seal, replacing, seal
from whyrank.learners.em.bitext import Bitext
from whyrank.learners.em.links import Shelf

_MAGIC = "whyrank em 1"
_LONGEST = 1 << 20  # of the first line
_REMEDY = "remove it to start anew"


@dataclass
class State:
    """How far EM is: iterations done and the perplexities found, of training and held-out pairs."""

    iteration: int = 0
    perplexities: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)


def fingerprint(bitext: Bitext, use: Flags, null: bool, precision: type[np.floating[Any]]) -> str:
    """SHA-256 of all that the result depends on, beside the number of iterations."""
    digest = hashlib.sha256(f"{_MAGIC} {null} {precision.__name__}".encode())
    for array in (bitext.source, bitext.source_offsets, bitext.target, bitext.target_offsets, use):
        for start in range(0, len(array), 1 << 24):
            digest.update(np.ascontiguousarray(array[start : start + (1 << 24)]).data)
    for terms in (bitext.source_terms, bitext.target_terms):
        digest.update("\n".join(terms).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def save_checkpoint(path: Path, key: str, state: State, totals: Floats, shelf: Shelf) -> None:
    """Write the state; the old checkpoint stays until the new one is whole."""
    with replacing(path) as beside, open(beside, "wb") as file:
        file.write(json.dumps({"magic": _MAGIC, "key": key, KEY: EMPTY, **asdict(state)}).encode() + b"\n")
        file.write(totals.view(np.uint8).data)  # tofile would not say why it failed
        for number in range(len(shelf)):
            file.write(shelf.get(number).values.view(np.uint8).data)
        file.close()
        seal(beside)


def load_checkpoint(path: Path, key: str, totals: Floats, shelf: Shelf) -> State:
    """Read the state into `totals` and the shelf; a fresh state where there is no file yet."""
    if not path.exists():
        return State()
    check_seal(path, _REMEDY)
    try:
        file = open(path, "rb")  # noqa: SIM115  (closed below)
    except OSError as error:
        raise BadInput(path, f"this checkpoint cannot be read ({error.strerror})", _REMEDY) from None
    with file:
        state = _header(path, file.readline(_LONGEST), key)
        sizes = [totals.nbytes, *(shelf.get(number).values.nbytes for number in range(len(shelf)))]
        if path.stat().st_size != file.tell() + sum(sizes):
            raise BadInput(path, "this checkpoint is not whole", _REMEDY)
        totals[:] = np.fromfile(file, totals.dtype, len(totals))
        for number in range(len(shelf)):
            shard = shelf.get(number)
            shard.values[:] = np.fromfile(file, shard.values.dtype, len(shard.values))
            shelf.put(number, shard)
    return state


def _header(path: Path, line: bytes, key: str) -> State:
    try:
        found = json.loads(line)
        found.pop(KEY, None)
        magic, owner, state = found.pop("magic"), found.pop("key"), State(**found)
    except (ValueError, TypeError, KeyError, AttributeError):
        magic, owner, state = "", "", State()
    if magic != _MAGIC:
        raise BadInput(path, "this is no checkpoint of EM", _REMEDY)
    if owner != key:
        raise BadInput(path, "this checkpoint is of another bitext or of other settings", _REMEDY)
    return state
