"""A table built from a PaRM, against pairs scored one by one; its vocabulary, against plain counting."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pair_models import forward, saved
from whyrank.core import BadInput, Processes, Serial, WhyrankError
from whyrank.data import open_collection
from whyrank.learners import table_learners
from whyrank.learners.parm import PaRM, build_table
from whyrank.learners.parm.pairs import Blocks
from whyrank.learners.parm.table import make_vocabulary
from whyrank.networks import load, make, save
from whyrank.tables import open_table
from whyrank.text import analyzers

torch.set_num_threads(1)
TEXTS = {"d1": "cab bad cab dice", "d2": "bad fad a", "d3": "dice DICE jig", "d4": "bad cab ab zebra yacht"}
QUIET = lambda line: None  # noqa: E731


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, texts in (("one", dict(list(TEXTS.items())[:3])), ("two", {"d4": TEXTS["d4"]})):
        (tmp_path / name).mkdir()
        lines = [json.dumps({"id": i, "text": text}) for i, text in texts.items()]
        (tmp_path / name / "corpus.jsonl").write_text("\n".join(lines) + "\n")
        (tmp_path / name / "queries.tsv").write_text("q1\tjig of cab\n" if name == "one" else "q2\tunheard\n")
    saved(tmp_path)
    return tmp_path


def by_hand(terms_q, terms_d, network="parm"):
    made = load(network)
    with torch.inference_mode():
        return {(q, d): float(torch.sigmoid(forward(made, [q], [d]))) for q in terms_q for d in terms_d}


def settings_of(**settings) -> PaRM:
    return PaRM("parm", **{"threshold": 0.2, "analyzer": "whitespace"} | settings)


def build(parm, out, *audit):
    return build_table(parm, ["one", "two"], out, audit=audit, say=QUIET)


def vocabulary(*given, analyzer="whitespace", audited=(), **settings):
    opened = [open_collection(name) for name in ("one", "two")]
    return make_vocabulary(PaRM("parm", *given, **settings), opened, analyzers.create(analyzer), audited)


def test_the_vocabulary_is_that_of_plain_counting(folders):
    texts = Counter(term for text in TEXTS.values() for term in set(text.split()))
    occurrences = Counter(term for text in TEXTS.values() for term in text.split())
    expected = sorted(texts, key=lambda term: (-texts[term], term))
    found, small = vocabulary(), vocabulary(2, 4)
    assert found.query_terms == found.doc_terms == expected
    assert found.doc_counts.tolist() == [occurrences[term] for term in expected]
    assert (small.query_terms, small.doc_terms) == (expected[:2], expected[:4])


def test_audited_words_and_queries_bring_their_terms(folders):
    found = vocabulary(1, 4, audited=["yacht", "bad"])
    assert [found.query_terms[i] for i in found.audited] == ["yacht", "bad"]
    assert found.query_terms == ["bad", "yacht"]
    assert vocabulary(from_queries=True).query_terms == ["cab", "jig", "of", "unheard"]
    stems = vocabulary(analyzer="lucene", audited=["Dices"])
    assert stems.query_terms[stems.audited[0]] == "dice"
    more = vocabulary(1, 4, audited=["yacht"], queries_of=["one"])
    assert more.query_terms == ["bad", "cab", "jig", "yacht", "of"]
    assert more.doc_terms == found.doc_terms
    assert vocabulary(1, 4, from_queries=True, queries_of=["two"]).query_terms == ["cab", "unheard"]
    wide = vocabulary(1, 2, analyzer="lucene", doc_words=["cabs", "cabz", "the", "dice cabz"])
    assert wide.doc_terms == ["bad", "cab", "dice", "cabz"]
    assert wide.doc_counts.tolist() == [3, 3, 3, 0]
    for word, what in (("the", "drops it"), ("two words", "makes 2 terms")):
        with pytest.raises(WhyrankError, match=what):
            vocabulary(analyzer="lucene", audited=[word])


def test_the_learner_by_name_builds_the_same(folders):
    learner = table_learners.create("parm:parm(analyzer=whitespace,threshold=0.2,doc_terms=6,top=3)")
    assert table_learners.create(learner.name) == learner
    expected = build_table(settings_of(doc_terms=6, top=3), ["one"], "t.parquet", say=QUIET).table
    found = learner.learn(open_collection("one"))
    assert list(found.rows()) == list(expected.rows())
    assert found.facts["learner"] == learner.name
    assert found.facts["collections"] == ["one"]
    with pytest.raises(WhyrankError, match="give one"):
        learner.learn()
    with pytest.raises(WhyrankError, match="parm: top must be a whole number"):
        table_learners.create("parm:parm(top=0)")


def test_entries_are_those_of_pairs_scored_one_by_one(folders):
    build(settings_of(), "t.parquet", "dice")
    table, audit = open_table("t.parquet", check=True), open_table("t.audit.parquet", check=True)
    weights = by_hand(table.query_terms, table.doc_terms)
    expected = {pair: w for pair, w in weights.items() if w >= 0.2 and pair[0] != pair[1]}
    found = {(e.query_term, e.document_term): e.weight for e in table.rows()}
    assert found.keys() == expected.keys()
    assert 0 < len(found) < len(weights) / 1.1
    assert all(abs(found[pair] - expected[pair]) < 1e-5 for pair in expected)
    slice_ = {(e.query_term, e.document_term): e.weight for e in audit.rows()}
    assert slice_.keys() == {("dice", d) for d in table.doc_terms}
    assert all(abs(slice_[pair] - weights[pair]) < 1e-5 for pair in slice_)
    assert table.counts is not None
    assert table.counts[table.doc_numbers["cab"]] == 3
    assert not Path("t.parquet.blocks").exists()


def test_other_processes_score_the_same_blocks(folders):
    tables = [
        build_table(settings_of(), ["one", "two"], out, audit=["cab"], say=QUIET, block=9, executor=executor)
        for out, executor in (("serial.tsv", Serial()), ("processes.tsv", Processes(2)))
    ]
    for serial, others in zip(*tables, strict=True):
        assert serial.digest == others.digest
        assert dict(serial.facts) | {"scored": None} == dict(others.facts) | {"scored": None}


def test_the_best_of_each_term_and_what_facts_tell_of_the_cut(folders):
    every = build(settings_of(threshold=0.0), "t.parquet").table
    made = build(settings_of(threshold=0.0, top=2), "u.parquet", "cab")
    assert list(made.table.rows()) == list(every.prune(top_query=2).rows())
    assert made.table.facts["top"] == 2
    assert "top" not in made.audit.facts


def test_terms_may_stand_between_masks(folders):
    made = build(settings_of(threshold=0.0, frame="masks"), "t.parquet")
    assert made.table.facts["frame"] == "masks"
    network = load("parm").eval()
    mask = network.tokenizer.special["mask"]
    for entry in list(made.table.rows())[::7]:
        query, doc = network.tokenizer.ids([entry.query_term, entry.document_term], 9)
        inputs = [np.array([mask, *query, mask]), np.array([*[mask] * 4, *doc, *[mask] * 24])]
        arrays = {name: torch.from_numpy(array) for name, array in network.arrays([inputs[0]], [inputs[1]]).items()}
        with torch.inference_mode():
            assert abs(entry.weight - float(torch.sigmoid(network(arrays)))) < 1e-5
    save(network, "informed", frame="runs")
    for frame, expected in ((None, "runs"), ("masks", "masks"), ("bare", None)):
        build(replace(settings_of(frame=frame), resource="informed"), "u.parquet")
        assert open_table("u.parquet").facts.get("frame") == expected
    with pytest.raises(WhyrankError, match="unknown value of parm: frame 'mask'"):
        build(settings_of(frame="mask"), "v.parquet")


def test_what_changed_is_noticed(folders, monkeypatch):
    """Another threshold, vocabulary or network does not go on from the blocks of a stopped build."""
    with monkeypatch.context() as patch:
        real = Blocks.add

        def add(self, block):
            real(self, block)
            raise KeyboardInterrupt

        patch.setattr(Blocks, "add", add)
        with pytest.raises(KeyboardInterrupt):
            build_table(settings_of(), ["one", "two"], "t.tsv", say=QUIET, block=1)
    assert len(list(Path("t.tsv.blocks").iterdir())) == 1
    changed = load("parm")
    changed.outer.bias.data += 0.5
    save(changed, "changed")
    for other in (settings_of(threshold=0.3), settings_of(doc_terms=3), replace(settings_of(), resource="changed")):
        with pytest.raises(BadInput, match="another network, vocabulary, precision or setting"):
            build(other, "t.tsv")
    again, whole = (
        build_table(settings_of(), ["one", "two"], out, say=QUIET, block=1) for out in ("t.tsv", "whole.tsv")
    )
    assert again.table.digest == whole.table.digest
    save(make("cross", changed.encoder, changed.tokenizer), "cross")
    with pytest.raises(BadInput, match="of architecture cross, not parm"):
        build(replace(settings_of(), resource="cross"), "u.tsv")
