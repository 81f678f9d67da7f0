"""Pairs of terms scored fast are what the network says of each pair by itself; blocks outlive a stop."""

from __future__ import annotations

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
from torch.nn import functional

from pair_models import DOCS, QUERIES, by_the_network, parm, saved, scorer
from whyrank.core import BadInput
from whyrank.learners.parm.pairs import Blocks, PairTask, TermSequences, score_blocks
from whyrank.learners.parm.pairs import blocks as scoring
from whyrank.learners.parm.pairs.blocks import Block, block_queries
from whyrank.learners.parm.pairs.layers import Layers, is_supported, weights_of
from whyrank.learners.parm.pairs.scorer import FastScorer

torch.set_num_threads(1)
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
SHAPES = [{}, {"head": "affine"}, {"num_hidden_layers": 1}, {"hidden_act": "relu"}, {"type_vocab_size": 1}]


class PlainLayers(Layers):
    """The three kernels in plain torch: what they have to compute."""

    def attend(self, qkv, rows, length):
        taken = qkv if rows is None else qkv[rows]
        query, key, value = taken.view(-1, length, 3, self.weights.heads, self.size).unbind(2)
        return self._mixed(query, key, value).flatten(0, 1)

    def attend_first(self, query, keys, length):
        key, value = keys.view(-1, length, 2, self.weights.heads, self.size).unbind(2)
        return self._mixed(query.view(-1, 1, self.weights.heads, self.size), key, value).squeeze(1)

    def add_norm(self, states, residual, rows, norm):
        total = states + (residual if rows is None else residual[rows])
        return functional.layer_norm(total, norm.weight.shape, norm.weight, norm.bias, norm.eps)

    def _mixed(self, query, key, value):
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        shares = torch.softmax(query @ key.transpose(-1, -2) * self.size**-0.5, dim=-1)
        return (shares @ value).transpose(1, 2).flatten(-2)


class PlainScorer(FastScorer):
    """The path of a GPU with a plain function in place of the graph; it notes the shapes that are replayed."""

    shapes: set[tuple[int, int]]

    @staticmethod
    def record(body, shape, device):
        def call(rows):
            assert tuple(rows.shape) == shape
            assert rows.dtype == torch.int32
            PlainScorer.shapes.add(shape)
            return body(rows)

        return call


def on_cpu(made):
    """A scorer that goes the way of the GPU on a CPU, in single precision."""
    PlainScorer.shapes = set()
    special = made.network.tokenizer.special
    rows = 3 + sum(max(len(g.tokens) for g in side.groups.values()) for side in (made.queries, made.docs))
    layers = PlainLayers(weights_of(made.network, "cpu", torch.float32))
    made._fast = PlainScorer(layers, [special["cls"], special["sep"], special["sep"]], rows, "cpu")
    return made


def whole(made, queries, docs):
    """The weights of all terms, from grids that hold every pair once."""
    found = np.full((len(queries), len(docs)), np.nan, np.float32)
    for grid in made.grids(np.arange(len(queries))):
        where = np.ix_(grid.queries, grid.docs)
        assert np.isnan(found[where]).all()
        found[where] = grid.weights.cpu().numpy()
    assert not np.isnan(found).any()
    return found[queries.of_term][:, docs.of_term]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_weights_are_the_networks_own(shape, tmp_path):
    network = parm(tmp_path, **shape)
    expected = by_the_network(network)
    assert expected.std() > 0.05
    assert is_supported(network)
    for tokens in (1, 64, 4096) if not shape else (64,):
        made, sides = scorer(network, tokens=tokens)
        assert made.implementation == "torch"
        np.testing.assert_allclose(whole(made, *sides), expected, atol=1e-5, rtol=0)
        np.testing.assert_allclose(whole(on_cpu(made), *sides), expected, atol=1e-5, rtol=0)
        assert len({length for _, length in PlainScorer.shapes}) == len(PlainScorer.shapes)
        assert len(PlainScorer.shapes) > 3 or tokens != 64


@GPU
@pytest.mark.parametrize("width", [48, 384])
def test_the_kernels_agree_with_the_network(width, tmp_path):
    network = parm(
        tmp_path, spread=2.0, hidden_size=width, intermediate_size=4 * width, num_attention_heads=width // 16
    )
    exact, sides = scorer(network, device="cuda")
    half, _ = scorer(network, device="cuda", precision="bf16", implementation="torch", tokens=1024)
    fast, _ = scorer(network, device="cuda", precision="bf16", tokens=1024)
    assert fast.implementation == "triton"
    expected = whole(exact, *sides)
    rounding, apart = (np.abs(whole(made, *sides) - expected) for made in (half, fast))
    assert apart.max() <= 2 * rounding.max() + 2e-3
    assert apart.mean() <= 1.5 * rounding.mean() + 2e-4


INTERPRETED = """
import torch
from pair_models import parm
from pathlib import Path
from test_parm_pairs import PlainLayers
from whyrank.learners.parm.pairs.layers import Layers, weights_of

weights = weights_of(parm(Path("{folder}")), "cpu", torch.float32)
with torch.inference_mode():
    tokens, positions, kinds = (torch.randint(0, most, (40,)) for most in (28, 12, 2))
    states = weights.embed(tokens, positions, kinds)
    qkv = torch.nn.functional.linear(states, *weights.layers[0].qkv)
    for length in (5, 13, 31):
        rows = torch.randint(0, 40, (37, length), dtype=torch.int32)
        expected = PlainLayers(weights).logits(qkv, states, rows)
        torch.testing.assert_close(Layers(weights).logits(qkv, states, rows), expected, atol=1e-5, rtol=1e-5)
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="needs triton, whose kernels run without a GPU too, slowly")
def test_kernels_compute_what_torch_does(tmp_path):
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    here = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    code = f"import sys; sys.path[:0] = {here}\n" + INTERPRETED.replace("{folder}", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 30), max_size=6), min_size=1, max_size=40))
def test_groups_spell_the_sequences(rows):
    found = TermSequences.of([np.array(row, np.int32) for row in rows])
    assert len(found) == len({tuple(row) for row in rows})
    spelled = np.split(found.tokens, found.ends[1:-1])
    assert [spelled[i].tolist() for i in found.of_term] == rows
    assert found.counts.sum() == len(rows)
    for number in range(len(found)):
        group, row = found.groups[int(found.lengths[number])], found.inside[number]
        assert group.members[row] == number
        at = group.rows[row]
        assert group.tokens[at].tolist() == spelled[number].tolist()
        assert group.positions[at].tolist() == list(range(len(at)))


# blocks


def task_of(network, **given_settings) -> PairTask:
    sides = TermSequences.of(network.query_ids(QUERIES)), TermSequences.of(network.doc_ids(DOCS))
    return PairTask(*sides, **{"threshold": 0.2, "audited": (1, 5)} | given_settings)


def run(task, network, blocks, size=None, say=lambda line: None):
    score_blocks(task, scorer(network)[0], blocks, say, size)
    return blocks.entries()


def as_dict(entries):
    return {(int(q), int(d)): w for q, d, w in zip(entries.queries, entries.docs, entries.weights, strict=True)}


@pytest.mark.parametrize("size", [1, 30, 10_000])
def test_blocks_hold_what_passes_the_threshold(size, tmp_path):
    network, said = parm(tmp_path), []
    task, weights = task_of(network), by_the_network(network)
    entries = run(task, network, Blocks(tmp_path / "blocks", "mine"), size, said.append)
    found, expected = as_dict(entries), {}
    for q, d in np.argwhere(weights >= 0.2):
        expected[int(task.queries.of_term[q]), int(task.docs.of_term[d])] = weights[q, d]
    assert found.keys() == expected.keys()
    assert 0 < len(found) < task.pairs
    np.testing.assert_allclose([found[key] for key in expected], list(expected.values()), atol=1e-5)
    for q in (1, 5):
        slice_ = entries.slices[int(task.queries.of_term[q])]
        np.testing.assert_allclose(slice_[task.docs.of_term], weights[q], atol=1e-5)
    assert f"{task.pairs:,} pairs in" in said[-1]
    assert entries.seconds > 0


def test_a_stopped_run_goes_on(tmp_path, monkeypatch):
    network = parm(tmp_path)
    task = task_of(network)
    expected = run(task, network, Blocks(tmp_path / "whole", "mine"), 1)
    queries, real = [], scoring.score_block

    def interrupted(task_, scorer_, some):
        if len(queries) == 3:
            queries.append(None)
            raise KeyboardInterrupt
        queries.extend(some.tolist())
        return real(task_, scorer_, some)

    monkeypatch.setattr(scoring, "score_block", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(task, network, Blocks(tmp_path / "blocks", "mine"), 1)
    again = Blocks(tmp_path / "blocks", "mine")
    assert again.done == {0, 1, 2}
    assert as_dict(run(task, network, again, 1)) == as_dict(expected)
    assert sorted(q for q in queries if q is not None) == list(range(len(task.queries)))


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2**31 - 1)), max_size=60, unique=True),
       st.integers(0, 10), st.integers(1, 6), st.integers(1, 5))  # fmt: skip
def test_files_hold_entries_to_the_bit_and_the_best_of_them(tmp_path_factory, pairs, cut, most, steps):
    def block(queries):
        own = sorted(pair for pair in pairs if pair[0] in queries)
        sizes = np.array([sum(q == one for q, _ in own) for one in queries], np.int64)
        weights = (np.arange(len(own)) % steps / 8).astype(np.float16)
        none = np.empty(0, np.int32), np.empty((0, 3), np.float16)
        return Block(np.array(queries, np.int32), sizes, np.array([d for _, d in own], np.int32), weights, *none)

    blocks, best = (Blocks(tmp_path_factory.mktemp("blocks"), "mine") for _ in range(2))
    for queries in (list(range(cut)), list(range(cut, 10))):
        if queries:
            blocks.add(block(queries))
            best.add(block(queries).best(most))
    found = as_dict(blocks.entries())
    assert list(found) == sorted(pairs)
    assert blocks.done == set(range(10))
    expected = {}
    for (q, d), weight in sorted(found.items(), key=lambda row: (row[0][0], -row[1], row[0][1])):
        if sum(q == own for own, _ in expected) < most:
            expected[q, d] = weight
    assert as_dict(best.entries()) == expected


def test_blocks_of_another_task_and_broken_ones_are_refused(tmp_path):
    network = parm(tmp_path)
    run(task_of(network), network, Blocks(tmp_path / "blocks", "mine"))
    with pytest.raises(BadInput, match="another network, vocabulary, precision or setting"):
        Blocks(tmp_path / "blocks", "yours")
    file = next((tmp_path / "blocks").iterdir())
    content = file.read_bytes()
    flipped = content[:90] + bytes([content[90] ^ 1]) + content[91:]
    for damage in (b"", b"no zip", content[: len(content) // 2], flipped):
        file.write_bytes(damage)
        with pytest.raises(BadInput, match="remove it, and it is scored again"):
            Blocks(tmp_path / "blocks", "mine")


def test_a_block_takes_half_a_minute_at_most():
    rates, docs = iter([0.0] + [365_000.0] * 3 + [3e6] * 99), 1000
    sizes = [
        len(some) * docs
        for some in block_queries(np.arange(200_000, dtype=np.int32), docs, "cuda", lambda: next(rates))
    ]
    assert sizes[0] == (1 << 26) // 8 // docs * docs
    assert sizes[1:4] == [10_950_000] * 3
    assert sizes[4] == (1 << 26) // docs * docs


BARE = """
import sys
for name in ("numba", "pyarrow", "scipy", "typer", "rich", "ir_measures", "pydantic", "bm25s"):
    sys.modules[name] = None
from pathlib import Path
from whyrank.learners.parm.pairs import Blocks, PairScorer, PairTask, TermSequences, score_blocks
from whyrank.networks import load
network = load("{network}")
sides = TermSequences.of(network.query_ids(["a", "cab"])), TermSequences.of(network.doc_ids(["b", "dice"]))
scorer = PairScorer(network, *sides)
score_blocks(PairTask(*sides), scorer, Blocks(Path("{folder}"), "x"), print)
del sys.modules["pydantic"]  # which checks recipes
from whyrank.learners.parm import training
"""


def test_pairs_are_scored_with_torch_alone(tmp_path):
    """Neither the pair scorer nor the training imports a package that a bare machine lacks."""
    code = BARE.replace("{network}", str(saved(tmp_path))).replace("{folder}", str(tmp_path / "blocks"))
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "4 pairs in" in done.stdout
