"""LNC2: texts against copies of themselves, made as the definition says and obeyed by BM25."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.data import Collection, open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.studies.axioms import duplicates
from whyrank.studies.axioms.duplicates import LNC2
from whyrank.studies.files import pairs_of
from whyrank.text import Analyzer, analyzers

WORD = st.sampled_from(["wall", "berlin", "fall", "cat", "a"])
TEXT = st.lists(WORD, max_size=7).map(" ".join)
QUERY = st.lists(WORD, max_size=4).map(" ".join)
COMPAT = st.sampled_from([None, "camara-hauff"])


def judged_for_all(docs, queries):
    named = {f"d{i}": text for i, text in enumerate(docs)}
    asked = {f"q{i}": query for i, query in enumerate(queries)}
    return Collection.of(named, asked, {q: {d: i % 3 for i, d in enumerate(named)} for q in asked})


COLLECTIONS = st.builds(
    judged_for_all, st.lists(TEXT, min_size=1, max_size=8), st.lists(QUERY, min_size=1, max_size=2)
)


def times(tokens, most, copies):
    """How often a text of so many tokens is written; 0 when it is left out."""
    if not tokens:
        return 0
    if most is None:
        return copies or 2
    if copies:
        return copies if copies * tokens <= most else 0
    return most // tokens if tokens <= most / 2 else 0


def cut(words, most):
    return words if most is None else words[:most]


def oracle(collection, study):
    """Of texts in words with single blanks between them."""
    found = []
    for q, judged in collection.qrels.items():
        for d in judged:
            words = cut(collection.docs[d].split(), study.max_tokens)
            k = times(len(words), study.max_tokens, study.copies)
            if not k:
                continue
            copied = [w for w in words for _ in range(k)] if study.compat else words * k
            found.append((q, (f"{d}*{k}", d), (" ".join(copied), " ".join(words)), k))
    return sorted(found)


def asked_of(found):
    if not len(found):
        return []
    queries, ids = (found.labels[name].values().tolist() for name in ("query_id", "doc_ids"))
    texts = [pair.docs for pair in pairs_of(found)]
    return sorted(zip(queries, map(tuple, ids), texts, found.labels["copies"].tolist(), strict=True))


def scores_of(ranker, found):
    queries = [found.queries[i] for i in found.query]
    return np.column_stack([ranker.score(queries, [found.docs[i] for i in column]) for column in found.doc.T])


@given(
    collection=COLLECTIONS,
    most=st.sampled_from([None, 1, 2, 5, 6, 9]),
    copies=st.sampled_from([None, None, 2, 3]),
    compat=COMPAT,
)
@settings(max_examples=150)
def test_equals_brute_force(collection, most, copies, compat):
    study = LNC2(analyzer="whitespace", max_tokens=most, copies=copies, compat=compat)
    found = study.contrasts(collection)
    assert asked_of(found) == oracle(collection, study)
    asked = sum(map(len, collection.qrels.values()))
    assert len(found) + sum(found.dropped.values()) == asked


@pytest.mark.parametrize("most", [10, 11, 512])
def test_texts_of_none_half_and_more_than_half(most):
    half = most // 2
    docs = {"none": " ", "one": "w", "half": "w " * half, "more": "w " * (half + 1), "whole": "w " * most}
    found = LNC2(analyzer="whitespace", max_tokens=most).contrasts(
        Collection.of(docs, {"q": "w"}, {"q": dict.fromkeys(docs, 0)})
    )
    assert found.labels["doc_ids"].values().tolist() == [[f"one*{most}", "one"], ["half*2", "half"]]
    assert found.dropped == {"without tokens": 1, "too long to be copied": 2}


def test_the_text_stays_as_it_is_written():
    """Blanks, lines and punctuation are copied; one blank stands between copies."""
    text = "  The walls,\n of Berlin. "
    collection = Collection.of({"d": text}, {"q": "the Walls"}, {"q": {"d": 2}})
    found = LNC2(max_tokens=6).contrasts(collection)
    assert [pair.docs for pair in pairs_of(found)] == [(" ".join([text] * 3), text)]
    assert found.labels["relevance"].tolist() == [[2, 2]]
    assert found.labels["relevance_group"].values().tolist() == ["relevant"]
    compat = LNC2(max_tokens=6, compat="camara-hauff").contrasts(collection)
    assert [pair.docs for pair in pairs_of(compat)] == [("wall wall wall berlin berlin berlin", "wall berlin")]
    assert (found.queries, compat.queries) == (["the Walls"], ["wall"])


def test_a_query_without_tokens_stays():
    collection = Collection.of({"d": "wall"}, {"q": "the"}, {"q": {"d": 1}})
    assert LNC2(compat="camara-hauff").contrasts(collection).queries == ["the"]


@pytest.mark.parametrize("compat", [None, "camara-hauff"])
def test_few_tokens_may_be_too_much_text(monkeypatch, compat):
    """A line without blanks is one token, and 512 copies of it would fill the memory."""
    monkeypatch.setattr(duplicates, "_CHARACTERS", 1000)
    docs = {"short": "ab", "line": "a" * 90, "two": "a" * 300 + " " + "b" * 300}
    collection = Collection.of(docs, {"q": "ab"}, {"q": dict.fromkeys(docs, 0)})
    study = LNC2(analyzer="whitespace", max_tokens=11, compat=compat)
    found = study.contrasts(collection)
    assert [ids[1] for _, ids, _, _ in asked_of(found)] == ["line", "short"]
    assert found.dropped == {"too long to be copied": 1}


def test_unjudged_documents_have_no_grade():
    runs = {"r": {"q": {"d": 2.0, "e": 1.0}}}
    collection = Collection.of({"d": "wall", "e": "cat"}, {"q": "wall"}, {"q": {"d": 1}}, runs=runs)
    found = LNC2(pairs="all").contrasts(collection)
    assert np.isnan(found.labels["relevance"]).tolist() == [[False, False], [True, True]]
    assert found.labels["relevance_group"].values().tolist() == ["relevant", "unjudged"]


@pytest.fixture
def sentences():
    """An analyzer that finds other tokens where two copies meet."""

    @analyzers.register("sentences")
    def made():
        return Analyzer.of("sentences", lambda text: text.split(". ") if text else [])

    yield "sentences"
    analyzers.forget("sentences")


def test_copies_that_are_analysed_otherwise_are_dropped(sentences):
    collection = Collection.of({"d": "a. b", "e": "a. "}, {"q": "a"}, {"q": {"d": 1, "e": 1}})
    found = LNC2(analyzer=sentences, max_tokens=9).contrasts(collection)
    assert len(found) == 0
    assert found.dropped == {"analysed otherwise when copied": 2}


@pytest.fixture
def pieces(tmp_path):
    """A tokenizer of word pieces; `ing` alone is one piece, `ization` becomes three, `zz` is unknown."""
    tokenizers = pytest.importorskip("tokenizers")
    known = ["[UNK]", "play", "##ing", "ing", "##ization", "i", "##z", "##ation", "the", "#", "-"]
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(dict(map(reversed, enumerate(known))), unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens(["[UNK]"])
    made.save(str(tmp_path / "tokenizer.json"))
    return f"wordpiece:{tmp_path}"


class TestPublishedCopiesOfPieces:
    DOCS = {"plain": "playing the", "split": "playization the", "odd": "# zz playing", "long": "playization " * 3}

    def made(self, pieces, most=12):
        collection = Collection.of(self.DOCS, {"q": "playing"}, {"q": dict.fromkeys(self.DOCS, 1)})
        return LNC2(analyzer=pieces, max_tokens=most, compat="camara-hauff").contrasts(collection)

    def test_the_mark_is_left_out(self, pieces):
        found = {ids[1]: (texts, k) for _, ids, texts, k in asked_of(self.made(pieces))}
        assert found["plain"] == ((" ".join(["play"] * 4 + ["ing"] * 4 + ["the"] * 4), "play ing the"), 4)
        assert found["odd"][0][1] == "# [UNK] play ing"
        assert self.made(pieces).queries == ["play ing"], "else no piece inside a word of the query is found"

    def test_what_becomes_more_tokens_is_written_less_often(self, pieces):
        """`playization the` has 3 tokens, `play ization the` 5: it fits twice, and not four times."""
        found = self.made(pieces)
        assert {ids[1]: k for _, ids, _, k in asked_of(found)} == {"plain": 4, "split": 2, "odd": 3}
        assert found.dropped == {"too long to be copied": 1}, "6 tokens, 12 in pieces that stand alone"

    @pytest.mark.parametrize("most", [4, 6, 7, 12, 40, 512])
    def test_copies_fit(self, pieces, most):
        found = self.made(pieces, most)
        lengths = [len(analyzers.create(pieces).terms(text)) for text in found.docs]
        assert max(lengths, default=0) <= most
        assert len(found) + sum(found.dropped.values()) == len(self.DOCS)


@pytest.mark.parametrize("compat", [None, "camara-hauff"])
def test_the_analyzer_finds_the_tokens_so_many_times(compat):
    """On the bundled sample, with an analyzer that leaves its own tokens alone."""
    analyzer = "chain(stop=lucene)"
    found = LNC2(analyzer=analyzer, compat=compat).contrasts(open_collection("sample"))
    for pair, k in zip(pairs_of(found), found.labels["copies"].tolist(), strict=True):
        copied, text = map(analyzers.create(analyzer).terms, pair.docs)
        assert copied == ([t for t in text for _ in range(k)] if compat else text * k)
        assert 2 <= k == 512 // len(text)
    assert len(found) > 400


K1, B = (0.01, 0.9, 1.2, 5.0), (0.05, 0.4, 0.75, 0.99)


def assert_bm25_never_prefers_the_single_copy(collection, found):
    held = LNC2().views(collection)
    assert len(found) + sum(found.dropped.values()) == sum(map(len, held))
    for k1, b in zip((*K1, 0.9), (*B, 0.4), strict=True):
        scores = scores_of(open_ranker(f"bm25(k1={k1},b={b})", Setting(collection)), found)
        matched = scores[:, 1] > 0
        assert (scores[:, 0] >= scores[:, 1]).all()
        assert (scores[matched, 0] > scores[matched, 1]).all()
        assert matched.mean() > 0.5


@pytest.mark.parametrize("compat", [None, "camara-hauff"])
def test_bm25_obeys_on_the_sample(compat):
    collection = open_collection("sample")
    assert_bm25_never_prefers_the_single_copy(collection, LNC2(compat=compat).contrasts(collection))


@pytest.mark.parametrize("name", ["cranfield", "msmarco_dl19"])
def test_bm25_obeys_on_real_texts(data_folder, name):
    collection = open_collection(str(data_folder / name))
    found = LNC2().contrasts(collection)
    assert_bm25_never_prefers_the_single_copy(collection, found)
    english = analyzers.create("lucene")
    queries = list(collection.qrels)[:10]
    wanted = []
    for q in queries:
        for d in collection.qrels[q]:
            text = collection.docs[d]
            k = times(len(english.terms(text)), 512, None)
            wanted += [(q, (f"{d}*{k}", d), (" ".join([text] * k), text), k)] * bool(k)
    assert [row for row in asked_of(found) if row[0] in queries] == sorted(wanted)


def test_query_likelihood_need_not_obey():
    """With Dirichlet smoothing, a text with fewer query terms than the language at large loses by being copied."""
    collection = open_collection("sample")
    scores = scores_of(open_ranker("ql", Setting(collection)), LNC2().contrasts(collection))
    assert 0.8 < (scores[:, 0] >= scores[:, 1]).mean() < 1


def test_it_has_no_preference_between_documents():
    with pytest.raises(WhyrankError, match="axiom LNC2 compares a text with copies of itself") as error:
        LNC2().preference("wall", "wall wall", "wall")
    assert len(str(error.value).splitlines()) == 1
    [view] = LNC2().views(Collection.of({"d": "a"}, {"q": "a"}, {"q": {"d": 1}}))
    with pytest.raises(WhyrankError, match="no preference between two documents"):
        LNC2().matrix(view)
