"""monoT5 gives what transformers gives for the whole question."""

from __future__ import annotations

import numpy as np
import pytest

from whyrank.core import BadInput
from whyrank.rankers import open_ranker
from whyrank.testing import RankerContract
from whyrank.testing.examples import PAIRS

QUERIES, DOCS = zip(*PAIRS, strict=True)


class TestMonoT5(RankerContract):
    tolerance = 1e-5

    @pytest.fixture(autouse=True)
    def _models(self, models):
        self.folder = models.folder("t5")

    def make(self):
        return open_ranker(f"t5:{self.folder}(max_length=96)")


def plain(folder, questions):
    """The first step of the decoder for one question at a time."""
    import torch
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = T5ForConditionalGeneration.from_pretrained(folder).eval()
    answers = tokenizer.convert_tokens_to_ids(["▁true", "▁false"])
    start = torch.tensor([[model.config.decoder_start_token_id]])
    with torch.inference_mode():
        asked = (tokenizer(question, return_tensors="pt")["input_ids"] for question in questions)
        logits = [model(input_ids=ids, decoder_input_ids=start).logits[0, 0, answers] for ids in asked]
    return torch.stack(logits).log_softmax(1)[:, 0].double().numpy()


def test_the_score_is_the_log_probability_of_true(models):
    folder = models.folder("t5")
    ranker = open_ranker(f"t5:{folder}(max_length=2000)")
    found = ranker.score(QUERIES, DOCS)
    questions = [f"Query: {q} Document: {d} Relevant:" for q, d in PAIRS]
    assert np.allclose(found, plain(folder, questions), rtol=1e-5, atol=1e-5)
    assert (found < 0).all()
    assert np.ptp(found) > 0.1
    assert ranker.scale == "log probability"


def test_a_long_text_is_cut_before_the_question_mark(models):
    folder, text = models.folder("t5"), "wall " * 100
    found = open_ranker(f"t5:{folder}(max_length=32)").score(["who is"], [text])
    room = 32 - len(["Query:", "who", "is", "Document:", "Relevant:", "</s>"])
    expected = plain(folder, [f"Query: who is Document: {'wall ' * room} Relevant:"])
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_other_answers(models):
    folder = models.folder("t5")
    swapped = open_ranker(f"t5:{folder}(true=▁false,false=▁true)").score(QUERIES, DOCS)
    found = open_ranker(f"t5:{folder}").score(QUERIES, DOCS)
    assert np.allclose(np.exp(found) + np.exp(swapped), 1, atol=1e-5)


def test_what_does_not_fit(models):
    with pytest.raises(BadInput, match="the tokenizer has no token '▁yes'; name one that it has"):
        open_ranker(f"t5:{models.folder('t5')}(true=▁yes)").score(["q"], ["d"])
    with pytest.raises(BadInput, match="cannot be loaded"):
        open_ranker(f"t5:{models.folder('cross')}(true=wall,false=the)").score(["q"], ["d"])


def test_no_more_than_the_model_has_places_for(tmp_path):
    import tiny_models
    from transformers import BartConfig, BartForConditionalGeneration

    tokenizer = tiny_models.sentencepiece()
    shape = {f"{part}_{what}": size for part in ("encoder", "decoder")
             for what, size in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))}  # fmt: skip
    config = BartConfig(vocab_size=len(tokenizer), max_position_embeddings=64, d_model=16, pad_token_id=0, **shape)
    folder = tiny_models.save(BartForConditionalGeneration(config), tokenizer, tmp_path / "bart")
    with pytest.raises(BadInput, match="reads 64 tokens at most, and max_length is 512; give max_length=64 or less"):
        open_ranker(f"t5:{folder}").score(["who"], ["wall"])
    assert np.isfinite(open_ranker(f"t5:{folder}(max_length=64)").score(["who"], ["wall " * 100])).all()
