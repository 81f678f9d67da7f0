"""What PaRM learns from: candidates, terms against the ranker bm25, words left out, and a synonym that was planted."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from pair_models import forward
from parm_models import toy_candidates
from whyrank.core import WhyrankError
from whyrank.data import open_collection
from whyrank.learners.parm import prepare_parm, train_parm
from whyrank.learners.parm.alignment import token_texts
from whyrank.learners.parm.data import (
    CandidateSampler,
    TargetScores,
    choose_alignment,
    draw_candidates,
    open_target,
    parm_queries,
    terms_of,
)
from whyrank.learners.parm.phases import ParmData
from whyrank.learners.parm.training import alignment_blocks
from whyrank.networks import ModelTokenizer, load, make, new_encoder, save
from whyrank.rankers import Setting, open_ranker
from whyrank.rankers.lexical import LexicalIndex
from whyrank.scoring import Engine
from whyrank.training import read_recipe, recipe_of
from whyrank.training.sources import wordpiece_tokenizer

torch.set_num_threads(1)
WORDS = [f"{a}{b}" for a in ("ba", "ce", "di", "fo") for b in ("lan", "mer", "nis", "rop", "tuk")]
SYNONYMS = {"balan": "fotuk", "cenis": "dirop", "bamer": "cerop", "dilan": "banis", "fomer": "cetuk"}
SHAPE = {"hidden_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 96,
         "max_position_embeddings": 48, "initializer_range": 0.2}  # fmt: skip
AUTO = {"preset": "target", "first": {"alignment": "auto"}}


@dataclass(frozen=True)
class Toy:
    """Counts the words of a query that a text has, or has a synonym of."""

    name: str = "toy"

    def score(self, queries, docs):
        rows = [(set(q.split()), set(d.split())) for q, d in zip(queries, docs, strict=True)]
        return np.array([float(sum(word in d or SYNONYMS.get(word) in d for word in q)) for q, d in rows])


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A collection of 150 nonsense texts and 250 queries with one relevant text each."""
    folder, random = tmp_path_factory.mktemp("world"), np.random.default_rng(0)
    docs = [" ".join(random.choice(WORDS, random.integers(4, 7), replace=False)) for _ in range(150)]
    queries = [" ".join(random.choice(WORDS, random.integers(2, 4), replace=False)) for _ in range(250)]
    lines = [json.dumps({"id": f"d{i}", "text": text}) for i, text in enumerate(docs)]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "queries.tsv").write_text("".join(f"q{i}\t{text}\n" for i, text in enumerate(queries)))
    (folder / "qrels.txt").write_text("".join(f"q{i} 0 d{random.integers(150)} 1\n" for i in range(len(queries))))
    return folder


def recipe(world, **changes):
    steps = {"batch": 32, "threads": 1, "validate_every": 200}
    first = {"alignment": "occlusion", "held_out": 0.1, "texts": 5,
             "schedule": {**steps, "epochs": 60, "rate": 3e-3, "head_rate": 3e-3}}  # fmt: skip
    second = {"texts": 6, "rounds": 2, "schedule": {**steps, "epochs": 20, "rate": 3e-4, "head_rate": 3e-4}}
    given = {"architecture": "parm", "encoder": SHAPE, "tokenizer": "collection(size=400)", "dropout": 0.0,
             "settings": {"max_query": 8, "max_doc": 16, "dropout": 0.0},
             "data": {"collection": [str(world)], "analyzer": "whitespace", "candidates": [4, 3, 1]},
             "phases": {"preset": "target", "first": first, "second": second}}  # fmt: skip
    return recipe_of(given | changes)


def prepare(made, target, say=lambda text: None):
    return prepare_parm(made, target, Engine(), say)


@pytest.fixture(scope="module")
def prepared(world):
    return prepare(recipe(world), Toy())


def test_the_target_scores_candidates_that_begin_with_the_querys_own_text(prepared, world):
    candidates = prepared.candidates
    pairs = [(q, d) for q, row in enumerate(candidates.doc) for d in row]
    expected = Toy().score([prepared.queries[q] for q, _ in pairs], [prepared.docs[d] for _, d in pairs])
    np.testing.assert_array_equal(candidates.scores.ravel(), expected)
    assert (prepared.facts["ranker"], prepared.facts["alignment"]) == ("Toy(name='toy')", "occlusion")
    given = parm_queries(ParmData(**recipe(world).data))
    assert list(given.queries) == list(prepared.queries)
    np.testing.assert_array_equal(candidates.doc[:, 0], given.source)
    assert all(len(set(row.tolist())) == 9 for row in candidates.doc)
    collection = open_collection(str(world))
    for query, row in list(zip(prepared.queries, candidates.doc, strict=True))[:5]:
        judged = [d for q, docs in collection.qrels.items() if collection.queries[q] == query for d in docs]
        assert prepared.docs[row[0]] in {collection.docs[d] for d in judged}


def test_candidates_come_from_both_parts_of_bm25s_ranking(world):
    data = ParmData(**{**recipe(world).data, "candidates": [2, 3, 0], "depth": 30})
    given = parm_queries(data)
    ranker = open_ranker("bm25(variant=parm)", Setting(open_collection(str(world)), "whitespace"))
    index = LexicalIndex.of(ranker, {str(i): text for i, text in enumerate(given.docs)})
    found = draw_candidates(index, given, data)
    ranked = index.search({str(i): query for i, query in enumerate(given.queries)}, 30)
    for number, row in enumerate(found.tolist()):
        others = [int(d) for d in ranked[str(number)] if int(d) != row[0]]
        assert len(set(row)) == 6
        assert set(row[1:3]) <= set(others[:10])
        assert set(row[3:]) <= set(others[10:]) or len(others) < 13


@pytest.mark.parametrize("analyzer", ["whitespace", "chain(possessive=True,stem=krovetz)"])
def test_the_parts_of_bm25_add_up_to_the_ranker(analyzer):
    collection = open_collection("sample")
    ranker = open_ranker("bm25(variant=parm,k1=1.1,b=0.3,k2=50)", Setting(collection, analyzer))
    index = LexicalIndex.of(ranker, collection.docs)
    queries = [*list(collection.queries.values())[:12], "the glass the glass glass of unheardofwords"]
    doc = np.stack([np.random.default_rng(i).permutation(len(collection.docs))[:20] for i in range(len(queries))])
    terms, texts = terms_of(index, queries, doc.astype(np.int32)), list(collection.docs.values())
    for q, query in enumerate(queries):
        expected = ranker.score([query] * 20, [texts[d] for d in doc[q]])
        np.testing.assert_allclose(terms.value[q], expected, rtol=1e-5, atol=1e-5)
        rows = slice(terms.query_ends[q], terms.query_ends[q + 1])
        for c, d in enumerate(doc[q]):
            own = {terms.names[t] for t in terms.doc[terms.doc_ends[d] : terms.doc_ends[d + 1]]}
            assert own == set(index.ranker.analyzer.terms(texts[d]))
            assert terms.absent[rows, c].tolist() == [terms.names[t] not in own for t in terms.query[rows]]


def test_words_that_are_left_out_show_what_they_gave(prepared):
    """The toy ranker gives a point for a word or its synonym: leaving the only one out takes it away."""
    for number in range(0, prepared.candidates.doc.size, 37):
        query = prepared.queries[number // prepared.candidates.doc.shape[1]].split()
        doc = prepared.docs[prepared.candidates.doc.ravel()[number]].split()
        values = prepared.occlusion.values[prepared.occlusion.ends[number] : prepared.occlusion.ends[number + 1]]
        for word, row in zip(query, values.reshape(len(query), len(doc)), strict=True):
            holding = [w for w in doc if w in (word, SYNONYMS.get(word))]
            assert row.tolist() == [float([w] == holding) for w in doc]


def cross_encoder(folder, kind):
    """A tiny random cross-encoder of some architecture."""
    from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedTokenizerFast

    folder.mkdir()
    (folder / "tokens.json").write_bytes(wordpiece_tokenizer([" ".join(WORDS)] * 3, 300))
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokens.json"), **names).save_pretrained(folder)
    (folder / "tokens.json").unlink()
    wide, shape = kind.endswith("-wide"), {**SHAPE, "vocab_size": 300, "num_labels": 1, "pad_token_id": 0}
    if kind == "distilbert":
        shape = {"dim": 48, "n_layers": 1, "n_heads": 4, "hidden_dim": 96, "vocab_size": 300, "num_labels": 1}
    config = AutoConfig.for_model(kind.removesuffix("-wide"), **shape, **({"embedding_size": 24} if wide else {}))
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    return f"cross:{folder}"


@pytest.mark.parametrize(("kind", "attends"), [
    ("bert", True), ("distilbert", False), ("roberta", False), ("electra-wide", True),
])  # fmt: skip
def test_attention_is_offered_by_models_that_it_can_be_read_from(world, tmp_path, kind, attends):
    """What `auto` chooses carries through to blocks of alignments."""
    auto = recipe(world, phases=AUTO, data={**recipe(world).data, "limit": 3})
    name = cross_encoder(tmp_path / "model", kind)
    target = open_target(name, Setting())
    assert target.attends is attends
    pretrained = recipe(world, phases=AUTO, encoder="a/b", tokenizer="")
    assert choose_alignment(pretrained, target) == ("attention" if attends else "embeddings")
    made = prepare(auto, name)
    assert made.facts["alignment"] == ("attention" if attends else "occlusion")
    network = made.network(0)
    assert alignment_blocks(made, network, token_texts(network, made.queries, made.docs), "cpu").abs().sum() > 0


def test_what_aligns_is_what_there_is(world, tmp_path):
    toy, cross = open_target(Toy(), Setting()), open_target("cross:bundled", Setting())
    assert choose_alignment(recipe(world), toy) == choose_alignment(recipe(world, phases=AUTO), toy) == "occlusion"
    assert choose_alignment(recipe(world, phases=AUTO), cross) == "attention"
    assert open_target("cross:bundled(passages=max)", Setting()).folder is None
    for method, what in (("attention", "no attention to offer"), ("embeddings", "has no embeddings")):
        with pytest.raises(WhyrankError, match=what):
            choose_alignment(recipe(world, phases={"first": {"alignment": method}}), toy)
    # a cross-encoder trained here over another encoder has no attention to read, but its own embeddings
    shape = {"model_type": "distilbert", "dim": 48, "n_layers": 1, "n_heads": 4, "hidden_dim": 96, "vocab_size": 300}
    (tmp_path / "tokenizer.json").write_bytes(wordpiece_tokenizer([" ".join(WORDS)] * 3, 300))
    save(make("cross", new_encoder(shape), ModelTokenizer(tmp_path), max_query=8, max_doc=16), tmp_path / "net")
    target = open_target(f"cross:{tmp_path / 'net'}", Setting())
    assert (target.folder, target.attends) == (tmp_path / "net", False)
    assert choose_alignment(recipe(world, phases=AUTO), target) == "embeddings"


def test_what_cannot_be_learned_from_is_refused(world):
    class Failing(Toy):
        def score(self, queries, docs):
            return np.full(len(docs), np.nan)

    class Alike(Toy):
        def score(self, queries, docs):
            return np.ones(len(docs))

    with pytest.raises(WhyrankError, match="the target 'toy' has no finite score for 2,097 of 2,097 pairs"):
        prepare(recipe(world), Failing())
    with pytest.raises(WhyrankError, match="scores all texts of a query alike"):
        prepare(recipe(world), Alike())
    with pytest.raises(WhyrankError, match="has no phases of parm"):
        prepare(read_recipe("smoke"), Toy())
    with pytest.raises(WhyrankError, match="a run has no scores for other texts"):
        prepare(recipe(world), "run:some.txt")


def test_a_planted_synonym_is_found(prepared, tmp_path):
    """After both phases synonyms weigh more than other words."""
    train_parm(prepared, tmp_path / "net", 0, "cpu", lambda text: None)
    network = load(tmp_path / "net")
    for word, synonym in SYNONYMS.items():
        others = [other for other in WORDS if other not in (word, synonym)]
        with torch.inference_mode():
            weights = torch.sigmoid(forward(network, [word] * (1 + len(others)), [synonym, *others]))
        assert weights[0] > weights[1:].max()
        assert weights[0] > 0.1 > weights[1:].mean()


@pytest.mark.parametrize("positives", ["gold", "target"])
def test_examples_are_candidates_of_their_query(positives):
    _, _, doc, scores = toy_candidates()
    rows = np.arange(0, len(doc), 2)
    sampler = CandidateSampler(TargetScores(doc, scores), rows, 3, positives, "first")
    one, two, again = sampler.epoch(0, 0), sampler.epoch(0, 1), sampler.epoch(0, 0)
    assert sorted(one.query.tolist()) == rows.tolist()
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not np.array_equal(one.doc, two.doc)
    assert one.target.shape[1] == 3 + 2 + 6
    for query, pair, target in zip(one.query, one.doc, one.target, strict=True):
        assert (pair // doc.shape[1] == query).all()
        assert len(set(pair.tolist())) == 3
        np.testing.assert_array_equal(target[:3], scores.ravel()[pair])
        assert pair[0] % doc.shape[1] == 0 if positives == "gold" else target[0] == target[:3].max()
        assert 0 <= target[3:5].min() <= target[3:5].max() <= 1
    own = CandidateSampler(TargetScores(doc, scores), rows, 9, "target", "second", own=False).epoch(0, 0)
    assert (np.sort(own.doc % doc.shape[1], axis=1) == [1, 2, 3]).all()
