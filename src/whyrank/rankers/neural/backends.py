"""Back ends besides torch: a model is traced once and compiled for batches of any shape, then several threads run it.

A back end is a function here, `compile(module, example, names, half, threads)`, which gives a `Program`. What it
compiled must give the scores that torch gives on another batch; else, and whenever anything goes wrong on the way,
torch computes and a warning says why.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from whyrank.rankers.neural.computing import HEAD, Computing

if TYPE_CHECKING:
    from torch import Tensor, nn

K = TypeVar("K")
Array = npt.NDArray[Any]
_TELEMETRY = "openvino_telemetry"
_OPSET = 17  # of ONNX
_NEAR = {False: 1e-3, True: 0.5}  # in bf16 a score may be off by that much and the model is still the same
log = logging.getLogger(__name__)


class Program(Protocol):
    """A compiled model; several threads may call it at once."""

    half: bool

    def __call__(self, arrays: Sequence[Array]) -> Array:
        """What the model gives for a batch."""
        ...


class Test(NamedTuple):
    """A batch, and what torch gives for it."""

    arrays: Mapping[str, Array]
    expected: Callable[[], Tensor]


class Traceable(NamedTuple):
    """A model as a back end needs it.

    Attributes:
        module: where its weights are.
        call: what gives its outputs for a batch of named tensors.
        example: the batch that it is traced with.
        tests: batches of other shapes.
    """

    module: Any
    call: Callable[[dict[str, Any]], Tensor]
    example: Mapping[str, Array]
    tests: Sequence[Test]


@dataclass(frozen=True, eq=False)
class Compiled:
    """A program with the names of its inputs, run by several threads, each with a batch of its own."""

    program: Program
    names: tuple[str, ...]
    threads: int

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


def taken_over(name: str, model: Traceable, computing: Computing) -> tuple[Computing, Compiled | None]:
    """How a model computes, and its compiled form where that is not by torch; `name` is for the warning."""
    if computing.backend == "torch":
        return computing, None
    try:
        found = _compiled(model, computing)
    except Exception as error:  # packages raise errors of any kind for a model that they cannot take
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        log.warning("%s: %s cannot take this model (%s); torch computes", name, computing.backend, reason)
        own = computing.by_torch
        own.placed(model.module)
        return own, None
    return replace(computing, half=found.program.half), found


def _compiled(model: Traceable, computing: Computing) -> Compiled:
    import torch

    names, threads = tuple(model.example), torch.get_num_threads()
    compile_model = COMPILERS[computing.backend]
    example = [torch.from_numpy(np.ascontiguousarray(array)) for array in model.example.values()]
    exact = _exact_heads(model.module if computing.half else None)
    heard = logging.getLogger("sentence_transformers")
    level = heard.level
    heard.setLevel(logging.ERROR)  # a tracer reads every property of a model, also those that warn of their age
    try:
        with torch.inference_mode(), warnings.catch_warnings(), exact:
            warnings.simplefilter("ignore")  # tracers warn of every branch that they do not follow
            program = compile_model(_traced(model, names), example, names, computing.half, threads)
    finally:
        heard.setLevel(level)
    found = Compiled(program, names, threads)
    for test in model.tests:
        _check(found, test)
    return found


def _check(found: Compiled, test: Test) -> None:
    """Raise an error where the back end gives another result than torch."""
    import torch

    with torch.inference_mode():
        expected = test.expected().float().numpy()
    given = found.one(test.arrays)
    if given.shape != expected.shape:
        raise ValueError(f"its outputs have the shape {given.shape} and not {expected.shape}")
    gap, size = (float(np.linalg.norm(each)) for each in (given - expected, expected))
    if not gap <= _NEAR[found.program.half] * max(size, 1.0):
        raise ValueError(f"its outputs differ by {gap:.3g} from those of torch")


def _traced(model: Traceable, names: Sequence[str]) -> nn.Module:
    """A module that takes its inputs by position, as tracers want it."""
    from torch import nn

    class Positional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model.module

        def forward(self, *given: Any) -> Any:
            return model.call(dict(zip(names, given, strict=True)))

    return Positional().eval()


@contextmanager
def _exact_heads(module: Any) -> Iterator[None]:
    """While a module is traced: layers that give scores as sums of products, which back ends leave in fp32."""
    from torch import nn

    linear = (m for m in module.modules() if isinstance(m, nn.Linear)) if module is not None else ()
    heads: list[Any] = [layer for layer in linear if layer.out_features <= HEAD]
    before = [vars(head).get("forward") for head in heads]
    for head in heads:
        head.forward = _summed(head)
    try:
        yield
    finally:
        for head, own in zip(heads, before, strict=True):
            del head.forward
            if own is not None:
                head.forward = own


def _summed(layer: Any) -> Callable[[Any], Any]:
    def forward(states: Any) -> Any:
        found = (states.float().unsqueeze(-2) * layer.weight).sum(-1)
        return found if layer.bias is None else found + layer.bias

    return forward


# OpenVINO: one stream per thread, in fp32 or bf16.


def compile_openvino(
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


# ONNX Runtime: fp32, each thread with a batch of its own.


def compile_onnx(
    module: nn.Module, example: Sequence[Tensor], names: Sequence[str], half: bool, threads: int
) -> Program:
    """Convert a torch module by way of a temporary file; all its dimensions may vary. Fp32, whatever `half` says."""
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
    return _Session(session, names)


class _Session:
    """A session; inputs that the model does not read are not among its own."""

    half = False

    def __init__(self, session: Any, names: Sequence[str]) -> None:
        self._session, own = session, {given.name for given in session.get_inputs()}
        self._places = {name: place for place, name in enumerate(names) if name in own}

    def __call__(self, arrays: Sequence[Array]) -> Array:
        [found] = self._session.run(None, {name: arrays[place] for name, place in self._places.items()})
        return np.asarray(found)


COMPILERS: dict[str, Callable[..., Program]] = {"openvino": compile_openvino, "onnx": compile_onnx}
