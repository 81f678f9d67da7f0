"""Texts expanded with generated queries, by a tiny model with random weights."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from tiny_generators import KINDS, generator
from whyrank.core import MissingExtra, WhyrankError, cache_folder
from whyrank.rankers import Setting, doc2query, open_ranker, rankers
from whyrank.rankers.doc2query import ExpansionStore
from whyrank.testing import RankerContract
from whyrank.testing.examples import sample
from whyrank.text import generation

torch = pytest.importorskip("torch", reason="the extra models is not installed")
transformers = pytest.importorskip("transformers", reason="the extra models is not installed")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=KINDS)
def model(request, tmp_path_factory):
    return generator(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture
def calls(monkeypatch):
    """The texts that the model is really asked about."""
    asked, real = [], generation.generate

    def counting(texts, *args):
        asked.extend(texts)
        return real(texts, *args)

    monkeypatch.setattr(doc2query, "generate", counting)
    return asked


class TestContract(RankerContract):
    @pytest.fixture(autouse=True)
    def path(self, model):
        self.model = model

    def make(self):
        return open_ranker(f"doc2query:{self.model}(n=1)", self.setting())

    def pairs(self):
        return [("berlin wall", "berlin wall fell"), ("city", ""), ("a wall", "a\ud800"), ("", "when"), ("a", "é")]


def test_scores_are_those_of_the_expanded_text(model):
    setting = Setting(sample())
    ranker, bm25 = open_ranker(f"doc2query:{model}(n=3,seed=5)", setting), open_ranker("bm25", setting)
    queries, texts = ["berlin wall", "city wall", "berlin wall"], ["berlin fell", "a city", "a city"]
    expanded = [" ".join([text, *generation.generate([text], model, 3, 5)[0]]) for text in texts]
    assert ranker.score(queries, texts).tolist() == bm25.score(queries, expanded).tolist()
    assert ranker.expanded(["berlin fell"]) == expanded[:1]
    assert expanded[0] != "berlin fell"


def test_any_ranker_behind_it_with_the_statistics_of_the_collection_as_it_is(model):
    setting = Setting(sample())
    assert repr(open_ranker(f"doc2query:{model}", setting)).endswith(f"ranker={open_ranker('bm25', setting)!r}")
    ranker = open_ranker(f"doc2query:{model}(ranker='ql( mu=5 )')", setting)
    assert "ql(mu=5" in repr(ranker)
    assert (ranker.scale, ranker.cacheable) == ("log probability", True)
    assert rankers.create(ranker.name).ranker == "ql(mu=5)"
    made = rankers.create("doc2query:some/model(n=2,seed=3,ranker='bm25(k1=1.2)')")
    assert rankers.create(made.name) == made


def test_each_text_costs_the_model_once(model, calls):
    ranker = open_ranker(f"doc2query:{model}(n=2)")
    first = ranker.score(["wall", "city", "wall"], ["berlin", "berlin", "city"])
    assert sorted(calls) == ["berlin", "city"]
    ranker.score(["fell"], ["berlin"])
    again = open_ranker(f"doc2query:{model}(n=2)")
    assert again.score(["wall", "city", "wall"], ["berlin", "berlin", "city"]).tolist() == first.tolist()
    assert len(calls) == 2
    for other in ("n=3", "n=2,seed=1"):
        open_ranker(f"doc2query:{model}({other})").score(["wall"], ["berlin"])
    assert len(calls) == 4
    assert (cache_folder() / "expansions.sqlite").is_file()


def test_other_weights_are_another_model(model, calls, tmp_path):
    copy = Path(shutil.copytree(model, tmp_path / "copy"))
    same = open_ranker(f"doc2query:{copy}")
    assert repr(same) == repr(open_ranker(f"doc2query:{model}"))
    open_ranker(f"doc2query:{model}").score(["wall"], ["berlin"])
    same.score(["wall"], ["berlin"])
    assert len(calls) == 1
    other = Path(shutil.copytree(model, tmp_path / "other"))
    with open(other / "model.safetensors", "r+b") as file:
        file.seek(-4, 2)
        file.write(b"\0\0\0\1")
    assert repr(open_ranker(f"doc2query:{other}")) != repr(same)


@pytest.mark.parametrize("arguments", ["n=0", "n=1.5", "seed=-1", "ranker=3", "ranker='bm25('", "ranker=nothing"])
def test_refusals(arguments):
    with pytest.raises(WhyrankError):
        open_ranker(f"doc2query:m({arguments})")


def test_what_is_not_there_is_one_clear_line(model, tmp_path, monkeypatch):
    for spec, what in (
        ("no/such/model", "no/such/model"),
        (tmp_path, "no weights in safetensors form"),
        (f"{model}(device=nowhere)", "device 'nowhere' cannot be used"),
    ):
        with pytest.raises(WhyrankError, match=what):
            open_ranker(f"doc2query:{spec}").score(["q"], ["never asked about"])
    generation.load.cache_clear()
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"whyrank\[models\]"):
        open_ranker(f"doc2query:{model}").score(["q"], ["d"])


@pytest.mark.parametrize("value", ["no json", "3"])
def test_a_damaged_store_is_one_clear_line(tmp_path, value):
    path = tmp_path / "e.sqlite"
    store = ExpansionStore(path)
    store.keep("m", [("text", ["one"])])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE expansions SET queries = ?", (value,))
    connection.close()
    with pytest.raises(WhyrankError, match=r"e\.sqlite: the cache of generated queries is damaged"):
        store.find("m", ["text"])


def test_texts_are_written_about_in_batches_of_like_length(model, monkeypatch):
    batches, real = [], generation.generate
    monkeypatch.setattr(doc2query, "generate", lambda texts, *args: batches.append(texts) or real(texts, *args))
    monkeypatch.setitem(doc2query._TOKENS, "cpu", 400)
    texts = [*(f"wall {i} " * 20 for i in range(6)), *(f"city {i}" for i in range(6)), " "]
    ranker = open_ranker(f"doc2query:{model}(n=1,device=cpu)")
    found = ranker.expanded(texts)
    assert [len(batch) for batch in batches] == [4, 4, 4]
    assert [len({text.count(" ") > 2 for text in batch}) for batch in batches] == [1, 2, 1]
    assert ranker.expanded(texts[::-1]) == found[::-1]
    assert len(batches) == 3


def test_what_is_written_does_not_depend_on_the_batch(model, monkeypatch, tmp_path):
    texts, found = [f"berlin wall {i} " * (1 + i % 5) for i in range(8)], []
    for tokens in (1, 1 << 20):
        monkeypatch.setenv("WHYRANK_CACHE", str(tmp_path / str(tokens)))
        monkeypatch.setitem(doc2query._TOKENS, "cpu", tokens)
        found.append(open_ranker(f"doc2query:{model}(device=cpu)").expanded(texts))
    assert found[0] == found[1]
