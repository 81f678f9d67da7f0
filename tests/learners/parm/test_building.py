"""A table built from a PaRM, against pairs scored one by one; its vocabulary, against plain counting."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from whyrank.core import BadInput, WhyrankError
from whyrank.data import open_collection
from whyrank.learners import table_learners
from whyrank.learners.parm import Build, audit_file, build_table, collect_build, prepare_build
from whyrank.learners.parm.building import expanded, make_vocabulary, term_counts, work_folder
from whyrank.learners.parm.pairs import Entries, How, Settings, Task, distinct, score_folder
from whyrank.networks import load, make, save
from whyrank.tables import open_table
from whyrank.text import analyzers

sys.path.append(str(Path(__file__).parents[1] / "networks"))
from pair_models import saved

torch.set_num_threads(1)
TEXTS = {"d1": "cab bad cab dice", "d2": "bad fad a", "d3": "dice DICE jig", "d4": "bad cab ab zebra yacht"}
QUIET = lambda line: None  # noqa: E731


@pytest.fixture
def place(tmp_path, monkeypatch):
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
        return {(q, d): float(torch.sigmoid(made.score_texts([q], [d]))) for q in terms_q for d in terms_d}


def asked(**settings) -> Build:
    given = {"threshold": 0.2, "seed": 3} | settings.pop("settings", {})
    return Build("parm", ["one", "two"], "whitespace", settings=Settings(**given), **settings)


def test_the_vocabulary_is_that_of_plain_counting(place):
    opened = [open_collection(name) for name in ("one", "two")]
    counts = Counter(term for text in TEXTS.values() for term in set(text.split()))
    expected = sorted(counts, key=lambda term: (-counts[term], term))
    found = term_counts(opened, analyzers.create("whitespace"))
    assert found.terms == expected
    assert found.texts.tolist() == [counts[term] for term in expected]
    often = Counter(term for text in TEXTS.values() for term in text.split())
    assert found.occurrences.tolist() == [often[term] for term in expected]
    small = make_vocabulary(opened, "whitespace", 2, 4)
    assert small.queries.terms == expected[:2]
    assert small.docs.terms == expected[:4]


def test_audited_words_and_queries_bring_their_terms(place):
    opened = [open_collection(name) for name in ("one", "two")]
    found = make_vocabulary(opened, "whitespace", 1, 4, audited=["yacht", "bad"])
    assert [found.queries.terms[i] for i in found.audited] == ["yacht", "bad"]
    assert sorted(found.queries.terms) == ["bad", "yacht"]
    own = make_vocabulary(opened, "whitespace", from_queries=True)
    assert own.queries.terms == ["cab", "jig", "of", "unheard"]
    assert own.queries.texts.tolist() == [2, 1, 0, 0]
    stems = make_vocabulary(opened, "lucene", audited=["Dices"])
    assert stems.queries.terms[stems.audited[0]] == "dice"
    more = make_vocabulary(opened, "whitespace", 1, 4, audited=["yacht"], queries_of=opened[:1])
    assert more.queries.terms == ["bad", "cab", "jig", "yacht", "of"]
    assert more.queries.texts.tolist() == [3, 2, 1, 1, 0]
    assert more.docs.terms == found.docs.terms
    both = make_vocabulary(opened, "whitespace", 1, 4, from_queries=True, queries_of=opened[1:])
    assert both.queries.terms == ["cab", "unheard"]
    wide = make_vocabulary(opened, "lucene", 1, 2, doc_words=["cabs", "cabz", "the", "dice cabz"])
    assert wide.docs.terms == ["bad", "cab", "dice", "cabz"]
    assert wide.docs.texts.tolist() == [3, 2, 2, 0]
    assert wide.docs.occurrences.tolist() == [3, 3, 3, 0]
    with pytest.raises(WhyrankError, match="leave out --queries-of"):
        make_vocabulary(opened, "whitespace", queries_of=[replace(opened[0], queries={"q": " "})])
    for word, what in (("the", "drops it"), ("two words", "makes 2 terms")):
        with pytest.raises(WhyrankError, match=what):
            make_vocabulary(opened, "lucene", audited=[word])


def test_the_learner_by_name_builds_the_same(place):
    learner = table_learners.create("parm:parm(analyzer=whitespace,threshold=0.2,doc_terms=6,top=3)")
    assert table_learners.create(learner.name) == learner
    build = Build("parm", ["one"], "whitespace", doc_terms=6, settings=Settings(threshold=0.2))
    expected = build_table(build, "t.parquet", top=3, say=QUIET).table
    found = learner.learn(open_collection("one"))
    assert list(found.rows()) == list(expected.rows())
    assert found.facts["learner"] == learner.name
    assert found.facts["collections"] == ["one"]
    with pytest.raises(WhyrankError, match="give one"):
        learner.learn()
    with pytest.raises(WhyrankError, match="parm: top must be a whole number"):
        table_learners.create("parm:parm(top=0)")


def test_entries_are_those_of_pairs_scored_one_by_one(place):
    made = build_table(asked(audit=["dice"]), "t.parquet", say=QUIET)
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
    assert made is not None
    assert table.counts is not None
    assert table.counts[table.doc_numbers["cab"]] == 3
    assert not work_folder("t.parquet").exists()


def test_facts_say_how_it_was_made(place):
    build_table(asked(), "t.arrow", top=2, say=QUIET)
    table = open_table("t.arrow")
    facts = table.facts
    assert (facts["learner"], facts["analyzer"], facts["collections"]) == ("parm", "whitespace", ["one", "two"])
    assert (facts["threshold"], facts["seed"], facts["method"]) == (0.2, 3, "exhaustive")
    assert facts["pairs"] == len(table.query_terms) * len(table.doc_terms)
    assert facts["scored"]["precision"] == "fp32"
    assert len(facts["network"]) == 16
    assert np.diff(table.indptr).max() == 2


def test_three_steps_give_the_same_table(place):
    whole = build_table(asked(audit=["cab"]), "t.parquet", say=QUIET)
    task = prepare_build(asked(audit=["cab"]), place / "prepared")
    assert task.pairs == len(task.queries.sequences) * len(task.docs.sequences)
    assert score_folder(place / "prepared", place / "prepared/results", place / "prepared/network", How(), QUIET)
    made = collect_build(place / "prepared")
    assert whole is not None
    assert made.table.digest == whole.table.digest
    assert made.audit is not None
    assert whole.audit is not None
    assert made.audit.digest == whole.audit.digest


def test_the_best_of_each_term_are_the_same_when_the_rest_stays_there(place):
    whole = build_table(asked(), "t.parquet", top=2, say=QUIET)
    prepare_build(asked(settings={"top": 2}), place / "prepared")
    score_folder(place / "prepared", place / "prepared/results", place / "prepared/network", How(), QUIET)
    assert whole is not None
    found = collect_build(place / "prepared").table
    assert list(found.rows()) == list(whole.table.rows())
    assert np.diff(collect_build(place / "prepared", top=1).table.indptr).max() == 1
    assert np.diff(collect_build(place / "prepared", top=9).table.indptr).max() == 2


def test_facts_tell_the_cut_of_the_table_and_not_of_the_audited_slice(place):
    prepare_build(asked(audit=["cab"], settings={"top": 2}), place / "prepared")
    score_folder(place / "prepared", place / "prepared/results", place / "prepared/network", How(), QUIET)
    made, less = collect_build(place / "prepared"), collect_build(place / "prepared", top=1)
    assert (made.table.facts["top"], less.table.facts["top"]) == (2, 1)
    assert made.audit is not None
    assert "top" not in made.audit.facts


def test_queries_of_other_collections_are_told(place):
    made = build_table(replace(asked(query_terms=1), queries_of=["two"]), "t.parquet", say=QUIET)
    assert made is not None
    assert set(made.table.query_terms) >= {"unheard"}
    assert made.table.facts["queries_of"] == ["two"]


def test_a_network_that_is_trained_later_needs_its_tokenizer_only(place):
    whole = build_table(asked(), "t.parquet", say=QUIET)
    (place / "bare").mkdir()
    (place / "bare/tokenizer.json").write_bytes((place / "parm/tokenizer.json").read_bytes())
    prepare_build(replace(asked(), network="bare"), place / "prepared", copy=False)
    assert not (place / "prepared/network").exists()
    score_folder(place / "prepared", place / "prepared/results", place / "parm", How(), QUIET)
    assert whole is not None
    assert collect_build(place / "prepared").table.digest == whole.table.digest
    with pytest.raises(BadInput, match="cannot be read"):
        prepare_build(replace(asked(), network="bare"), place / "other")
    own = load("parm")
    save(make("cross", own.encoder, own.pieces), "cross")
    prepare_build(replace(asked(), network="cross"), place / "prepared", copy=False)
    with pytest.raises(BadInput, match="of architecture cross, not parm"):
        prepare_build(replace(asked(), network="cross"), place / "other")


def test_terms_may_stand_between_masks(place):
    made = build_table(asked(settings={"threshold": 0.0}, frame="masks"), "t.parquet", say=QUIET)
    assert made is not None
    assert made.table.facts["frame"] == "masks"
    network = load("parm").eval()
    mask = network.pieces.special["mask"]
    for entry in list(made.table.rows())[::7]:
        query, doc = network.pieces.ids([entry.query_term, entry.document_term], 9)
        inputs = [np.array([mask, *query, mask]), np.array([*[mask] * 4, *doc, *[mask] * 24])]
        arrays = {name: torch.from_numpy(array) for name, array in network.arrays([inputs[0]], [inputs[1]]).items()}
        with torch.inference_mode():
            assert abs(entry.weight - float(torch.sigmoid(network(arrays)))) < 1e-5
    save(network, "told", frame="runs")
    for frame, expected in ((None, "runs"), ("masks", "masks"), ("bare", None)):
        build_table(replace(asked(frame=frame), network="told"), "u.parquet", say=QUIET)
        assert open_table("u.parquet").facts.get("frame") == expected
    with pytest.raises(WhyrankError, match="unknown frame 'mask'"):
        prepare_build(asked(frame="mask"), place / "other")


def test_the_network_tells_whom_it_learned_from_and_how_terms_were_made(place):
    save(
        load("parm"),
        "told",
        ranker="cross(x)",
        target="cross:x",
        learner="parm(preset=code)",
        analyzer="krovetz",
        seed=4,
    )
    build_table(replace(asked(), network="told", analyzer=None), "t.parquet", say=QUIET)
    facts = open_table("t.parquet").facts
    assert (facts["ranker"], facts["target"], facts["learner"]) == ("cross(x)", "cross:x", "parm(preset=code)")
    assert (facts["analyzer"], facts["network_seed"], facts["seed"]) == ("krovetz", 4, 3)
    build_table(replace(asked(), analyzer=None), "u.parquet", say=QUIET)
    assert open_table("u.parquet").facts["analyzer"] == "lucene"


def test_half_the_bits_travel_lighter_and_are_near(place):
    prepare_build(asked(), place / "whole")
    prepare_build(asked(), place / "half", bits=16)
    sizes = [(place / name / "network/model.safetensors").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.6 * sizes[0]
    for name in ("whole", "half"):
        score_folder(place / name, place / name / "results", place / name / "network", How(), QUIET)
    one, other = (collect_build(place / name).table for name in ("whole", "half"))
    shared = one.difference(other)
    assert np.abs(shared.first - shared.second)[~shared.only_first & ~shared.only_second].max() < 0.01


def test_what_changed_is_noticed(place):
    prepare_build(asked(), place / "prepared")
    prepare_build(asked(), place / "prepared")
    with pytest.raises(BadInput, match="another vocabulary or of other settings"):
        prepare_build(asked(settings={"threshold": 0.3}), place / "prepared")
    with pytest.raises(BadInput, match="another vocabulary or of other settings"):
        prepare_build(asked(doc_terms=3), place / "prepared")
    with pytest.raises(BadInput, match="with other things in it"):
        prepare_build(asked(), place / "one")
    with pytest.raises(BadInput, match="no finished results"):
        collect_build(place / "prepared")
    assert build_table(asked(), "t.tsv", How(seconds=0.0, block=1), say=QUIET) is None
    assert work_folder("t.tsv").is_dir()
    changed = load("parm")
    changed.outer.bias.data += 0.5
    save(changed, "parm")
    score_folder(place / "prepared", place / "prepared/results", place / "parm", How(), QUIET)
    results = place / "prepared/results"
    log = json.loads((results / "run.json").read_text())
    del log["checksum"]
    (results / "run.json").write_text(json.dumps(log | {"network": "other"}))
    with pytest.raises(BadInput, match="results of another vocabulary"):
        collect_build(place / "prepared")


def test_terms_that_share_their_pieces_share_their_entries():
    task = Task(
        distinct([np.array([1]), np.array([2]), np.array([1])]),
        distinct([np.array([5]), np.array([6]), np.array([5]), np.array([5])]),
        Settings(),
    )
    entries = Entries(np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([0.5, 0.25, 0.125]), {})
    found = sorted(zip(*(column.tolist() for column in expanded(task, entries)), strict=True))
    expected = [(q, d, 0.5) for q in (0, 2) for d in (0, 2, 3)] + [(1, d, 0.25) for d in (0, 2, 3)] + [(1, 1, 0.125)]
    assert found == sorted(expected)


@pytest.mark.parametrize(
    ("out", "expected"),
    [("a.parquet", "a.audit.parquet"), ("x/b.tsv.gz", "x/b.audit.tsv.gz"), ("c.tsv", "c.audit.tsv")],
)
def test_the_slice_lies_beside(out, expected):
    assert audit_file(out) == Path(expected)
