"""Explanations of neural Model 1: the score follows from the matrix."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.rankers import open_ranker, query_scale, rankers
from whyrank.rankers.lexical import Explaining

KINDS = {"neural-model1": "tokens", "bert-model1": "network"}
TEXTS = st.text("abc rt?.é", max_size=60) | st.lists(st.sampled_from(["the", "wall", "fell", "of"])).map(" ".join)


@pytest.fixture(params=KINDS)
def ranker(request, models):
    return open_ranker(f"{request.param}:{models.folder(KINDS[request.param], request.param)}(device=cpu)")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, TEXTS)
def test_the_score_is_recovered_from_the_matrix(ranker, query, text):
    found = ranker.explain(query, text)
    assert found.recomputed == pytest.approx(found.score, abs=1e-6)
    assert found.score == ranker.score([query], [text])[0]
    assert (found.cells >= 0).all()
    assert not found.background.any()
    json.dumps(found.as_json())


def test_pieces_are_the_terms(ranker):
    found = ranker.explain("the wall", "berlin wall fell?")
    assert list(found.query_terms) == ["the", "wall"]
    assert list(found.document_terms) == ["berlin", "wall", "fell", "?"]
    assert found.cells[1, 1] == pytest.approx(0.3 / 4)
    assert (found.kind, found.floor) == ("log", 1e-8)


def test_it_says_that_it_explains(ranker):
    assert isinstance(ranker, Explaining)
    assert rankers.factory(ranker.registered).explains
    assert ranker.scale == "log probability"


def test_windows_have_no_matrix_in_common(models):
    ranker = open_ranker(f"neural-model1:{models.folder('tokens', 'neural-model1')}(passages=max)")
    with pytest.raises(WhyrankError, match="explain with passages=truncate"):
        ranker.explain("the wall", "berlin")


def test_a_query_counts_with_its_distinct_pieces_in_a_fuse(ranker):
    """As `model1` has it: the wall is asked twice, and a query of 40 words ends after 32 tokens."""
    texts = ["berlin wall fell?", "the the of"]
    fused = open_ranker(f"fuse(of=['{ranker.name}','{ranker.name}'],weights=[0.25,0.75],normalise=query)")
    for query, tokenizer in (("wall of wall", 2), ("the", 1), ("", 1), ("the " * 31 + "wall of berlin", 2)):
        assert query_scale(ranker, query) == tokenizer
        found = fused.score([query] * 2, texts)
        assert found == pytest.approx(ranker.score([query] * 2, texts) / tokenizer)


def test_what_is_cut_is_told(ranker):
    """Without context 477 tokens of a text are read; the tiny BERT has 128 places, and reads three chunks."""
    whole = {"neural-model1": 477, "bert-model1": 3 * (128 - 32 - 3)}[ranker.registered]
    assert not ranker.explain("the " * 32, "wall " * whole).notes
    assert ranker.explain("the " * 33, "wall " * whole).notes == ("the query is cut: its first 32 tokens are read",)
    told = f"the text is cut: its first {whole:,} tokens are read"
    assert ranker.explain("the", "wall " * (whole + 1)).notes == (told,)
    far = ranker.explain("the", "wall" + " " * 24 * whole + "fell")
    assert far.notes == (f"the text is cut: its first {24 * whole:,} characters are read",)
    assert far.document_terms == ["wall"]
    assert not ranker.explain("the", "wall" + " " * 24 * whole).notes
