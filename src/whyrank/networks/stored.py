"""Single tensors from the safetensors files of a pre-trained model, for heads that transformers would leave out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from whyrank.core.errors import BadInput

_OLD = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


def stored(source: str | Path, names: Sequence[str]) -> list[Tensor] | None:
    """The tensors of these names from a model folder or hub id, in single precision; None where one is missing."""
    found: dict[str, Tensor] = {}
    for file in _files(source):
        found |= _wanted(file, set(names))
    return [found[name].float() for name in names] if len(found) == len(set(names)) else None


def _files(source: str | Path) -> list[Path]:
    if Path(source).is_dir():
        return sorted(Path(source).glob("*.safetensors"))
    from transformers.utils.hub import cached_file

    try:
        found = cached_file(str(source), "model.safetensors")
    except OSError:
        return []
    return [Path(found)] if found else []


def _wanted(file: Path, names: set[str]) -> dict[str, Tensor]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as tensors:
            keys = {_modern(key): key for key in tensors.keys()}  # noqa: SIM118
            return {name: tensors.get_tensor(keys[name]) for name in names & keys.keys()}
    except (OSError, SafetensorError) as error:
        raise BadInput(file, f"cannot be read ({error})", "copy the model again") from None


def _modern(key: str) -> str:
    """The name that a tensor of an old checkpoint has today."""
    for old, new in _OLD.items():
        key = key.replace(old, new)
    return key
