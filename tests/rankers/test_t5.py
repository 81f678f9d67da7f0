"""monoT5 gives what transformers gives for the whole question."""

from __future__ import annotations

import numpy as np

from whyrank.rankers import open_ranker
from whyrank.testing.examples import PAIRS

QUERIES, DOCS = zip(*PAIRS, strict=True)


def plain(folder, questions):
    """The first step of the decoder for one question at a time."""
    import torch
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = T5ForConditionalGeneration.from_pretrained(folder).eval()
    answers = tokenizer.convert_tokens_to_ids(["▁true", "▁false"])
    start = torch.tensor([[model.config.decoder_start_token_id]])
    with torch.inference_mode():
        read = (tokenizer(question, return_tensors="pt")["input_ids"] for question in questions)
        logits = [model(input_ids=ids, decoder_input_ids=start).logits[0, 0, answers] for ids in read]
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
