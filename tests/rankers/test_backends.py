"""Other back ends than torch: the same scores, or torch computes; who computed is part of the identity."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import MissingExtra, WhyrankError
from whyrank.rankers import open_ranker
from whyrank.rankers.neural import Computing
from whyrank.rankers.neural import computing as computing_module
from whyrank.rankers.neural.backends import COMPILERS, Compiled
from whyrank.rankers.neural.computing import has_bfloat16, is_installed
from whyrank.rankers.neural.passages import TextPairs
from whyrank.testing import RankerContract
from whyrank.testing.examples import PAIRS

QUERIES, DOCS = (list(texts) for texts in zip(*PAIRS, strict=True))
LONG = ["the berlin wall fell " * 40, "", "x", "robert gray"]


def need(name):
    """Skip a test where the packages of a back end are missing, without importing them."""
    pytest.importorskip("torch")
    if not is_installed(name):
        pytest.skip(f"needs the packages of {name}")


@pytest.fixture(params=["onnx", "openvino"])
def backend(request):
    need(request.param)
    return request.param


@pytest.fixture(scope="module")
def openvino():
    need("openvino")


@pytest.fixture(scope="module")
def half(openvino):
    if not has_bfloat16("cpu"):
        pytest.skip("needs bfloat16 arithmetic")


def spec_of(models, kind):
    """A tiny model of each kind that back ends compute; `vanilla` reads several chunks of a text."""
    if kind == "vanilla":
        return f"vanilla:{models.folder('network', 'vanilla', max_doc=7, chunks=3)}"
    if kind == "two outputs":
        return f"cross:{models.folder('cross', 2)}"
    return f"bi:{models.folder('bi')}" if kind == "bi" else f"cross:{models.folder(kind)}"


@cache
def opened(spec):
    """A ranker that is compiled once for all tests."""
    return open_ranker(spec)


def with_arguments(spec, **arguments):
    return f"{spec}({','.join(f'{name}={value}' for name, value in arguments.items())})"


# Scores


@pytest.mark.parametrize("kind", ["cross", "two outputs", "roberta", "network", "vanilla", "bi"])
def test_scores_are_those_of_torch(models, backend, kind):
    spec = spec_of(models, kind)
    queries, docs = [*QUERIES, "who", "berlin wall", "", "x"], [*DOCS, *LONG]
    expected = open_ranker(spec).score(queries, docs)
    ranker = opened(with_arguments(spec, backend=backend))
    assert np.allclose(ranker.score(queries, docs), expected, rtol=1e-4, atol=1e-4)
    assert f" numbers=fp32 backend={backend} model=" in repr(ranker)
    assert ranker.deviation.largest < 1e-4
    assert ranker.deviation.tau > 0.999


class TestOpenvino(RankerContract):
    tolerance = 1e-4

    @pytest.fixture(autouse=True)
    def _models(self, models, openvino):
        self.folder = models.folder("cross")

    def make(self):
        return opened(f"cross:{self.folder}(backend=openvino)")


@pytest.fixture(scope="module")
def compiled(models):
    """A scorer of a back end, with threads of its own, and the scores by torch."""
    need("openvino")
    import torch

    torch.set_num_threads(2)
    try:
        scorer = open_ranker(f"cross:{models.folder('network')}(backend=openvino)")._scorer
    finally:
        torch.set_num_threads(1)
    assert scorer.compiled.threads == 2
    return scorer, open_ranker(f"cross:{models.folder('network')}").score(QUERIES, DOCS)


@settings(max_examples=20)
@given(st.permutations(range(len(PAIRS))), st.integers(1, 400))
def test_neither_order_nor_batches_matter(compiled, order, tokens):
    scorer, expected = compiled
    pairs = TextPairs.of([QUERIES[i] for i in order], [DOCS[i] for i in order])
    assert np.allclose(replace(scorer, tokens=tokens)(pairs), expected[list(order)], rtol=1e-4, atol=1e-4)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 99), max_size=40), st.integers(1, 4))
def test_batches_come_back_in_their_order_with_few_drawn_ahead(numbers, threads):
    drawn = []
    batches = ((i, {"x": drawn.append(i) or np.array([n])}) for i, n in enumerate(numbers))
    found = []
    for key, doubled in Compiled(lambda arrays: arrays[0] * 2, ("x",), threads).each(batches):
        found.append((key, doubled.tolist()))
        assert len(drawn) - len(found) <= 2 * threads
    assert found == [(i, [2 * n]) for i, n in enumerate(numbers)]


# bfloat16


@pytest.mark.parametrize("kind", ["cross", "network", "vanilla", "bi"])
def test_fast_is_close(models, half, kind):
    spec = spec_of(models, kind)
    fast, exact = opened(with_arguments(spec, precision="fast")), open_ranker(spec)
    found, expected = fast.score(QUERIES, DOCS), exact.score(QUERIES, DOCS)
    assert np.corrcoef(found, expected)[0, 1] > 0.98
    assert not np.allclose(found, expected, atol=1e-6)
    assert " numbers=bf16 backend=openvino model=" in repr(fast)


@pytest.mark.parametrize("kind", ["cross", "two outputs", "network", "vanilla"])
def test_the_layer_that_gives_scores_is_exact(models, half, kind):
    import torch

    found = opened(with_arguments(spec_of(models, kind), precision="fast")).score(QUERIES, DOCS)
    assert (found != torch.from_numpy(found).bfloat16().double().numpy()).mean() > 0.5


# Which one computes


@pytest.mark.parametrize(
    ("precision", "there", "bf16", "expected"),
    [
        ("exact", ["openvino", "onnx"], True, Computing("cpu")),
        ("fast", ["openvino", "onnx"], True, Computing("cpu", True, "openvino")),
        ("fast", ["onnx"], True, Computing("cpu", True)),
        ("fast", ["openvino", "onnx"], False, Computing("cpu", False, "openvino")),
        ("fast", ["onnx"], False, Computing("cpu", False, "onnx")),
        ("fast", [], False, Computing("cpu")),
    ],
)
def test_what_auto_takes(monkeypatch, precision, there, bf16, expected):
    pytest.importorskip("torch")
    monkeypatch.setattr(computing_module, "is_installed", lambda name: name in there)
    monkeypatch.setattr(computing_module, "has_bfloat16", lambda device: bf16)
    assert Computing.of("cpu", precision, "auto") == expected


def test_a_back_end_computes_on_the_cpu_only():
    pytest.importorskip("torch")
    with pytest.raises(WhyrankError, match="backend=openvino computes on the CPU, not on cuda; leave out the device"):
        Computing.of("cuda", "fast", "openvino")
    assert Computing.of(None, "exact", "onnx").device == "cpu"


def test_a_back_end_that_is_not_installed(models, monkeypatch):
    monkeypatch.setattr("whyrank.rankers.neural.base.is_installed", lambda name: name == "torch")
    with pytest.raises(
        MissingExtra, match=r"needs an optional dependency; install it with: pip install 'whyrank\[fast"
    ):
        open_ranker(f"cross:{models.folder('cross')}(backend=openvino)").score(["q"], ["d"])


def test_other_kinds_of_rankers_are_left_to_torch(models, caplog):
    ranker = open_ranker(f"t5:{models.folder('t5')}(backend=onnx)")
    assert np.array_equal(ranker.score(QUERIES, DOCS), open_ranker(f"t5:{models.folder('t5')}").score(QUERIES, DOCS))
    assert [r.getMessage().partition("): ")[2] for r in caplog.records] == [
        "backend=onnx is not for this kind of ranker; torch computes"
    ]
    assert "backend" not in repr(ranker)


# Falling back


def wrong(module, example, names, *_):
    """A model that gives something else."""
    return Compiled(lambda arrays: np.full(len(arrays[0]), 7.0, np.float32), tuple(names), 1)


def refuse(*_):
    raise RuntimeError("No conversion rule found\nfor operations: aten::bogus")


@pytest.mark.parametrize(
    ("compile_model", "reason"),
    [
        (refuse, "No conversion rule found for operations: aten::bogus"),
        (wrong, "its outputs "),
    ],
)
@pytest.mark.parametrize("precision", ["exact", "fast"])
@pytest.mark.parametrize("kind", ["cross", "bi"])
def test_torch_computes_what_a_back_end_cannot(
    models, monkeypatch, caplog, openvino, compile_model, reason, precision, kind
):
    monkeypatch.setitem(COMPILERS, "openvino", compile_model)
    spec = with_arguments(spec_of(models, kind), precision=precision, device="cpu")
    expected = open_ranker(spec[:-1] + ",backend=torch)")
    ranker = open_ranker(spec[:-1] + ",backend=openvino)")
    with caplog.at_level(logging.WARNING):
        assert np.array_equal(ranker.score(QUERIES, DOCS), expected.score(QUERIES, DOCS))
        ranker.score(QUERIES, DOCS)
    warnings = [r.getMessage() for r in caplog.records if "cannot take" in r.getMessage()]
    assert len(warnings) == 1
    assert f"openvino cannot take this model ({reason}" in warnings[0]
    assert warnings[0].endswith("); torch computes")
    assert repr(ranker) == repr(expected)


# Identity and processes


@pytest.mark.slow
def test_ctrl_c_is_heard_after_rankers_were_let_go(models, openvino):
    """The first before the second: each runtime of the package would bring a stack for signals of its own."""
    code = (
        "import gc, os, signal, sys, time; from whyrank.rankers import open_ranker\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "rankers = [open_ranker(spec) for spec in sys.argv[1:]]\n"
        "print(*(ranker.score(['who'], ['berlin']).size for ranker in rankers))\n"
        "while rankers:\n"
        "    del rankers[0]\n"
        "    gc.collect()\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(20)\n"
        "except KeyboardInterrupt:\n"
        "    print('heard')\n"
    )
    specs = [with_arguments(spec_of(models, kind), backend="openvino") for kind in ("cross", "two outputs")]
    found = subprocess.run([sys.executable, "-c", code, *specs], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout.split()) == (0, ["1", "1", "heard"]), found.stderr


def test_nothing_is_told_to_the_makers_of_a_back_end(models, openvino):
    opened(f"cross:{models.folder('cross')}(backend=openvino)").score(["q"], ["d"])
    assert "openvino" in sys.modules
    assert "openvino_telemetry" not in sys.modules


@pytest.mark.slow
def test_the_bundled_model_keeps_its_order(half):
    """What `auto` takes must be worth it: the order of real candidates stays."""
    from whyrank.data import open_collection

    collection = open_collection("sample")
    pairs = [(collection.queries[q], collection.docs[d]) for q, docs in collection.runs["bm25"].items() for d in docs]
    ranker = open_ranker("cross:bundled(precision=fast)")
    ranker.score(*zip(*pairs[:300], strict=True))
    assert ranker.deviation.pairs == 256
    assert ranker.deviation.tau > 0.99
    assert ranker.deviation.largest < 0.2
