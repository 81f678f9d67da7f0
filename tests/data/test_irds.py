"""Collections of ir_datasets, with a small one that needs no network."""

from __future__ import annotations

import itertools
import pickle
import sys

import ir_datasets
import pytest
from ir_datasets.formats import BaseDocs, BaseScoredDocs, TrecQrels
from ir_datasets.formats.base import GenericScoredDoc
from ir_datasets.util.download import LocalDownload

from whyrank.core import BadInput, MissingExtra, UnknownName, WhyrankError
from whyrank.data import irds, open_collection, texts_of

numbers = itertools.count()


class Failing(BaseDocs):
    def docs_iter(self):
        raise ConnectionError("no route to host\nand a long story")

    def docs_store(self):
        return self.docs_iter()

    def docs_count(self):
        return None


class Scored(BaseScoredDocs):
    def scoreddocs_iter(self):
        yield GenericScoredDoc("1", "a", 2.5)
        yield GenericScoredDoc("1", "b", 1.5)


@pytest.fixture
def register(monkeypatch):
    """Register a data set under a name of its own and forget it afterwards."""
    monkeypatch.setattr(ir_datasets.registry, "_registered", dict(ir_datasets.registry._registered))

    def add(dataset, name="whyrank-small"):
        full = f"{name}-{next(numbers)}"
        ir_datasets.registry.register(full, dataset)
        return full

    return add


@pytest.fixture
def small(tmp_path):
    (tmp_path / "docs.tsv").write_text("a\tone\nb\ttwo\nc\t\n")
    (tmp_path / "queries.tsv").write_text("1\tfirst\n2\tsecond\n")
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 0\n1 0 z 1\n")
    return ir_datasets.create_dataset(
        docs_tsv=str(tmp_path / "docs.tsv"),
        queries_tsv=str(tmp_path / "queries.tsv"),
        qrels_trec=str(tmp_path / "qrels"),
    )


def test_a_small_collection_is_held_in_memory(register, small):
    name = register(small)
    collection = open_collection(f"irds:{name}")
    assert collection.name == f"irds:{name}"
    assert collection.docs == {"a": "one", "b": "two", "c": ""}
    assert isinstance(collection.docs, dict)
    assert collection.queries == {"1": "first", "2": "second"}
    assert collection.qrels == {"1": {"a": 1, "b": 0, "z": 1}}
    assert collection.notes == [
        "docs: documents with an empty text: 1 (c)",
        "qrels: documents that the collection does not have: 1 (z)",
    ]


def test_a_large_one_is_looked_up(register, small, monkeypatch):
    monkeypatch.setenv("WHYRANK_MEMORY_LIMIT", "4")
    name = register(small)
    docs = open_collection(f"irds:{name}").docs
    assert isinstance(docs, irds.StoredDocs)
    assert docs == {"a": "one", "b": "two", "c": ""}
    assert len(docs) == 3
    assert "a" in docs
    assert "z" not in docs
    assert texts_of(docs, ["b", "a", "b"]) == ["two", "one", "two"]
    with pytest.raises(KeyError):
        docs["z"]
    with pytest.raises(KeyError):
        texts_of(docs, ["a", "z"])
    assert pickle.loads(pickle.dumps(docs))["b"] == "two"

    assert open_collection(f"irds:{name}").notes == [], "a large one is checked only when strict"
    with pytest.raises(BadInput, match="qrels: document 'z' is not in the collection"):
        open_collection(f"irds:{name}", strict=True)


def test_scored_documents_are_a_run(register, small):
    dataset = ir_datasets.Dataset(*small._constituents, Scored())
    runs = open_collection(f"irds:{register(dataset)}").runs
    assert dict(runs) == {"scoreddocs": {"1": {"a": 2.5, "b": 1.5}}}
    with pytest.raises(KeyError):
        runs["other"]


def test_grades_have_the_names_of_ir_datasets(register, small, tmp_path):
    described = {1: "Relevant: it answers. All of it", 0: "References of no interest.", -2: "spam " * 20, 4: "best"}
    qrels = TrecQrels(LocalDownload(str(tmp_path / "qrels")), described)
    grades = open_collection(f"irds:{register(ir_datasets.Dataset(*small._constituents[:2], qrels))}").grades
    names = {0: "References of no interest", 1: "Relevant", -2: "spam spam spam spam spam spam spam …", 4: "best"}
    assert grades.names == names
    assert (grades.relevant, grades.nonrelevant) == (1, 0)
    assert open_collection(f"irds:{register(small, 'passages/trec-dl-2019/part')}").grades.relevant == 2


def test_what_is_missing_is_noted_or_refused(register, small):
    docs, queries, _ = small._constituents
    name = register(ir_datasets.Dataset(docs, queries))
    assert f"irds:{name} has no judgements" in open_collection(f"irds:{name}").notes
    name = register(ir_datasets.Dataset(docs))
    with pytest.raises(WhyrankError, match=rf"irds:{name} has no queries"):
        open_collection(f"irds:{name}")
    with pytest.raises(UnknownName, match="did you mean 'beir/scifact'"):
        open_collection("irds:beir/scifct")


def test_failing_downloads_are_one_clear_line(register, small):
    name = register(ir_datasets.Dataset(Failing(), *small._constituents[1:]))
    with pytest.raises(WhyrankError) as caught:
        open_collection(f"irds:{name}")
    assert str(caught.value).startswith(f"irds:{name} could not be obtained (no route to host); check the network")
    assert "\n" not in str(caught.value)
    with pytest.raises(WhyrankError, match="could not be obtained"):
        irds.StoredDocs(name)["a"]


def test_without_ir_datasets_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtra, match=r"irds:x needs an optional dependency.*whyrank\[data\]"):
        open_collection("irds:x")
