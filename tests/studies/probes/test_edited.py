"""Edited probes: counts, controls, neutrality of bags of words, published counts."""

from __future__ import annotations

import numpy as np
import pytest

import whyrank
from contrast_pairs import pairs_of
from whyrank.data import Collection, open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine
from whyrank.studies import Plan, answers
from whyrank.studies.probes import probes
from whyrank.text.edits import edits

pytest.importorskip("spacy", reason="the extra nlp is not installed")
NEEDS_OPTIONS = {"edited/doc2query"}
ALL = sorted(set(probes.match("edited/*")) - NEEDS_OPTIONS)


@pytest.fixture(scope="module")
def sample():
    return open_collection("sample")


def small():
    docs = {"a": "The wall fell. People cheered.", "b": "Cats purr.", "c": "", "d": "wall"}
    return Collection.of(docs, {"q": "wall"}, {"q": {"a": 2, "b": 0, "c": 1, "d": 0}})


@pytest.mark.parametrize("name", ALL)
def test_every_text_is_asked_about_or_counted_in_any_order(name, sample):
    found = probes.create(name).contrasts(sample)
    assert len(found) + sum(found.dropped.values()) == sum(map(len, sample.qrels.values()))
    assert len(found) > 100
    assert all(pair.docs[0].strip() and pair.docs[0] != pair.docs[1] for pair in pairs_of(found))
    docs = dict(reversed(list(sample.docs.items())))
    qrels = {q: dict(reversed(list(judged.items()))) for q, judged in reversed(list(sample.qrels.items()))}
    turned = Collection.of(docs, sample.queries, qrels, grades=sample.grades)
    assert probes.create(name).contrasts(turned).fingerprint == found.fingerprint


def test_reasons():
    found = probes.create("edited/shuffle-sentences").contrasts(small())
    assert len(found) + found.dropped["unchanged"] == 1, "only one text has two sentences; a shuffle may leave it"
    assert found.dropped["not applicable"] == 3
    found = probes.create("edited/case-fold").contrasts(small())
    assert dict(found.dropped) == {"empty after the edit": 1, "unchanged": 1}


def test_seed_changes_the_draw(sample):
    one, two, three = (
        probes.create("edited/shuffle-words", seed=seed).contrasts(sample).fingerprint for seed in (0, 0, 1)
    )
    assert one == two != three


def test_all_edits_draw_the_same_texts(sample):
    """What an edit does not apply to is made up for by the next texts; another seed draws others."""
    whole = {name: probes.create(name).contrasts(sample) for name in ALL}
    drawn = {name: set(asked(found.sample(60, 0))) for name, found in whole.items()}
    everywhere = set(asked(whole["edited/shuffle-words"]))
    first = drawn["edited/shuffle-words"]
    assert len(first) == 60
    assert len(first & set(asked(whole["edited/shuffle-words"].sample(60, 1)))) < 20
    for name, found in whole.items():
        applies = set(asked(found))
        assert drawn[name] >= first & applies, name
        assert len(drawn[name]) == 60
        assert applies <= everywhere
    turned = whole["edited/shuffle-words"].take(np.arange(len(everywhere))[::-1])
    assert set(asked(turned.sample(60, 0))) == first


BAGS = [f"edited/{name}" for name in edits.names() if getattr(edits.factory(name), "moves_words", False)]


def all_tie(collection, analyzer):
    """Every difference is exactly 0: word order is nothing to BM25 and query likelihood."""
    rankers = [open_ranker(spec, Setting(collection, analyzer)) for spec in ("bm25", "ql")]
    studies = {name: probes.create(name) for name in BAGS}
    for answer in answers(Plan(collection, studies, rankers, Engine())):
        assert len(answer.reading.diffs) > 300
        assert not np.count_nonzero(answer.reading.diffs), (answer.name, answer.ranker)


@pytest.mark.parametrize("analyzer", ["lucene", "whitespace"])
def test_bags_of_words_are_exactly_neutral(sample, analyzer):
    all_tie(sample, analyzer)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["msmarco_dl19", "cranfield"])
def test_bags_of_words_are_exactly_neutral_on_real_texts(data_folder, name):
    """All judged texts; the annotation takes most of the time."""
    all_tie(open_collection(str(data_folder / name)), "lucene")


@pytest.mark.parametrize("limit", [None, 60])
def test_the_control_is_asked_about_the_texts_of_the_study(sample, limit):
    """Texts with a single sentence, and those not drawn, have no part in the control of a shuffle of sentences."""
    ranker = open_ranker("bm25", Setting(sample, "whitespace"))
    names = ("edited/shuffle-sentences", "edited/case-fold", "edited/re-space")
    studies = {name: probes.create(name) for name in names}
    plan = Plan(sample, studies, [ranker], Engine(), limit=limit)
    found = {answer.name: answer for answer in answers(plan)}
    [whole] = answers(Plan(sample, {"c": probes.create("edited/re-space")}, [ranker], Engine()))
    effects = dict(zip(asked(whole.contrasts), whole.reading.effects.tolist(), strict=True))
    for name in names[:2]:
        own = [effects[ids] for ids in asked(found[name].contrasts) if ids in effects]
        assert len(own) < len(effects) or name == "edited/case-fold"
        assert found[name].findings[0].control == pytest.approx(sum(own) / len(own), abs=1e-12)
    control = found["edited/re-space"].findings[0]  # it cuts "don't" in two, which a lexical ranker does see
    assert found[names[0]].findings[0].control != control.score != 0
    assert control.control is None


def asked(contrasts):
    docs = contrasts.labels["doc_ids"].values()[:, 0].tolist()
    return list(zip(contrasts.labels["query_id"].values().tolist(), docs, strict=True))


def test_registered_edits_make_probes(sample):
    @edits.register("shout")
    def shout(text: str) -> str:
        "in capital letters"
        return text.upper()

    try:
        study = probes.create("edited/shout")
        assert study.positive == "prefers the text in capital letters"
        assert len(study.contrasts(sample)) == 500
    finally:
        edits.forget("shout")


def test_a_sentence_of_a_nonrelevant_document_is_added(sample):
    found = probes.create("edited/add-nonrelevant-sentence").contrasts(sample)
    texts = {q: [sample.docs[d] for d, g in judged.items() if g == 0] for q, judged in sample.qrels.items()}
    for pair, query_id in zip(pairs_of(found), found.labels["query_id"].values(), strict=True):
        added = pair.docs[0].removeprefix(pair.docs[1]).strip()
        sources = [text for text in texts[query_id] if added in text]
        assert sources
        assert sources != [pair.docs[1]], "not from the text itself"


def test_a_collection_of_relevant_documents_has_no_sentence_to_add():
    docs = {"a": "One is here. And more.", "b": "Two is there. And less."}
    collection = Collection.of(docs, {"q": "one"}, {"q": {"a": 1, "b": 2}})
    found = probes.create("edited/add-nonrelevant-sentence").contrasts(collection)
    assert len(found) == 0
    assert dict(found.dropped) == {"no non-relevant text of the query": 2}


@pytest.fixture(scope="module")
def dl19(data_folder):
    return open_collection(str(data_folder / "msmarco_dl19"))


def published(data_folder, spec):
    stop = data_folder / "stopwords" / "terrier.txt"
    return probes.create(spec, compat="abnirml", analyzer=f"terrier(stopwords={stop})")


@pytest.mark.slow
def test_published_counts(dl19, data_folder):
    """The sample counts of the published table; sentences and lemmas are today's parser's."""
    listed = data_folder / "misspellings" / "wikipedia_common_misspellings.tsv"
    bounds = {
        "remove-stops-punct": (9_259, 9_260), "shuffle-words": (9_260, 9_260), "add-nonrelevant-sentence": (9_260, 9_260),
        "shuffle-sentences": (7_290 * 0.93, 7_290 * 1.07), "lemmatize": (9_249, 9_269), "shuffle-prepositions": (9_229, 9_249),
        "replace-with-query": (9_260, 9_260), f"typos(list={listed})": (8_982, 8_982),
    }  # fmt: skip
    for name, (low, high) in bounds.items():
        assert low <= len(published(data_folder, f"edited/{name}").contrasts(dl19)) <= high, name


@pytest.mark.parametrize("error", [None, ImportError("no symbol"), OSError("libblis.so: cannot open")])
def test_without_a_parser_the_rest_still_runs(monkeypatch, whyrank, error):
    """Edits that annotate are left out with a note when a pattern found them, and an error when named."""
    from whyrank.core import MissingExtra
    from whyrank.text.annotation import pipelines

    def absent(name):
        raise MissingExtra("annotation of texts", "nlp")

    def broken(name):
        raise error

    if error is None:
        for module in ("whyrank.studies.probes.edited", "whyrank.text.annotation.annotator"):
            monkeypatch.setattr(f"{module}.find_pipeline", absent)
    else:
        monkeypatch.setattr(pipelines, "import_module", broken)
    pipelines._import_failure.cache_clear()
    try:
        requests = [(("edited/*ize", "edited/case-*"), 0), (("edited/lemmatize",), 2)]
        for patterns, code in requests[: 2 if error is None else 1]:
            found, out, err = whyrank("audit", *patterns, "--ranker", "bm25", "--store", "none")
            assert found == code, err
            assert ("whyrank[nlp]" if error is None else f"({type(error).__name__}: {error})") in err
            assert ("edited/case-fold" in out) == (code == 0)
            assert "edited/lemmatize " not in out
    finally:
        pipelines._import_failure.cache_clear()


def test_groups_by_relevance_come_in_the_order_of_grades():
    """Unjudged texts come last, and 10 after 2."""
    docs = {d: f"{d} and some more words" for d in "abcde"}
    judged = {"q": {"a": 10, "b": 2, "c": 0, "d": 2}}
    collection = Collection.of(docs, {"q": "x"}, judged, runs={"r": {"q": dict.fromkeys(docs, 1.0)}})
    study = probes.create("edited/shuffle-words", pairs="all", candidates="r")
    found = whyrank.audit("bm25", collection, study, by="relevance", delta=0).findings
    assert [(f.group, f.n) for f in found] == [(None, 5), ("0", 1), ("2", 2), ("10", 1), ("unjudged", 1)]
