"""How much a model reads, against what happens when it is given more."""

from __future__ import annotations

import pytest

from whyrank.text import positions_of

torch = pytest.importorskip("torch", reason="the extra models is not installed")
transformers = pytest.importorskip("transformers", reason="the extra models is not installed")

DECLARED = 24
SIZE = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
BART = {"d_model": 16, **{f"{part}_{what}": size for part in ("encoder", "decoder")
        for what, size in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))}}  # fmt: skip
LIMITED = {
    "bert": SIZE, "roberta": SIZE, "xlm-roberta": SIZE, "camembert": SIZE, "mpnet": SIZE, "electra": SIZE,
    "albert": SIZE, "roformer": SIZE, "longformer": SIZE, "deberta-v2": SIZE, "opt": SIZE, "bart": BART,
    "distilbert": {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16},
    "gpt2": {"n_embd": 16, "n_layer": 1, "n_head": 2},
}  # fmt: skip
FREE = {
    "deberta-v2": {**SIZE, "relative_attention": True, "position_biased_input": False, "position_buckets": 8},
    "t5": {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2},
    "llama": SIZE,
    "modernbert": {**SIZE, "pad_token_id": 0},
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made(kind, shape):
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, vocab_size=50, max_position_embeddings=DECLARED, **shape)
    return transformers.AutoModel.from_config(config).eval()


def reads(model, size):
    ids = torch.randint(5, 50, (1, size))
    more = {"decoder_input_ids": ids[:, :1]} if model.config.is_encoder_decoder else {}
    with torch.inference_mode():
        model(input_ids=ids, attention_mask=torch.ones_like(ids), **more)


@pytest.mark.parametrize("kind", LIMITED)
def test_so_many_tokens_and_no_more(kind):
    model = made(kind, LIMITED[kind])
    found = positions_of(model)
    assert DECLARED - 2 <= found <= DECLARED
    reads(model, found)
    with pytest.raises((IndexError, RuntimeError)):
        reads(model, found + 1)


@pytest.mark.parametrize("kind", FREE)
def test_without_a_table_what_is_declared_is_no_limit(kind):
    model = made(kind, FREE[kind])
    assert positions_of(model) is None
    reads(model, 4 * DECLARED)


def test_of_several_tables_the_longest_counts():
    both = torch.nn.ModuleDict({"text": made("bert", SIZE), "image": torch.nn.ModuleDict()})
    both["image"]["position_embedding"] = torch.nn.Embedding(9, 4)
    both["image"]["relative_position_bias"] = torch.nn.Embedding(90, 4)
    assert positions_of(both) == DECLARED
