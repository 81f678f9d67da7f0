"""Prepared runs made small for a journey: texts and arrays well compressed, weights in sixteen or eight bits."""

from __future__ import annotations

import io
import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from whyrank.core.checksums import EMPTY, KEY, check_seal, seal
from whyrank.core.errors import WhyrankError
from whyrank.core.files import replacing
from whyrank.networks.quantised import quantised, restored

SMALL = ".xz"
BITS = (8, 16, 32)


def write_values(path: Path, value: Any) -> None:
    """Write plain values, half surrogate pairs of texts included."""
    _write(path, json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def read_values(path: Path) -> Any:
    """Read what `write_values` wrote."""
    return json.loads(_read(path).decode("utf-8", "surrogatepass"))


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays by name."""
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    _write(path, content.getvalue())


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read what `write_arrays` wrote."""
    with np.load(io.BytesIO(_read(path)), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def check_bits(bits: int) -> None:
    """Raise an error for a number of bits that weights are not kept in."""
    if bits not in BITS:
        raise WhyrankError(f"weights are kept in {', '.join(map(str, BITS))} bits, not in {bits}")


def narrow(folder: Path, bits: int) -> None:
    """Keep the weights of all models below a folder in fewer bits; `widen` makes them whole again."""
    from safetensors.torch import load_file, save

    for file in sorted(folder.rglob("*.safetensors")) if bits < max(BITS) else []:
        state = load_file(file)
        half = {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in state.items()}
        _write(file.with_name(file.name + SMALL), save(quantised(state) if bits == min(BITS) else half), 1)
        file.unlink()


def widen(folder: Path) -> None:
    """Write the weights that `narrow` kept as single precision, beside them."""
    from safetensors.torch import load, save

    for small in sorted(folder.rglob(f"*.safetensors{SMALL}")):
        whole = small.with_name(small.name.removesuffix(SMALL))
        check_seal(whole, f"remove it; it is made again from {small.name}")
        if not whole.exists():
            with replacing(whole) as beside:
                beside.write_bytes(save(restored(load(_read(small))), {"format": "pt", KEY: EMPTY}))
                seal(beside)


def _write(path: Path, content: bytes, effort: int = 6) -> None:
    with replacing(path) as beside:
        beside.write_bytes(lzma.compress(content, preset=effort))


def _read(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes())
