"""PaRM: its logit by hand, both heads, what it starts from, and inputs end to end."""

from __future__ import annotations

import pytest
import torch
from small_networks import tokenizer_file
from transformers import AutoConfig, AutoModel

from pair_models import forward
from whyrank.core import WhyrankError
from whyrank.networks import ModelTokenizer, is_network, make, new_encoder, save, start

SHAPE = {"model_type": "bert", "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 32, "max_position_embeddings": 40, "initializer_range": 0.3}  # fmt: skip
QUERIES, DOCS = ["w1", "w2 w3", "unheard"], ["w4", "w1", "w5 w6 w7 w8 w9"]


@pytest.fixture
def tokenizer(tmp_path):
    return ModelTokenizer(tokenizer_file(tmp_path / "tokens"))


def parm(tokenizer, architecture="parm", **settings):
    torch.manual_seed(1)
    encoder = new_encoder({**SHAPE, "vocab_size": len(tokenizer)})
    return make(architecture, encoder, tokenizer, max_query=6, max_doc=12, **settings).eval()


@pytest.mark.parametrize("head", ["deep", "affine"])
def test_the_logit_by_hand(tokenizer, head):
    network = parm(tokenizer, head=head)
    with torch.inference_mode():
        found = forward(network, QUERIES, DOCS)
        for i, (query, doc) in enumerate(zip(QUERIES, DOCS, strict=True)):
            query_ids, doc_ids = network.query_ids([query])[0], network.doc_ids([doc])[0]
            special = tokenizer.special
            row = [special["cls"], *query_ids, special["sep"], *doc_ids, special["sep"]]
            types = [0] * (len(query_ids) + 2) + [1] * (len(doc_ids) + 1)
            given = {"input_ids": torch.tensor([row]), "token_type_ids": torch.tensor([types])}
            state = network.encoder.model(**given).last_hidden_state[0, 0]
            if head == "deep":
                state = torch.tanh(network.inner.weight @ state + network.inner.bias)
                state = (network.middle.weight @ state + network.middle.bias).clamp(min=0)
            expected = network.outer.weight[0] @ state + network.outer.bias[0]
            torch.testing.assert_close(found[i], expected, rtol=1e-4, atol=1e-5)


def test_it_starts_from_a_network_trained_here(tmp_path, tokenizer):
    other = parm(tokenizer, "cross")
    folder = tmp_path / "net"
    save(other, folder)
    assert is_network(folder)
    assert not is_network(tmp_path / "nothing")
    found = start("parm", folder, max_query=3, max_doc=5)
    assert (found.max_query, found.max_doc, found.training) == (3, 5, True)
    theirs = other.encoder.state_dict()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in found.encoder.state_dict().items())
    with pytest.raises(WhyrankError, match="is taken whole"):
        start("parm", folder, [0])


def test_its_head_may_start_as_the_pooler_of_bert(tmp_path, tokenizer):
    torch.manual_seed(2)
    config = AutoConfig.for_model(**SHAPE, vocab_size=len(tokenizer))
    model = AutoModel.from_config(config)
    model.pooler.dense.bias.data.normal_()
    model.save_pretrained(tmp_path / "bert")
    (tmp_path / "bert" / "tokenizer.json").write_bytes(tokenizer.content)
    found = start("parm", tmp_path / "bert", pooler=True, max_query=6, max_doc=12, dropout=0.0).eval()
    made = found.arrays(found.query_ids(QUERIES), found.doc_ids(DOCS))
    given = {name: torch.from_numpy(array) for name, array in made.items()}
    with torch.inference_mode():
        pooled = model.eval()(given["ids"], given["mask"], given["types"]).pooler_output
        expected = found.outer(torch.relu(found.middle(pooled))).squeeze(1)
        torch.testing.assert_close(found(given), expected, rtol=1e-4, atol=1e-5)
    plain = start("parm", tmp_path / "bert", max_query=6, max_doc=12)
    assert not torch.equal(plain.inner.weight, model.pooler.dense.weight)
    with pytest.raises(WhyrankError, match="pooler: needs head=deep"):
        start("parm", tmp_path / "bert", pooler=True, head="affine")
    plain.encoder.model.save_pretrained(tmp_path / "bare")
    (tmp_path / "bare" / "tokenizer.json").write_bytes(tokenizer.content)
    with pytest.raises(WhyrankError, match="a model with a pooler"):
        start("parm", tmp_path / "bare", pooler=True)
    save(plain, tmp_path / "net")
    with pytest.raises(WhyrankError, match="trained here, which has none"):
        start("parm", tmp_path / "net", pooler=True)
