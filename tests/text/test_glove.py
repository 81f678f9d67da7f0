"""GloVe against plain loops: counts of near words, steps of AdaGrad, and what the vectors are good for."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.core import WhyrankError, generator
from whyrank.text import Tokens, analyzers
from whyrank.text.vectors import GloVe, collection_vectors, glove
from whyrank.text.vectors.glove import cooccurrences, first_parameters, visiting_order

TOPICS = [["pot", "pan", "oven", "dough", "bake", "salt"], ["sail", "mast", "deck", "anchor", "harbour", "tide"]]


def tokens_of(texts):
    """Texts as numbers, with the words that they stand for in the order of first sight."""
    words = list(dict.fromkeys(word for text in texts for word in text))
    ids = [words.index(word) for text in texts for word in text]
    return Tokens(np.array(ids, np.int32), np.cumsum([0, *map(len, texts)])), words


def topical(size=300, seed=1):
    """Texts of one topic each, with words that all have."""
    draw = Random(seed)
    return [draw.choices([*draw.choice(TOPICS), "and", "of"], k=draw.randint(5, 25)) for _ in range(size)]


def near(texts, window):
    """How often words stand near each other, with exact fractions."""
    found = defaultdict(Fraction)
    for text in texts:
        for i in range(len(text)):
            for j in range(len(text)):
                if i != j and abs(i - j) <= window:
                    found[text[i], text[j]] += Fraction(1, abs(i - j))
    return found


texts_of_words = st.lists(st.lists(st.integers(0, 4), max_size=9), max_size=5)


@given(texts_of_words, st.integers(1, 12))
def test_counts_of_near_words(texts, window):
    ids = np.array([word for text in texts for word in text], np.int32)
    found = cooccurrences(Tokens(ids, np.cumsum([0, *map(len, texts)])), 5, window)
    expected = sorted((i, j, float(x)) for (i, j), x in near(texts, window).items())
    assert list(zip(found.row.tolist(), found.column.tolist(), found.counts.tolist(), strict=True)) == expected


def plain_epoch(cells, state, x_max, alpha, rate):
    """One epoch of AdaGrad in double precision, a cell at a time; gives the sum of the losses before each step."""
    words, contexts, b, c, words_seen, contexts_seen, b_seen, c_seen = state
    loss = 0.0
    for i, j, x in zip(*cells, strict=True):
        weight = min(1.0, (x / x_max) ** alpha)
        error = words[i] @ contexts[j] + b[i] + c[j] - np.log(x)
        loss += weight * error**2
        gradients = weight * error * contexts[j], weight * error * words[i], weight * error, weight * error
        parameters = ((words, words_seen, i), (contexts, contexts_seen, j), (b, b_seen, i), (c, c_seen, j))
        for (values, seen, at), gradient in zip(parameters, gradients, strict=True):
            values[at] = values[at] - rate * gradient / np.sqrt(seen[at])
            seen[at] = seen[at] + gradient**2
    return loss


@pytest.mark.parametrize("dims", [1, 3, 4, 6, 50])
@pytest.mark.parametrize("x_max", [0.5, 100.0])
def test_training_is_that_of_a_plain_implementation(dims, x_max):
    tokens, words = tokens_of(topical(8))
    model = GloVe(dims=dims, x_max=x_max, epochs=3, seed=9)
    found, losses = model.train(tokens, words)
    cells = cooccurrences(Tokens(found.rows(words)[tokens.ids], tokens.offsets), len(words), model.window)
    rng = generator(9, "glove")
    state = [np.array(values, np.float64) for values in first_parameters(len(words), dims, rng)]
    order = visiting_order(cells, rng)
    assert sorted(order.tolist()) == list(range(len(cells.row)))
    visits = [values[order] for values in cells]
    for loss in losses:
        assert loss * len(order) == pytest.approx(plain_epoch(visits, state, x_max, 0.75, 0.05), rel=1e-4)
    np.testing.assert_allclose(found.matrix, state[0] + state[1], rtol=1e-3, atol=1e-5)


def test_words_of_one_topic_are_closer():
    found = GloVe(dims=10, seed=4).train(*tokens_of(topical())).vectors
    units = [found.units(found.rows(topic)) for topic in TOPICS]
    within = [np.sort((unit @ unit.T).ravel())[: -len(unit)].mean() for unit in units]
    assert min(within) > (units[0] @ units[1].T).mean() + 0.3


def same(one, two):
    return list(one.words) == list(two.words) and one.matrix.tobytes() == two.matrix.tobytes()


def test_the_same_seed_gives_the_same_bits_in_any_order():
    texts = topical(120)
    first = GloVe(epochs=3).train(*tokens_of(texts)).vectors
    assert same(first, GloVe(epochs=3).train(*tokens_of(texts)).vectors)
    Random(0).shuffle(texts)
    assert same(first, GloVe(epochs=3).train(*tokens_of(texts)).vectors)
    assert not same(first, GloVe(epochs=3, seed=1).train(*tokens_of(texts)).vectors)


def test_another_process_gives_the_same_bits():
    texts = topical(40)
    program = (
        "import sys, json, hashlib; from whyrank.text import analyzers; from whyrank.text.vectors.glove import GloVe;"
        "a = analyzers.create('whitespace'); t = a.docs(json.load(sys.stdin));"
        "print(GloVe(epochs=2).train(t, a.vocabulary.terms).vectors.digest)"
    )
    given_ = str([" ".join(text) for text in texts[::-1]]).replace("'", '"')
    done = subprocess.run([sys.executable, "-c", program], input=given_, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == GloVe(epochs=2).train(*tokens_of(texts)).vectors.digest


def test_which_words_get_vectors():
    common = [["a", "b", "rare"], ["a", "b", "alone"], ["lonely"]]
    assert list(GloVe().train(*tokens_of(common)).vectors.words) == ["a", "b", "alone", "rare"]
    assert list(GloVe(min_count=2).train(*tokens_of(common)).vectors.words) == ["a", "b"]
    assert list(GloVe(most_words=3).train(*tokens_of(common)).vectors.words) == ["a", "b", "alone"]
    many = [["a", "b"]] * 5000 + [["a", "once"]]
    assert list(GloVe(epochs=1).train(*tokens_of(many)).vectors.words) == ["a", "b"]
    assert GloVe().train(*tokens_of([["a", "b"]])).vectors.matrix.shape == (2, 50)


@pytest.mark.parametrize(
    "wrong",
    [{"dims": 0}, {"window": 21}, {"window": 0}, {"epochs": 1.5}, {"min_count": 0}, {"rate": 0}, {"x_max": -1}],
)
def test_wrong_parameters(wrong):
    with pytest.raises(WhyrankError, match=f"GloVe: {next(iter(wrong))} must be"):
        GloVe(**wrong)


@pytest.fixture
def docs():
    return {f"d{i}": " ".join(text) for i, text in enumerate(topical(150))}


@pytest.fixture
def trainings(monkeypatch):
    done = []
    real = GloVe.train
    monkeypatch.setattr(
        GloVe, "train", lambda self, tokens, terms: (done.append(tokens), real(self, tokens, terms))[1]
    )
    return done


SPLIT = analyzers.create("whitespace")


def test_vectors_of_a_collection_are_kept(docs, trainings):
    model = GloVe(epochs=2)
    first = collection_vectors(docs, SPLIT, model)
    assert same(first, collection_vectors(docs, SPLIT, model))
    assert same(first, collection_vectors({f"x{i}": docs[i] for i in reversed(docs)}, SPLIT, model))
    assert len(trainings) == 1
    others = [(SPLIT, GloVe(epochs=2, seed=1)), (SPLIT, GloVe(epochs=3)), (analyzers.create("lucene"), model)]
    assert not any(same(first, collection_vectors(docs, *other)) for other in others)
    assert not same(first, collection_vectors({**docs, "d0": "sail pot"}, SPLIT, model))
    assert len(trainings) == 5


def test_documents_are_drawn_by_seed_whatever_their_order(docs, trainings, monkeypatch):
    monkeypatch.setattr(glove, "_CHUNK", 7)
    drawn = []
    for seed in (0, 0, 1):
        backwards = dict(reversed(docs.items())) if drawn else docs
        monkeypatch.setenv("WHYRANK_CACHE", "/dev/null/none")
        vectors = collection_vectors(backwards, SPLIT, GloVe(epochs=1, most_tokens=500, seed=seed))
        drawn.append((vectors, sorted(map(tuple, texts_in(trainings[-1])))))
    assert same(drawn[0][0], drawn[1][0])
    assert drawn[0][1] == drawn[1][1] != drawn[2][1]
    lengths = [sum(map(len, texts)) for _, texts in drawn]
    assert all(475 <= length <= 500 for length in lengths)
    every = [tuple(text.split()) for text in docs.values()]
    assert all(text in every for _, texts in drawn for text in texts)


def texts_in(tokens):
    words = [SPLIT.vocabulary.terms[i] for i in tokens.ids]
    return [words[a:b] for a, b in zip(tokens.offsets, tokens.offsets[1:], strict=False)]
