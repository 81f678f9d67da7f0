"""What all neural rankers share: folders, identity, batches, passages, devices, failures, the command line."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
import threading
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whyrank
from whyrank.core import BadInput, Processes, WhyrankError
from whyrank.data import Collection
from whyrank.rankers import open_ranker
from whyrank.rankers.neural import Computing, by_length, model_folder
from whyrank.rankers.neural.computing import has_bfloat16, ignore_mask_values
from whyrank.rankers.neural.passages import Passages, TextPairs, windows
from whyrank.rankers.neural.scorer import ahead
from whyrank.scoring import Engine
from whyrank.testing import RankerContract
from whyrank.testing.examples import PAIRS

WORDS = ["the", "a", "of", "is", "was", "who", "what", "berlin", "wall", "fell", "robert", "gray", "explorer"]
QUERIES, DOCS = (list(texts) for texts in zip(*PAIRS, strict=True))


@pytest.fixture
def copy(models, tmp_path):
    """A cross-encoder that may be spoilt."""
    return shutil.copytree(models.folder("cross"), tmp_path / "copy")


def spoil(folder, change):
    """Write the weights anew after a change."""
    from safetensors.torch import load_file, save_file

    state = load_file(folder / "model.safetensors")
    change(state)
    save_file(state, folder / "model.safetensors", {"format": "pt"})


# Folders


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ("/nowhere/at/all", "/nowhere/at/all: there is no such model folder; give a model folder, or a hub id"),
        ("nosuch", "nosuch: there is no such model folder"),
        ("no-org/no-model", r"no-org/no-model: is no folder here, and the hub does not give a model of this name \(.+\); check"),
        (__file__, "is a file, not a model folder"),
    ],
)  # fmt: skip
def test_resources_that_are_not_there(resource, message):
    with pytest.raises(BadInput, match=message) as caught:
        open_ranker(f"bi:{resource}").score(["q"], ["d"])
    assert "\n" not in str(caught.value)
    with pytest.raises(BadInput, match=message):
        repr(open_ranker(f"cross:{resource}"))


def test_a_hub_id_is_a_folder_that_was_fetched(monkeypatch, models):
    request = {}
    fetch = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(
        fetch, "snapshot_download", lambda *a, **k: request.update(k, id=a[0]) or str(models.folder("cross"))
    )
    assert model_folder("org/model@v2") == models.folder("cross")
    assert (request["id"], request["revision"]) == ("org/model", "v2")
    found = open_ranker("cross:org/model").score(QUERIES, DOCS)
    assert np.array_equal(found, open_ranker(f"cross:{models.folder('cross')}").score(QUERIES, DOCS))


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_broken_files_are_one_line(copy, file):
    (copy / file).write_text("{")
    with pytest.raises(WhyrankError) as caught:
        open_ranker(f"cross:{copy}").score(["q"], ["d"])
    assert str(copy) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["bi", "t5"])
def test_weights_that_are_missing_are_not_made_up(models, tmp_path, kind):
    folder = shutil.copytree(models.folder(kind), tmp_path / "copy")
    spoil(folder, lambda state: state.pop(next(name for name in state if ".1." in name)))
    with pytest.raises(BadInput, match=rf"lacks weights \(\S+\.1\.\S+\); give a whole model that {kind}: reads"):
        open_ranker(f"{kind}:{folder}").score(["q"], ["d"])


def test_loading_leaves_no_trace(models, capfd):
    from transformers.utils import logging as messages

    logger = logging.getLogger("transformers")
    before = logger.handlers, logger.level, logger.propagate, messages.is_progress_bar_enabled()
    specs = [f"bi:{models.folder('bi')}", f"bi:{models.folder('plain')}", f"cross:{models.folder('cross')}"]
    capfd.readouterr()
    for spec in specs:
        open_ranker(spec).score(["q"], ["d"])
    assert (logger.handlers, logger.level, logger.propagate, messages.is_progress_bar_enabled()) == before
    assert capfd.readouterr().err == ""


def test_neural_rankers_are_imported_without_the_packages_of_other_rooms():
    """They run wherever numpy, torch, transformers and sentence-transformers are."""
    code = (
        "import sys, whyrank.rankers.neural.pretrained, whyrank.rankers.neural.trained\n"
        "print(*({'scipy', 'numba', 'pyarrow', 'pydantic', 'nltk', 'bm25s', 'torch'} & sys.modules.keys()))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


# Identity


def test_identity_changes_with_all_that_decides_scores(copy):
    first = repr(open_ranker(f"cross:{copy}"))
    assert first == repr(open_ranker(f"cross:{copy}(device=cpu,threads=1)"))
    spoil(copy, lambda state: state["classifier.weight"].add_(0.01))
    second = repr(open_ranker(f"cross:{copy}"))
    config = copy / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"layer_norm_eps": 0.1}))
    third = repr(open_ranker(f"cross:{copy}"))
    (copy / "tokenizer.json").write_text((copy / "tokenizer.json").read_text() + " ")
    fourth = repr(open_ranker(f"cross:{copy}"))
    others = [
        repr(open_ranker(f"cross:{copy}({more})")) for more in ("passages=max", "max_length=9", "truncate=last")
    ]
    assert len({first, second, third, fourth, *others}) == 7
    (copy / "README.md").write_text("Scores do not depend on this.")
    assert repr(open_ranker(f"cross:{copy}")) == fourth


# Batches


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 120))
def test_batches_have_each_row_once_within_the_budget(lengths, tokens):
    batches = [rows.tolist() for rows in by_length(np.array(lengths, np.int64), tokens)]
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    sizes = [len(rows) * max(lengths[row] for row in rows) for rows in batches]
    assert all(size <= tokens or len(rows) == 1 for size, rows in zip(sizes, batches, strict=True))
    assert [lengths[row] for rows in batches for row in rows] == sorted(lengths, reverse=True)


def test_items_are_made_one_ahead_in_a_thread():
    made, own = [], threading.get_ident()
    items = (made.append((i, threading.get_ident())) or i for i in range(5))
    found = []
    for item in ahead(items):
        found.append(item)
        assert len(made) <= item + 2
    assert found == list(range(5))
    assert own not in {thread for _, thread in made}
    with pytest.raises(ZeroDivisionError):
        list(ahead(1 // (2 - i) for i in range(5)))


@pytest.mark.parametrize("kind", ["cross", "bi", "t5"])
@pytest.mark.parametrize("tokens", [1, 70, 10_000])
def test_the_size_of_inner_batches_does_not_matter(models, monkeypatch, kind, tokens):
    folder = models.folder(kind)
    expected = open_ranker(f"{kind}:{folder}").score(QUERIES, DOCS)
    monkeypatch.setattr(Computing, "tokens", tokens)
    assert np.allclose(open_ranker(f"{kind}:{folder}").score(QUERIES, DOCS), expected, rtol=1e-5, atol=1e-5)


def test_half_surrogate_pairs_are_texts_too(models):
    for kind in ("cross", "bi", "t5"):
        found = open_ranker(f"{kind}:{models.folder(kind)}").score(["wall \ud800", "wall"], ["\udfff who", "a"])
        assert np.isfinite(found).all()


# Long texts


@given(st.text(alphabet="ab \n", max_size=60), st.integers(1, 6), st.integers(1, 6))
def test_windows_by_hand(text, first, second):
    size, stride = max(first, second), min(first, second)
    found, words = windows(text, size, stride), text.split()
    if len(words) <= size:
        assert found == [text]
        return
    starts = [0]
    while starts[-1] + size < len(words):
        starts.append(starts[-1] + stride)
    assert [window.split() for window in found] == [words[start : start + size] for start in starts]
    assert all(window in text for window in found)


@pytest.mark.parametrize("kind", ["cross", "bi"])
def test_passages(models, kind):
    folder = models.folder(kind)
    plain = open_ranker(f"{kind}:{folder}")
    by_hand = [plain.score([query] * len(cut), cut) for query, doc in PAIRS for cut in [windows(doc, 4, 3)]]
    for how, joined in (("first", lambda s: s[0]), ("max", np.max), ("mean", np.mean)):
        found = open_ranker(f"{kind}:{folder}(passages={how},window=4,stride=3)").score(QUERIES, DOCS)
        assert np.allclose(found, [joined(scores) for scores in by_hand], rtol=1e-5, atol=1e-5)


TEXTS = st.lists(st.sampled_from("abc"), max_size=12).map(" ".join)


@given(
    st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6), st.integers(1, 4), st.sampled_from(["first", "max"])
)
def test_each_distinct_window_is_scored_once_per_query(given_pairs, size, how):
    pairs = TextPairs.of(*zip(*given_pairs, strict=True))
    cut = Passages.of(pairs, how, size, 1)
    texts = [(cut.pairs.queries[q], cut.pairs.docs[d]) for q, d in zip(cut.pairs.query, cut.pairs.doc, strict=True)]
    needed = [
        [(q, window) for window in windows(d, size, 1)][: 1 if how == "first" else None] for q, d in given_pairs
    ]
    assert len(texts) == len(set(texts))
    assert set(texts) == {pair for each in needed for pair in each}
    score = {pair: float(number) for number, pair in enumerate(sorted(set(texts)))}
    found = cut.combine(np.array([score[pair] for pair in texts]), how)
    assert found.tolist() == [max(score[pair] for pair in each) for each in needed]


# Devices and number formats


@pytest.mark.parametrize("kind", ["cross", "bi", "t5", "sparse", "late"])
def test_fast_is_close_and_says_what_was_used(models, kind):
    folder = models.folder("colbert" if kind == "late" else kind)
    exact, fast = (open_ranker(f"{kind}:{folder}(precision={p},device=cpu)") for p in ("exact", "fast"))
    found, expected = fast.score(QUERIES, DOCS), exact.score(QUERIES, DOCS)
    assert np.corrcoef(found, expected)[0, 1] > 0.98
    assert kind != "cross" or np.allclose(found, expected, atol=0.2)
    assert f"numbers={'bf16' if has_bfloat16('cpu') else 'fp32'}" in repr(fast)
    assert "numbers=fp32" in repr(exact)


def test_without_bfloat16_fast_is_exact(models, monkeypatch, caplog):
    monkeypatch.setattr("whyrank.rankers.neural.computing.has_bfloat16", lambda device: False)
    folder = models.folder("cross")
    with caplog.at_level(logging.WARNING):
        fast = open_ranker(f"cross:{folder}(precision=fast,device=cpu,backend=torch)")
        assert np.array_equal(fast.score(QUERIES, DOCS), open_ranker(f"cross:{folder}").score(QUERIES, DOCS))
    assert "cpu has no bfloat16 arithmetic here: precision=fast computes in fp32" in caplog.text
    assert "numbers=fp32" in repr(fast)


REFUSED = {
    "bi:x(precision=half)": "unknown value of bi: precision 'half'; known: exact, fast",
    "bi:x(backend=tensorrt)": "backend", "bi:x(truncate=middle)": "truncate", "bi:x(passages=best)": "passages",
    "bi:x(similarity=cos)": "did you mean 'cosine'", "bi:x(prefix=x)": "unknown argument of ranker 'bi' 'prefix'",
    "bi:x(window=0)": "window must be a whole number, 1 or more, not 0", "bi:x(stride=1.5)": "stride must be",
    "bi:x(window=10,stride=11)": "skips words between windows", "bi:x(threads=0)": "threads must be",
    "bi:x(max_length=1)": "max_length must be", "bi:x(device=0)": "device must be text, not 0; write it in quotes",
    "bi:x(query_prefix=3)": "query_prefix must be text", "cross:x(activation=tanh)": "activation",
    "cross:x(output=-1)": "output must be", "cross:x(max_length=2)": "max_length must be",
    "t5:x(max_length=3)": "16 or more, not 3", "vanilla:x(truncate=last)": "unknown value of vanilla: truncate 'last'",
}  # fmt: skip


@pytest.mark.parametrize("spec", REFUSED)
def test_arguments_that_cannot_be_meant(spec):
    with pytest.raises(WhyrankError, match=REFUSED[spec]):
        open_ranker(spec)


# What a folder must hold: what the line says, and what is done to a copy of the folder.

SPOILT = {
    "is not in safetensors form": lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"),
    "has no weights in safetensors form": lambda f: (f / "model.safetensors").unlink(),
    "has no tokenizer; copy the tokenizer.json": lambda f: (f / "tokenizer.json").unlink(),
}


@pytest.mark.parametrize("message", SPOILT)
def test_a_folder_that_is_not_whole(copy, message):
    SPOILT[message](copy)
    with pytest.raises(BadInput, match=message):
        open_ranker(f"cross:{copy}").score(["q"], ["d"])


@pytest.mark.parametrize(("spec", "folder", "message"), [
    ("bi", ("sparse",), r"is no trained SentenceTransformer \(it says SparseEncoder\)"),
    ("bi", ("cross",), r"is a cross-encoder \(BertForSequenceClassification\), not a bi-encoder; write cross:PATH"),
    ("bi", ("network",), "is a network of architecture cross, not a bi-encoder; write cross:PATH"),
    ("bi", ("xlmr",), "cross"),
    ("late", ("plain",), r"is no trained \w+Encoder \(it says BertModel\)"),
    ("sparse", ("plain",), r"is no trained \w+Encoder \(it says BertModel\)"),
    ("sparse", ("bi",), r"is no trained \w+Encoder \(it says SentenceTransformer\)"),
    ("vanilla", ("cross",), "holds no network that was trained here; give a folder that `whyrank train`"),
    ("cross", ("plain",), r"lacks weights \(classifier"),
    ("cross", ("cross", 3), "the model has 3 outputs; give a model with one or two"),
    ("cross(output=1)", ("cross",), "has 1 outputs, so there is no output 1"),
    ("cross", ("network", "vanilla"), "is a network of architecture vanilla, not cross; write vanilla:PATH"),
    ("t5(true=▁yes)", ("t5",), "the tokenizer has no token '▁yes'; name one that it has"),
    ("t5(true=wall,false=the)", ("cross",), "cannot be loaded"),
    ("bi(max_length=65)", ("bi",), "reads 64 tokens at most, and max_length is 65; give max_length=64 or less"),
    ("cross(max_length=65)", ("cross",), "reads 64 tokens at most, and max_length is 65; give max_length=64 or less"),
    ("cross(max_length=65)", ("roberta",), "reads 64 tokens at most"),  # two more rows are not for tokens
    ("t5", ("bart",), "reads 64 tokens at most, and max_length is 512; give max_length=64 or less"),
])  # fmt: skip
def test_models_that_a_ranker_cannot_read(models, spec, folder, message):
    name, _, arguments = spec.partition("(")
    path = models.folder(*folder)
    with pytest.raises(BadInput, match=message):
        open_ranker(f"{name}:{path}" + (f"({arguments}" if arguments else "")).score(["q"], ["d"])
    if "max_length=65" in spec or folder == ("bart",):
        found = open_ranker(f"{name}:{path}(max_length=64)").score(["who is " * 40], ["the wall " * 500])
        assert np.isfinite(found).all()


@pytest.mark.parametrize("kind", ["cross", "bi"])
def test_the_last_tokens_are_read_where_that_is_requested(models, kind):
    docs = ["the " * 100 + "berlin wall", "the " * 200 + "berlin wall"]
    last, first = (
        open_ranker(f"{kind}:{models.folder(kind)}(truncate={end})").score(["who"] * 2, docs)
        for end in ("last", "first")
    )
    assert last[0] == pytest.approx(last[1], abs=1e-5)
    assert abs(last[0] - first[0]) > 1e-5


# Contracts

KINDS = {
    "cross": ("cross", "cross", ""), "network": ("cross", "network", ""), "bi": ("bi", "bi", ""), "t5": ("t5", "t5", ""),
    "sparse encoder": ("sparse", "sparse", ""), "colbert": ("late", "colbert", ""), "knrm": ("knrm", "words", ""),
    **{name: (name, "network", "") for name in ("vanilla", "cedr-knrm", "epic", "late")},
}  # fmt: skip
CONTRACTS = KINDS | {
    "passages": ("cross", "cross", "(passages=max,window=20,stride=7,activation=sigmoid,max_length=40)"),
    "prefixes": ("bi", "bi", "(similarity=dot,query_prefix='who is ',doc_prefix='x ',passages=mean,window=9,stride=9)"),
    "windows": ("late", "colbert", "(passages=max,window=6,stride=3)"), "conv-knrm": ("conv-knrm", "words", ""),
    "neural-model1": ("neural-model1", "tokens", ""), "bert-model1": ("bert-model1", "network", ""),
    "sparse": ("sparse", "network", ""),
}  # fmt: skip


def tiny(models, kind):
    name, function, arguments = CONTRACTS[kind]
    own = (name,) if function in ("words", "tokens", "network") and name != "cross" else ()
    return f"{name}:{models.folder(function, *own)}{arguments}"


class TestNeuralRankers(RankerContract):
    @pytest.fixture(autouse=True, params=[name for name in CONTRACTS if name not in ("knrm", "colbert")])
    def _spec(self, request, models):
        self.spec = tiny(models, request.param)
        self.tolerance = 1e-5 if self.spec.partition(":")[0] in ("cross", "bi", "t5") else 1e-4

    def make(self):
        return open_ranker(self.spec)


@pytest.mark.parametrize("name", [*KINDS, "qwen3"])
def test_neither_order_nor_chunks_nor_batches_matter(models, monkeypatch, name):
    spec = f"cross:{models.folder('qwen3')}" if name == "qwen3" else tiny(models, name)
    expected, random = dict(zip(PAIRS, open_ranker(spec).score(QUERIES, DOCS).tolist(), strict=True)), Random(0)
    for tokens, chunk, size in ((1, 1, 7), (90, 3, 50), (400, 16, 11), (10_000, 64, 50)):
        monkeypatch.setattr(Computing, "tokens", tokens)
        monkeypatch.setattr(Computing, "chunk", chunk)
        monkeypatch.setattr(Computing, "texts", 2 * chunk)
        ranker, pairs = open_ranker(spec), random.sample(PAIRS, len(PAIRS))
        calls = [pairs[start : start + size] for start in range(0, len(pairs), size)]
        found = np.concatenate([ranker.score(*zip(*call, strict=True)) for call in calls])
        assert np.allclose(found, [expected[pair] for pair in pairs], rtol=0, atol=1e-4)


# GPUs, as far as they can be tried without one


@pytest.mark.parametrize("kind", ["cross", "xlmr", "modernbert", "qwen3", "t5", "bi", "sparse", "colbert"])
def test_nothing_looks_at_what_is_on_a_gpu(models, kind):
    """Tensors without values raise an error wherever a value is looked at, for which a GPU would have to be awaited."""
    import torch
    from transformers import PreTrainedModel

    name = {"t5": "t5", "bi": "bi", "sparse": "sparse", "colbert": "late"}.get(kind, "cross")
    expected = open_ranker(f"{name}:{models.folder(kind)}").score(QUERIES, DOCS)
    ranker = open_ranker(f"{name}:{models.folder(kind)}")
    reader = ranker._scorer.reader
    ignore_mask_values(next(each for each in reader.module.modules() if isinstance(each, PreTrainedModel)))
    assert np.allclose(ranker.score(QUERIES, DOCS), expected, rtol=1e-5, atol=1e-5)
    side = "document" if reader.apart else "pair"
    pairs = TextPairs.alone(DOCS[:3]) if reader.apart else TextPairs.of(QUERIES[:3], DOCS[:3])
    batch = reader.prepare(pairs, side, Computing("cpu"), {})(np.arange(2)).batch(np.arange(2))
    reader.module.to("meta")
    with torch.inference_mode():
        reader({name: tensor.to("meta") for name, tensor in batch.items()}, side)


def test_each_worker_has_a_gpu_of_its_own(models, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    ranker = open_ranker(f"cross:{models.folder('cross')}")
    assert (ranker.workers, ranker._computing.device, ranker.batch_size) == (3, "cuda", 16_384)
    assert [Processes()._size(ranker), Processes(2)._size(ranker)] == [3, 2]
    assert open_ranker(f"cross:{models.folder('cross')}(device=cpu)").workers is None
    devices = []
    for number in (1, 2, 3, 4):
        monkeypatch.setattr("whyrank.rankers.neural.computing.worker_number", lambda number=number: number)
        devices.append(Computing.of(None, "exact").device)
    assert devices == ["cuda:1", "cuda:2", "cuda:0", "cuda:1"]


def test_batches_fit_into_free_memory(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (24 * 10**6, 10**9))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 3 * 10**6)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 3 * 10**6)
    assert Computing("cuda").fitting(torch.nn.Linear(40, 60)) == 10_001  # 12 MB, three times 100 numbers of 4 bytes
    assert Computing("cuda").fitting(torch.nn.Linear(40, 9960)) == 101


# Ties


@pytest.mark.parametrize("name", KINDS)
def test_inputs_that_are_equal_once_they_are_cut_have_one_score(models, name):
    """Three texts that differ behind what a model reads, in calls of one and among others of any length."""
    ranker, query = open_ranker(tiny(models, name)), "who was robert gray"
    start = " ".join(WORDS[i % len(WORDS)] for i in range(4000))
    cut = [f"{start} {end}" for end in ("", "wall", "the wall fell")]
    others = [" ".join(WORDS[: i % len(WORDS)]) for i in range(40)]
    calls = [cut, [cut[1], *others], [*others, cut[2]]]
    found = [ranker.score([query] * len(docs), docs) for docs in calls]
    assert {*found[0], found[1][0], found[2][-1]} == {found[0][0]}


@pytest.mark.parametrize("name", KINDS)
def test_the_tie_tolerance_covers_what_a_batch_does_to_scores(models, name):
    spec = tiny(models, name)
    ranker = open_ranker(spec)
    together = open_ranker(spec).score(QUERIES, DOCS)
    alone = [open_ranker(spec).score([q], [d])[0] for q, d in PAIRS[::5]]
    assert np.abs(together[::5] - alone).max() <= ranker.tie_tolerance
    assert 0 < ranker.tie_tolerance < 1e-3 * np.abs(together).max()


@pytest.mark.parametrize("size", [None, 1])
def test_findings_do_not_depend_on_the_batch_size(models, size):
    """Both texts of each question are the same to the model, which reads 64 tokens."""
    random = Random(0)
    docs = {f"d{i}": " ".join(random.choices(WORDS, k=random.randint(70, 120))) for i in range(30)}
    judged = {"q": dict.fromkeys(docs, 0), "p": dict.fromkeys(docs, 1)}
    collection = Collection.of(docs, {"q": "who is gray", "p": "berlin wall"}, judged)
    ranker = open_ranker(f"cross:{models.folder('cross')}")
    [finding] = whyrank.audit(ranker, collection, "axiom/LNC2", engine=Engine(batch_size=size), analyzer="whitespace")
    assert (finding.n, finding.neutral, finding.satisfied) == (60, 60, 1.0)
    assert finding.delta == ranker.tie_tolerance
