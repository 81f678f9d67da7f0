"""OpenVINO as a back end: one stream per thread, in fp32 or bf16."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from whyrank.rankers.neural.backends import Array, Program

if TYPE_CHECKING:
    from torch import Tensor, nn

_TELEMETRY = "openvino_telemetry"


def compile_model(
    module: nn.Module, example: Sequence[Tensor], names: Sequence[str], half: bool, threads: int
) -> Program:
    """Convert a torch module straight from memory; all its dimensions may vary."""
    import torch

    with _untold():
        import openvino

    trace: Any = torch.jit.trace  # the package does not type it
    traced = trace(module, tuple(example), check_trace=False)
    shapes = [openvino.PartialShape([-1] * tensor.ndim) for tensor in example]
    model = openvino.convert_model(traced, example_input=tuple(example), input=shapes)
    if len(model.inputs) != len(names):
        raise ValueError(f"{len(names)} inputs have become {len(model.inputs)}")
    wanted = {
        "INFERENCE_PRECISION_HINT": "bf16" if half else "f32",
        "NUM_STREAMS": threads,
        "INFERENCE_NUM_THREADS": threads,
        "ENABLE_CPU_PINNING": False,  # several processes would all be put on the first cores
    }
    compiled = _core().compile_model(model, "CPU", wanted)
    return _Requests(compiled, compiled.get_property("INFERENCE_PRECISION_HINT") == openvino.Type.bf16, threads)


@cache
def _core() -> Any:
    """The package's runtime, one for as long as the process lives.

    Each one gives the thread that first compiles with it a stack for signals, and takes it away at its end, whoever
    has come since: after two of them, Ctrl-C would be handled on memory that is no longer there.
    """
    import openvino

    return openvino.Core()


class _Requests:
    """A compiled model with as many requests as threads may run it."""

    def __init__(self, compiled: Any, half: bool, threads: int) -> None:
        self.half = half
        self._free: SimpleQueue[Any] = SimpleQueue()
        for _ in range(threads):
            self._free.put(compiled.create_infer_request())

    def __call__(self, arrays: Sequence[Array]) -> Array:
        request = self._free.get()
        try:
            request.start_async(list(arrays), share_inputs=True)
            request.wait()
            return np.array(request.get_output_tensor(0).data)
        finally:
            self._free.put(request)


@contextmanager
def _untold() -> Iterator[None]:
    """Import the package as if its telemetry were not installed: it would report the import to its makers."""
    before = sys.modules.get(_TELEMETRY, _TELEMETRY)
    if before == _TELEMETRY:
        sys.modules[_TELEMETRY] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if before == _TELEMETRY:
            sys.modules.pop(_TELEMETRY, None)
