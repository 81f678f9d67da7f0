"""Generated queries, by tiny models with random weights."""

from __future__ import annotations

import random

import pytest

from whyrank.core.errors import WhyrankError
from whyrank.text.edit_content import doc2query
from whyrank.text.generation import generate

torch = pytest.importorskip("torch", reason="the extra models is not installed")
transformers = pytest.importorskip("transformers", reason="the extra models is not installed")
WORDS = ["[PAD]", "</s>", "[UNK]", "what", "is", "a", "wall", "berlin", "when", "fell", "city"]


def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", eos_token="</s>", unk_token="[UNK]"
    )


@pytest.fixture(scope="module", params=["seq2seq", "causal"])
def model(request, tmp_path_factory):
    torch.manual_seed(0)
    size = {"vocab_size": len(WORDS), "pad_token_id": 0, "eos_token_id": 1}
    if request.param == "seq2seq":
        config = transformers.T5Config(
            d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0, **size
        )
        made = transformers.T5ForConditionalGeneration(config)
    else:
        made = transformers.GPT2LMHeadModel(
            transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, n_positions=256, bos_token_id=1, **size)
        )
    path = tmp_path_factory.mktemp(request.param)
    made.save_pretrained(path)
    tokenizer().save_pretrained(path)
    return str(path)


def test_seeded_by_the_text(model):
    one, two = (generate("berlin wall fell", model, 4, 42) for _ in range(2))
    assert one == two
    assert 1 <= len(one) <= 4
    assert all(set(query.split()) <= set(WORDS) for query in one)
    assert generate("berlin wall fell", model, 4, 43) != one
    assert generate("city", model, 4, 42) != one


def test_global_generator_is_left_alone(model):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    generate("wall", model, 2, 0)
    assert torch.rand(1) == expected


def test_expanded_text(model):
    found = doc2query("berlin wall", random.Random(3), model=model, n=2)
    assert found.startswith("berlin wall ")
    assert found == "berlin wall " + " ".join(generate("berlin wall", model, 2, random.Random(3).getrandbits(32)))


def test_a_model_that_is_not_there():
    with pytest.raises(WhyrankError, match="no/such/model"):
        generate("wall", "no/such/model", 1, 0)


def test_weights_must_be_safetensors(model, tmp_path):
    import shutil
    from pathlib import Path

    copy = shutil.copytree(model, tmp_path / "pickled")
    weights = Path(copy) / "model.safetensors"
    weights.rename(Path(copy) / "pytorch_model.bin")
    with pytest.raises(WhyrankError, match="safetensors"):
        generate("wall", str(copy), 1, 0)
