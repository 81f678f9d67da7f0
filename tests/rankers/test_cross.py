"""Cross-encoders give what transformers and sentence-transformers give."""

from __future__ import annotations

import shutil
from itertools import product

import numpy as np
import pytest

from whyrank.core import BadInput, WhyrankError
from whyrank.rankers import open_ranker
from whyrank.rankers.neural.tokens import shares
from whyrank.testing.examples import PAIRS

QUERIES, DOCS = zip(*PAIRS, strict=True)
LONG = ("wall who is robert " * 20, "the berlin wall fell " * 40)


def plain(folder, queries, docs, **tokenizing):
    """One pair at a time, as the documentation of transformers does it."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        rows = [
            model(**tokenizer([q], [d], truncation=True, return_tensors="pt", **tokenizing)).logits[0]
            for q, d in zip(queries, docs, strict=True)
        ]
    return torch.stack(rows).double().numpy()


@pytest.mark.parametrize("kind", ["cross", "roberta"])
def test_one_output_is_the_score(models, kind):
    folder = models.folder(kind)
    found = open_ranker(f"cross:{folder}").score(QUERIES, DOCS)
    assert np.allclose(found, plain(folder, QUERIES, DOCS)[:, 0], rtol=1e-5, atol=1e-5)
    assert np.ptp(found) > 1  # the tiny model does tell texts apart


@pytest.mark.parametrize(("argument", "relevant"), [("", 1), ("(output=1)", 1), ("(output=0)", 0)])
def test_of_two_outputs_the_score_is_the_difference(models, argument, relevant):
    folder = models.folder("cross", 2)
    logits = plain(folder, QUERIES, DOCS)
    found = open_ranker(f"cross:{folder}{argument}").score(QUERIES, DOCS)
    assert np.allclose(found, logits[:, relevant] - logits[:, 1 - relevant], rtol=1e-5, atol=1e-5)


KINDS = {
    "cross": ("cross",),
    "XLM-R": ("xlmr",),
    "ModernBERT, mean": ("modernbert",),
    "ModernBERT, first": ("modernbert", "cls"),
    "Qwen3": ("qwen3",),
    "Qwen3 with a prompt": ("qwen3", "who is simple"),
    "Qwen3 without a template": ("qwen3", None, False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_sentence_transformers_gives_the_same(models, kind):
    """The score is the model's output, whatever activation it was saved with."""
    from sentence_transformers import CrossEncoder
    from torch import nn

    folder = models.folder(*KINDS[kind])
    pairs = [(q, d) for q, d in PAIRS if q.strip() and d.strip()] + [(LONG[0], "wall"), ("wall", LONG[1])]
    queries, docs = zip(*pairs, strict=True)
    expected = CrossEncoder(str(folder), device="cpu").predict(pairs, activation_fn=nn.Identity())
    ranker, probable = (open_ranker(f"cross:{folder}{more}") for more in ("", "(activation=sigmoid)"))
    found = ranker.score(queries, docs)
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert np.ptp(found) > 0.1
    assert np.allclose(probable.score(queries, docs), 1 / (1 + np.exp(-found)), rtol=1e-5)
    assert (ranker.scale, probable.scale) == ("logit", "probability")


@pytest.mark.parametrize("kind", ["XLM-R", "ModernBERT, mean", "Qwen3"])
def test_fast_is_close_for_any_architecture(models, kind):
    specs = (f"cross:{models.folder(*KINDS[kind])}(precision={p},device=cpu)" for p in ("exact", "fast"))
    exact, fast = (open_ranker(spec).score(QUERIES, DOCS) for spec in specs)
    assert np.corrcoef(exact, fast)[0, 1] > 0.98
    assert len(set(fast.tolist())) == len(set(exact.tolist()))  # answers do not tie for want of digits


@pytest.mark.parametrize("kind", ["Qwen3", "Qwen3 with a prompt"])
def test_a_chat_template_is_part_of_the_identity(models, tmp_path, kind):
    folder = shutil.copytree(models.folder(*KINDS[kind]), tmp_path / "copy")
    before, template = repr(open_ranker(f"cross:{folder}")), folder / "chat_template.jinja"
    template.write_text(template.read_text().replace("user", "assistant"))
    assert repr(open_ranker(f"cross:{folder}")) != before
    with pytest.raises(WhyrankError, match="truncate=last is not for models with a chat template"):
        open_ranker(f"cross:{folder}(truncate=last)").score(["q"], ["d"])


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0), (0, 0)])
@pytest.mark.parametrize("most", [9, 31, 63])
def test_what_is_too_long_is_cut_as_the_tokenizer_would(models, first, second, most):
    folder = models.folder("cross")
    queries, docs = [LONG[first], "wall", LONG[0]], [LONG[second], LONG[1], "wall wall"]
    found = open_ranker(f"cross:{folder}(max_length={most})").score(queries, docs)
    assert np.allclose(found, plain(folder, queries, docs, max_length=most)[:, 0], rtol=1e-5, atol=1e-5)


def test_relative_positions_have_no_end(tmp_path):
    import tiny_models
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

    relative = {"relative_attention": True, "position_biased_input": False, "pos_att_type": ["p2c", "c2p"]}
    tokenizer = tiny_models.wordpiece()
    config = DebertaV2Config(
        vocab_size=len(tokenizer), max_position_embeddings=64, num_labels=1, **relative, **tiny_models.SHAPE
    )
    folder = tiny_models.save(DebertaV2ForSequenceClassification(config), tokenizer, tmp_path / "deberta")
    found = open_ranker(f"cross:{folder}(max_length=200)").score([LONG[0]], [LONG[1]])
    assert np.allclose(found, plain(folder, [LONG[0]], [LONG[1]], max_length=200)[:, 0], rtol=1e-5, atol=1e-5)


def test_shares_fill_the_room():
    for first, second, room in product(range(0, 9, 2), range(0, 9, 2), range(9)):
        a, b = shares(first, second, room)
        assert a + b == min(room, first + second)
        assert a <= first
        assert b <= second
        assert a == first or b == second or abs(a - b) <= 1


@pytest.mark.parametrize("kind", ["cross", "roberta", "network"])
def test_the_last_layer_computes_what_is_read(models, kind):
    reader = open_ranker(f"cross:{models.folder(kind)}")
    model, seen = reader._scorer.reader.module, []
    for module in model.modules():
        if type(module).__name__.endswith("Intermediate"):
            module.register_forward_hook(lambda _, given, __: seen.append(given[0].shape[1]))
    reader.score(["berlin wall"], ["the wall fell"])
    assert seen[0] > seen[1] == 1


@pytest.mark.parametrize("argument", ["output=0", "output=1", "max_length=64", "truncate=last"])
def test_what_a_network_trained_here_would_ignore_is_refused(models, argument):
    with pytest.raises(
        WhyrankError, match=f"{argument} is not for a network trained here.*; leave .* out"
    ) as refused:
        open_ranker(f"cross:{models.folder('network')}({argument})").score(["q"], ["d"])
    assert "\n" not in str(refused.value)
    works = open_ranker(f"cross:{models.folder('network')}(activation=sigmoid,passages=max,truncate=first)")
    assert np.isfinite(works.score(QUERIES, DOCS)).all()


def test_the_bundled_model_is_a_folder_of_the_package(monkeypatch, models, tmp_path):
    from whyrank import data

    monkeypatch.setattr(data, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(WhyrankError, match="ranker 'cross:bundled': this installation has no bundled model; give a"):
        open_ranker("cross:bundled").score(["q"], ["d"])
    shutil.copytree(models.folder("network"), tmp_path / "models" / "bundled")
    expected = open_ranker(f"cross:{models.folder('network')}").score(QUERIES, DOCS)
    assert np.array_equal(open_ranker("cross:bundled").score(QUERIES, DOCS), expected)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("bundle", "bundled"), ("Bundled", "bundled"), ("./modles/one", "models/one"), ("models/oen", "models/one")],
)
def test_a_typo_in_a_path_is_answered_with_what_may_be_meant(given, meant, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "one").mkdir(parents=True)
    with pytest.raises(BadInput, match=f"did you mean '{meant}'") as refused:
        open_ranker(f"cross:{given}").score(["q"], ["d"])
    assert "\n" not in str(refused.value)
