"""ONNX Runtime as a back end: fp32, each thread with a batch of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from whyrank.rankers.neural.backends import Array, Program

if TYPE_CHECKING:
    from torch import Tensor, nn

_OPSET = 17


def compile_model(
    module: nn.Module, example: Sequence[Tensor], names: Sequence[str], half: bool, threads: int
) -> Program:
    """Convert a torch module by way of a temporary file; all its dimensions may vary. Fp32, whatever `half` says."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # threads are ours
    options.log_severity_level = 3
    with TemporaryDirectory(prefix="whyrank-") as folder:
        file = _exported(module, example, names, Path(folder) / "model.onnx")
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return _Session(session, names)


def _exported(module: nn.Module, example: Sequence[Tensor], names: Sequence[str], file: Path) -> str:
    import torch

    axes = {name: {i: f"{name}{i}" for i in range(t.ndim)} for name, t in zip(names, example, strict=True)}
    torch.onnx.export(
        module, tuple(example), file, dynamo=False, input_names=list(names), output_names=["found"],
        dynamic_axes=axes, opset_version=_OPSET,
    )  # fmt: skip
    return str(file)


class _Session:
    """A session; inputs that the model does not read are not among its own."""

    half = False

    def __init__(self, session: Any, names: Sequence[str]) -> None:
        self._session, own = session, {given.name for given in session.get_inputs()}
        self._places = {name: place for place, name in enumerate(names) if name in own}

    def __call__(self, arrays: Sequence[Array]) -> Array:
        [found] = self._session.run(None, {name: arrays[place] for name, place in self._places.items()})
        return np.asarray(found)
