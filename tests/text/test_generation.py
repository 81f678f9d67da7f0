"""Generated queries, by tiny models with random weights; and how much a model reads."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tiny_generators import KINDS, WORDS, generator
from whyrank.core import WhyrankError
from whyrank.text import MAX_INPUT, MAX_NEW, generate, generation, load, positions_of
from whyrank.text.edits.content import doc2query

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


@pytest.fixture(scope="module", params=KINDS)
def model(request, tmp_path_factory):
    return generator(request.param, tmp_path_factory.mktemp(request.param), positions=256)


def test_seeded_by_the_text(model):
    one, two = (generate(["berlin wall fell"], model, 4, 42)[0] for _ in range(2))
    assert one == two
    assert 1 <= len(one) <= 4
    assert all(set(query.split()) <= set(WORDS) for query in one)
    assert generate(["berlin wall fell"], model, 4, 43)[0] != one
    assert generate(["city"], model, 4, 42)[0] != one


def test_what_is_written_does_not_depend_on_the_other_texts_of_a_batch(model):
    texts = ["city", "berlin wall fell " * 30, "what is a wall", "a\ud800 city", "when " * 7]
    alone = [generate([text], model, 3, 7)[0] for text in texts]
    assert generate(texts, model, 3, 7) == alone
    assert generate(texts[::-1], model, 3, 7) == alone[::-1]
    assert generate(["wall", *texts[2:]], model, 3, 7)[1:] == alone[2:]


def test_tokens_are_drawn_by_their_probabilities_from_the_ten_most_probable(model, monkeypatch):
    """The first token of many queries against the probabilities that the model itself gives."""
    made, n = load(model), 4000
    monkeypatch.setattr(generation, "MAX_NEW", 1)
    monkeypatch.setattr(generation, "TOP_K", 4)
    row, special = torch.tensor([made.ids("berlin wall")]), set(made.tokenizer.all_special_ids)
    first = {"decoder_input_ids": torch.tensor([[0]])} if made.model.config.is_encoder_decoder else {}
    with torch.inference_mode():
        best = made.model(input_ids=row, **first).logits[0, -1].double().topk(4)
    drawn = Counter(query for query in generate(["berlin wall"], model, n, 1)[0])
    expected = {WORDS[i]: p for i, p in zip(best.indices.tolist(), best.values.softmax(0).tolist(), strict=True)}
    for word, share in expected.items():
        if WORDS.index(word) not in special:
            assert abs(drawn[word] / n - share) < 4 * (share * (1 - share) / n) ** 0.5
    assert set(drawn) <= set(expected)


def test_expanded_text(model):
    found = doc2query("berlin wall", random.Random(3), model=model, n=2)
    assert found.startswith("berlin wall ")
    assert found == "berlin wall " + " ".join(
        generate(["berlin wall"], model, 2, random.Random(3).getrandbits(32))[0]
    )


def test_weights_must_be_there_as_safetensors(model, tmp_path):
    copy = Path(shutil.copytree(model, tmp_path / "pickled"))
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    for name, problem in (("no/such/model", "no/such/model"), (str(copy), "safetensors")):
        with pytest.raises(WhyrankError, match=problem):
            generate(["wall"], name, 1, 0)


QUESTION = "A search query that this passage answers:"


@pytest.mark.parametrize(("positions", "size"), [(128, 128 - MAX_NEW), (2048, MAX_INPUT)])
def test_of_a_long_text_the_text_is_cut_and_not_the_question(tmp_path, positions, size):
    folder = generator("causal", tmp_path / "causal", positions=positions)
    made = load(folder)
    found = made.ids("berlin wall fell " * 1000)
    prompt = made.tokenizer("\n\n" + QUESTION)["input_ids"]
    text = made.tokenizer("berlin wall fell " * 1000)["input_ids"]
    assert len(found) == size
    assert found == text[: size - len(prompt)] + prompt
    assert generate(["berlin wall fell " * 1000], folder, 2, 0)[0]


def test_a_model_without_room_for_the_question_is_one_clear_line(tmp_path):
    folder = generator("causal", tmp_path / "causal", positions=MAX_NEW + 5)
    with pytest.raises(WhyrankError, match=rf"reads {MAX_NEW + 5} tokens, too few for a question") as refused:
        generate(["wall " * 9], folder, 1, 0)
    assert folder in str(refused.value)


def test_an_encoder_reads_as_many_tokens_as_it_has_positions(tmp_path):
    folder = generator("seq2seq", tmp_path / "bart")
    special = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 1}
    config = transformers.BartConfig(vocab_size=len(WORDS), max_position_embeddings=100, **special, **BART)
    transformers.BartForConditionalGeneration(config).save_pretrained(folder)
    assert len(load(folder).ids("wall " * 500)) == 100
    texts = ["wall " * 500, "berlin", "when fell a city " * 9]
    assert generate(texts, folder, 3, 0) == [generate([text], folder, 3, 0)[0] for text in texts]


@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM"])
def test_a_model_that_does_not_write_is_refused(kind, tmp_path, capfd):
    folder = generator("causal", tmp_path / "bert")
    getattr(transformers, kind)(transformers.BertConfig(vocab_size=len(WORDS), **SIZE)).save_pretrained(folder)
    capfd.readouterr()
    with pytest.raises(
        WhyrankError, match=r"cannot write queries \(it (has no cls\.|is a BertForMaskedLM)"
    ) as refused:
        generate(["wall"], folder, 1, 0)
    assert "\n" not in str(refused.value)
    assert capfd.readouterr() == ("", "")


# How much a model reads, against what happens when it is given more.


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
