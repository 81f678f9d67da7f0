"""Back ends besides torch: a model is traced once and compiled for batches of any shape, then several threads run it.

A back end is a function here, `compile(module, example, names, half, threads)`. What it compiled must give the scores
that torch gives on another batch; else, and whenever anything goes wrong on the way, torch computes and a warning
says why. All dimensions of the inputs may vary.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from whyrank.rankers.neural.computing import HEAD, Computing
from whyrank.rankers.neural.passages import TextPairs

if TYPE_CHECKING:
    from torch import Tensor, nn

    from whyrank.rankers.neural.scorer import Reader, Side

K = TypeVar("K")
Array = npt.NDArray[Any]
_TELEMETRY = "openvino_telemetry"
_OPSET = 17  # of ONNX
_NEAR = {False: 1e-3, True: 0.5}  # in bf16 a score may be off by that much and the model is still the same
_LONG = "ice and snow " * 180  # more than most models read at once
_EXAMPLES = (
    (("what is ice", "snow"), ("Ice is water that froze.", "White, cold and light, it falls in winter.")),
    (("why", "where do glaciers come from", "ice"), (_LONG, "From snow that is pressed together.", "?")),
)


@dataclass(frozen=True, eq=False)
class Compiled:
    """A compiled model with the names of its inputs, run by several threads, each with a batch of its own."""

    program: Callable[[Sequence[Array]], Array]
    names: tuple[str, ...]
    threads: int
    half: bool = False

    def one(self, arrays: Mapping[str, Array]) -> Array:
        """What the model gives for one batch."""
        return self.program([np.ascontiguousarray(arrays[name]) for name in self.names])

    def each(self, batches: Iterator[tuple[K, Mapping[str, Array]]]) -> Iterator[tuple[K, Array]]:
        """What the model gives for each batch, in their order; few are drawn ahead."""
        with ThreadPoolExecutor(self.threads) as pool:
            running: deque[Any] = deque()
            for key, arrays in batches:
                running.append((key, pool.submit(self.one, arrays)))
                if len(running) > 2 * self.threads:
                    first, done = running.popleft()
                    yield first, done.result()
            yield from ((first, done.result()) for first, done in running)


def compile_reader(reader: Reader, computing: Computing) -> Compiled:
    """The model of a reader by another back end than torch; an error where that does not give what torch gives.

    The model is traced with one batch and tried on others.
    """
    import torch
    from torch import nn

    sides: tuple[Side, ...] = ("query", "document") if reader.apart else ("pair",)
    batches = []
    for texts in _EXAMPLES:
        pairs = TextPairs.of(*texts)
        every = np.arange(len(pairs.doc))
        batches += [(reader.prepare(pairs, side, computing, {})(every).batch(every), side) for side in sides]
    (first, first_side), *others = batches
    names, threads = tuple(first), torch.get_num_threads()

    class Positional(nn.Module):
        """Takes its inputs by position, as tracers want it."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = reader.module

        def forward(self, *given: Any) -> Any:
            return reader(dict(zip(names, given, strict=True)), first_side)

    example = list(first.values())
    heard = logging.getLogger("sentence_transformers")
    level = heard.level
    heard.setLevel(logging.ERROR)  # a tracer reads every property of a model, also those that warn of their age
    try:
        with torch.inference_mode(), warnings.catch_warnings(), _exact_heads(reader.module, computing.half):
            warnings.simplefilter("ignore")  # tracers warn of every branch that they do not follow
            made = COMPILERS[computing.backend](Positional().eval(), example, names, computing.half, threads)
    finally:
        heard.setLevel(level)
    for arrays, side in others:
        with torch.inference_mode():
            expected = reader(arrays, side).float().numpy()
        given = made.one({name: each.numpy() for name, each in arrays.items()})
        if given.shape != expected.shape:
            raise ValueError(f"its outputs have the shape {given.shape} and not {expected.shape}")
        gap, size = (float(np.linalg.norm(each)) for each in (given - expected, expected))
        if not gap <= _NEAR[made.half] * max(size, 1.0):
            raise ValueError(f"its outputs differ by {gap:.3g} from those of torch")
    return made


@contextmanager
def _exact_heads(module: Any, half: bool) -> Iterator[None]:
    """While a module is traced: layers that give scores as sums of products, which back ends leave in fp32."""
    from torch import nn

    linear = [layer for layer in module.modules() if isinstance(layer, nn.Linear)] if half else []
    heads: list[Any] = [layer for layer in linear if layer.out_features <= HEAD]
    before = [vars(head).get("forward") for head in heads]
    for head in heads:
        head.forward = partial(_sum_of_products, head)
    try:
        yield
    finally:
        for head, own in zip(heads, before, strict=True):
            del head.forward
            if own is not None:
                head.forward = own


def _sum_of_products(layer: Any, states: Any) -> Any:
    found = (states.float().unsqueeze(-2) * layer.weight).sum(-1)
    return found if layer.bias is None else found + layer.bias


def compile_openvino(
    module: nn.Module, example: Sequence[Tensor], names: Sequence[str], half: bool, threads: int
) -> Compiled:
    """OpenVINO, one stream per thread, in fp32 or bf16; the module is converted straight from memory."""
    import torch

    with _without_telemetry():
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
    free: SimpleQueue[Any] = SimpleQueue()  # as many requests as threads may run it
    for _ in range(threads):
        free.put(compiled.create_infer_request())

    def run(arrays: Sequence[Array]) -> Array:
        request = free.get()
        try:
            request.start_async(list(arrays), share_inputs=True)
            request.wait()
            return np.array(request.get_output_tensor(0).data)
        finally:
            free.put(request)

    used = compiled.get_property("INFERENCE_PRECISION_HINT")
    return Compiled(run, tuple(names), threads, used == openvino.Type.bf16)


@cache
def _core() -> Any:
    """The package's runtime, one for as long as the process lives.

    Each one gives the thread that first compiles with it a stack for signals, and takes it away at its end, whoever
    has come since: after two of them, Ctrl-C would be handled on memory that is no longer there.
    """
    import openvino

    return openvino.Core()


@contextmanager
def _without_telemetry() -> Iterator[None]:
    """Import the package as if its telemetry were not installed: it would report the import to its makers."""
    before = sys.modules.get(_TELEMETRY, _TELEMETRY)
    if before == _TELEMETRY:
        sys.modules[_TELEMETRY] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if before == _TELEMETRY:
            sys.modules.pop(_TELEMETRY, None)


def compile_onnx(
    module: nn.Module, example: Sequence[Tensor], names: Sequence[str], half: bool, threads: int
) -> Compiled:
    """ONNX Runtime, each thread with a batch of its own, by way of a temporary file; fp32, whatever `half` says."""
    import onnxruntime
    import torch

    axes = {name: {i: f"{name}{i}" for i in range(t.ndim)} for name, t in zip(names, example, strict=True)}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # threads are ours
    options.log_severity_level = 3
    with TemporaryDirectory(prefix="whyrank-") as folder:
        file = Path(folder) / "model.onnx"
        torch.onnx.export(
            module, tuple(example), file, dynamo=False, input_names=list(names), output_names=["found"],
            dynamic_axes=axes, opset_version=_OPSET,
        )  # fmt: skip
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    own = {given.name for given in session.get_inputs()}  # without inputs that the model does not read

    def run(arrays: Sequence[Array]) -> Array:
        given = {name: array for name, array in zip(names, arrays, strict=True) if name in own}
        return np.asarray(session.run(None, given)[0])

    return Compiled(run, tuple(names), threads)


COMPILERS: dict[str, Callable[..., Compiled]] = {"openvino": compile_openvino, "onnx": compile_onnx}
