"""Neural Model 1 as a term table: against pairs scored one by one, and as a ranker against its network."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from refusals import one_line
from whyrank.core import BadInput
from whyrank.data import Collection
from whyrank.learners import export_table, open_network
from whyrank.networks import ModelTokenizer, NeuralModel1Network, save
from whyrank.rankers import open_ranker
from whyrank.tables import open_table

torch.set_num_threads(1)
TERMS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(20)), "##s"]
QUERIES = ("w1 w2", "w3", "w1 w1 w9 w4", "unheard w5", "")
DOCS = ("w1 w7 w8 w2", "w3 w3 w3", "w5 w11s w12 unseen w14 w14 w16", "", "w19")


@pytest.fixture
def folder(tmp_path):
    return made(tmp_path)


def made(path, **settings):
    """The folder of a network whose T lie on both sides of a threshold of 0.05."""
    tokenizer = Tokenizer(models.WordPiece({term: i for i, term in enumerate(TERMS)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    tokenizer.save(str(path / "tokenizer.json"))
    torch.manual_seed(0)
    network = NeuralModel1Network.over_tokenizer(
        ModelTokenizer(path), dims=8, **{"widths": (8, 8, 4), "max_doc": 30} | settings
    )
    if network.layer.variant == "network":
        network.layer.third.weight.data *= 4
    save(network, path / "network")
    return path / "network"


def one_by_one(network, q, d):
    """T(q|d) as the score of a query and a text of one token each."""
    with torch.inference_mode():
        batch = network.arrays([np.array([q], np.int32)], [np.array([d], np.int32)])
        return math.exp(float(network({name: torch.from_numpy(array) for name, array in batch.items()})))


@pytest.mark.parametrize("settings", [{}, {"p_self": None}, {"variant": "cosine"}, {"p_self": 0.01}])
def test_entries_are_those_of_pairs_scored_one_by_one(settings, tmp_path):
    network = open_network(made(tmp_path, **settings))
    expected = np.array([[one_by_one(network, q, d) for d in range(len(TERMS))] for q in range(len(TERMS))])
    kept = expected >= 0.05
    if settings.get("p_self", 0.3) is not None:
        kept |= np.eye(len(TERMS), dtype=bool)
    assert kept.sum() > len(TERMS)
    assert settings.get("variant") == "cosine" or not kept.all()
    for block in (None, 7, 1000):
        table = export_table(network, 0.05, block)
        dense = np.zeros_like(expected)
        dense[table.row_numbers(), table.indices] = table.weights
        np.testing.assert_allclose(dense, np.where(kept, expected, 0), rtol=1e-5, atol=1e-7)
        assert list(table.query_terms) == list(table.doc_terms) == TERMS


@pytest.mark.parametrize("settings", [{}, {"p_self": None}, {"variant": "cosine"}])
def test_a_table_ranks_as_its_network(settings, tmp_path):
    folder = made(tmp_path, **settings)
    network = open_network(folder)
    export_table(network, 0.0).save(tmp_path / "table.parquet")
    pairs = [(q, d) for q in QUERIES for d in DOCS]
    queries, docs = ([pair[i] for pair in pairs] for i in (0, 1))
    found = open_ranker(f"model1:{tmp_path}/table.parquet").score(queries, docs)
    whole = open_ranker(f"neural-model1:{folder}(device=cpu)").score(queries, docs)
    distinct = [max(1, len(set(ids.tolist()))) for ids in network.query_ids(queries)]
    np.testing.assert_allclose(found * distinct, whole, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"p_self": None}, {"p_self": 1e-9}])
@pytest.mark.parametrize("block", [None, 7])
def test_the_best_of_each_query_piece(settings, block, tmp_path):
    """Against all entries, sorted one query token at a time; a token and itself come first where there is a p_self."""
    network = open_network(made(tmp_path, **settings))
    whole, found = export_table(network, 0.01, block), export_table(network, 0.01, block, top=3)
    for term in TERMS:
        own = network.layer.p_self is not None
        ranked = sorted(
            whole.doc_terms_for(term, len(TERMS)), key=lambda each: (not own or each.term != term, -each.weight)
        )
        kept = found.doc_terms_for(term, len(TERMS))
        assert {each.term for each in kept} == {each.term for each in ranked[:3]}
        assert all(whole.weight(term, each.term) == each.weight for each in kept)
    assert found.facts["top"] == 3
    assert export_table(network, 0.01, block, top=len(TERMS)).digest == whole.digest


@pytest.mark.parametrize("settings", [{}, {"p_self": None}])
@pytest.mark.parametrize("block", [None, 7])
def test_pieces_of_a_collection(settings, block, tmp_path):
    """Against the whole table without what the collection does not have."""
    network = open_network(made(tmp_path, **settings))
    seen = Collection.of({"d": "w1 w7 w2 w9s", "e": "w2"}, {"q": "w3 w1", "p": "w9"}, {}, name="few")
    whole, found = export_table(network, 0.02, block), export_table(network, 0.02, block, collection=seen)
    queries, docs = {"w3", "w1", "w9"}, {"w1", "w7", "w2", "w9", "##s"}
    own = network.layer.p_self is not None
    kept = {(q, d) for q, d, _ in whole.rows() if (q in queries and d in docs) or (own and q == d)}
    assert {(q, d) for q, d, _ in found.rows()} == kept
    assert all(weight == pytest.approx(whole.weight(q, d), rel=1e-5) for q, d, weight in found.rows())
    assert list(found.query_terms) == list(found.doc_terms) == TERMS
    assert found.facts["collection"] == "few"


def test_other_networks_are_no_tables(tmp_path, folder):
    with pytest.raises(BadInput, match="cannot be read"):
        open_network(tmp_path / "nowhere")
    config = folder / "config.json"
    config.write_text(config.read_text().replace("neural-model1", "bert-model1"))
    with pytest.raises(BadInput, match="is a network of architecture bert-model1, not neural-model1"):
        open_network(folder)


def test_the_command_writes_the_table(whyrank, folder, tmp_path):
    out = tmp_path / "table.tsv"
    code, printed, said = whyrank(
        "tables", "learn", "neural", "--network", folder, "--out", out, "--threshold", 0.05, "--device", "cpu"
    )
    table = open_table(out)
    assert (code, printed) == (0, ""), said
    assert table.digest == export_table(open_network(folder), 0.05).digest
    assert said.splitlines()[-2] == f"676 pairs of tokens, {len(table):,} entries: {out}"
    assert said.splitlines()[-1] == f"score with it: --ranker model1:{out}"


@pytest.mark.parametrize(
    ("options", "what"),
    [(("--out", "t.csv"), "a term table is written as"), (("--out", "t.tsv"), "cannot be read"),
     (("--out", "t.tsv", "--seed", "1"), "--seed changes a recipe"),
     (("--out", "t.tsv", "--recipe", "smoke"), "trains cross; only neural-model1 is a table"),
     (("--out", "t.tsv", "--device", "tpu9"), "is not available here")],
)  # fmt: skip
def test_wrong_calls_are_one_clear_line(options, what, whyrank, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert what in one_line(whyrank("tables", "learn", "neural", "--network", "nowhere", *options))
