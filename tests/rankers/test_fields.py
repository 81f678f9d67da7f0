"""Rankers that read the fields of documents: prices and ids reach them, edited texts keep them, stores know them."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whyrank
from whyrank.core import Processes
from whyrank.data import Collection
from whyrank.rankers import as_ranker, rankers
from whyrank.rankers.fields import DocFields
from whyrank.scoring import Engine, ScoreStore, rank
from whyrank.studies import Contrasts, Pair
from whyrank.testing import RankerContract

TEXT = "cheap red shoe. it is light."
DOCS = {"d1": TEXT, "d2": TEXT, "d3": "a blue hat"}
FIELDS = {"d1": {"price": 5}, "d2": {"price": 50}, "d3": {"price": 1.5}}


def shop(fields=FIELDS):
    return Collection.of(DOCS, {"q": "red shoe"}, {"q": {"d1": 1, "d2": 0, "d3": 0}}, fields=fields)


def by_price(queries, docs, fields):
    """Cheaper texts are better; a text of no document has no price."""
    return [-float(each.get("price", 0)) for each in fields]


class Seen:
    """Notes what it is given; two documents of one text are two pairs."""

    name = "seen"

    def __init__(self):
        self.texts, self.fields = [], []

    def score(self, queries, docs, fields):
        self.texts += docs
        self.fields += fields
        return [float(len(doc)) for doc in docs]


def test_a_price_ranks_two_documents_of_one_text():
    assert rank(by_price, shop(), candidates={"q": dict.fromkeys(DOCS, 0.0)}) == {
        "q": {"d3": -1.5, "d1": -5.0, "d2": -50.0}
    }


@pytest.mark.parametrize(
    "study", ["edited/repeat-document", "axiom/LNC2", "matched/length|tf(tolerance=9)", "edited/typos"]
)
def test_texts_of_every_study_keep_the_fields_of_their_document(study):
    seen = Seen()
    found = whyrank.audit(seen, shop(), study, delta=0)
    assert found.findings[0].n > 0
    assert all(each == {**FIELDS[each["id"]], "id": each["id"]} for each in seen.fields)
    assert not any("\x1e" in text for text in seen.texts)
    made = {each["id"] for text, each in zip(seen.texts, seen.fields, strict=True) if text not in DOCS.values()}
    assert made <= set(DOCS)
    assert made or study.startswith("matched")


class Longer:
    """Texts that were made from a document, as their ids say, and one that was not."""

    id = positive = "made"
    symmetric = False

    def contrasts(self, collection):
        ids = {"query_id": "q", "doc_ids": ("d1+word", "x+word")}
        return Contrasts.from_pairs([Pair("red shoe", ("shoe word", "x word"), ids)])


def test_the_id_of_a_made_text_names_its_document():
    seen = Seen()
    whyrank.audit(seen, shop(), Longer(), delta=0)
    found = dict(zip(seen.texts, seen.fields, strict=True))
    assert (found["shoe word"], found["x word"]) == ({"price": 5, "id": "d1"}, {})


def test_an_edit_does_not_change_what_depends_on_the_price_alone():
    [found] = whyrank.audit(by_price, shop(), "edited/repeat-document", delta=0).findings
    assert (found.n, found.neutral) == (3, 3)


def test_texts_of_no_document_have_no_fields():
    seen = Seen()
    assert whyrank.audit(seen, shop(), "transferred/fluency(pairs=sample)", delta=0, limit=5).findings[0].n
    own = [each for text, each in zip(seen.texts, seen.fields, strict=True) if text not in DOCS.values()]
    assert own.count({}) == len(own) > 0


def test_stored_scores_are_not_reused_when_a_field_changes(tmp_path):
    source = "def f(queries, docs, fields):\n    return [each['price'] for each in fields]\n"
    (tmp_path / "mine.py").write_text(source)
    spec, candidates = f"python:{tmp_path}/mine.py:f", {"q": {"d1": 0.0, "d2": 0.0}}
    engine = Engine(ScoreStore(tmp_path / "s.sqlite"))
    assert rank(spec, shop(), candidates=candidates, engine=engine)["q"] == {"d2": 50, "d1": 5}
    dearer = shop({**FIELDS, "d1": {"price": 99}})
    assert rank(spec, dearer, candidates=candidates, engine=engine)["q"] == {"d1": 99, "d2": 50}
    (tmp_path / "s2").mkdir()
    fused = f"fuse(of=['bm25','{spec}'],weights=[0,1],normalise=none)"
    assert rank(fused, dearer, candidates=candidates)["q"] == {"d1": 99, "d2": 50}, "a part of a fuse reads them too"


@pytest.fixture
def registered():
    rankers.register("by-year")(ByYear)
    yield "by-year"
    rankers.forget("by-year")


@dataclass(frozen=True)
class ByYear:
    """Newer is better."""

    name: str = "by-year"

    def score(self, queries, docs, fields):
        return np.array([float(each.get("year", 0)) for each in fields])


class TestByYear(RankerContract):
    """A ranker that reads fields keeps to the contract of rankers."""

    def make(self):
        return ByYear()


def test_a_registered_ranker_reads_fields_too(registered):
    years = {"d1": {"year": 1999}, "d2": {"year": 2024}}
    assert rank(registered, shop(years), candidates={"q": {"d1": 0.0, "d2": 0.0}})["q"] == {"d2": 2024, "d1": 1999}


def test_what_is_explained_has_no_fields():
    assert "reads fields of documents" in whyrank.explain(by_price, "red shoe", TEXT).note


def test_failures_show_the_text_alone():
    def fails(queries, docs, fields):
        raise ValueError(docs[0])

    engine, zeros = Engine(), np.zeros(1, np.int32)
    ranker = as_ranker(fails)
    [failure] = engine.score(ranker, ["q"], [TEXT], zeros, zeros, DocFields(["d1"], FIELDS)).failures
    assert (failure.doc, failure.reason) == (TEXT, f"ValueError: {TEXT}")


def hashed(queries, docs, fields):
    """A number that depends on all that a pair has."""
    return [
        float(sum(map(ord, q + d + repr(sorted(f.items())))) % 997)
        for q, d, f in zip(queries, docs, fields, strict=True)
    ]


HOSTILE = st.lists(st.sampled_from(["a", "\x1e", "\x1efields\x1e", "{}", '"', "\U0001f600"]), max_size=8).map("".join)
PAIR = st.tuples(HOSTILE, HOSTILE, st.dictionaries(HOSTILE, st.one_of(st.integers(), HOSTILE, st.none()), max_size=2))


@settings(deadline=None)
@given(st.lists(PAIR, min_size=1, max_size=6), st.integers(1, 4), st.randoms())
def test_batches_order_and_hostile_texts_change_nothing(pairs, size, random):
    expected = [hashed([q], [d], [{**f, "id": f"d{i}"}])[0] for i, (q, d, f) in enumerate(pairs)]
    order = list(range(len(pairs)))
    random.shuffle(order)
    known = {f"d{i}": fields for i, (_, _, fields) in enumerate(pairs)}
    codes = np.arange(len(pairs), dtype=np.int32)
    queries, docs, ids = [pairs[i][0] for i in order], [pairs[i][1] for i in order], [f"d{i}" for i in order]
    engine = Engine(batch_size=size)
    found = engine.score(as_ranker(hashed), queries, docs, codes, codes, DocFields(ids, known)).values
    assert found.tolist() == [expected[i] for i in order]


def test_processes_score_alike():
    serial = rank(hashed, shop(), candidates={"q": dict.fromkeys(DOCS, 0.0)})
    spread = rank(hashed, shop(), candidates={"q": dict.fromkeys(DOCS, 0.0)}, engine=Engine(executor=Processes(2)))
    assert serial == spread
    assert Counter(map(len, serial.values())) == {3: 1}
