"""LNC2 and LB2: the texts that they make are those of the definition; and TFC2, over three texts."""

from __future__ import annotations

import math
import random
import tracemalloc

import numpy as np
import pytest
from axiom_oracles import COLLECTIONS, CUTS, LENGTHS, crowd, found_by, made, near, pools, real
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from contrast_pairs import pairs_of
from whyrank.core import WhyrankError
from whyrank.data import Collection, open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.studies.axioms import duplicates
from whyrank.studies.axioms.bounds import LB1, LB2
from whyrank.studies.axioms.counts import TFC2
from whyrank.studies.axioms.duplicates import LNC2
from whyrank.studies.findings import differences
from whyrank.text import Analyzer, analyzers

COMPAT = "camara-hauff"


def rows_of(found):
    """Query id, ids and texts of each contrast, sorted."""
    if not len(found):
        return []
    queries, ids = (found.labels[name].values().tolist() for name in ("query_id", "doc_ids"))
    return sorted(zip(queries, map(tuple, ids), [pair.docs for pair in pairs_of(found)], strict=True))


def wordpiece(folder, tokens):
    """The spec of an analyzer that splits words into these tokens."""
    tokenizer = Tokenizer(models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(["[UNK]"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return f"wordpiece:{folder}"


# LNC2: a text against copies of itself.


def times(tokens, most, copies=None):
    """How often a text of so many tokens is written; 0 when it is left out."""
    if most is None or not tokens:
        return (copies or 2) if tokens else 0
    if copies:
        return copies if copies * tokens <= most else 0
    return most // tokens if tokens <= most / 2 else 0


@given(COLLECTIONS, st.sampled_from([None, 1, 2, 5, 6, 9]), st.sampled_from([None, None, 2, 3]), st.sampled_from([None, COMPAT]))  # fmt: skip
@settings(max_examples=100)
def test_lnc2_equals_plain_loops(collection, most, copies, compat):
    found = LNC2(analyzer="whitespace", max_tokens=most, copies=copies, compat=compat).contrasts(collection)
    expected = []
    for q, judged in collection.qrels.items():
        for d in judged:
            words = collection.docs[d].split()[:most]
            if k := times(len(words), most, copies):
                copied = [w for w in words for _ in range(k)] if compat else words * k
                expected.append((q, (f"{d}*{k}", d), (" ".join(copied), " ".join(words))))
    assert rows_of(found) == sorted(expected)
    assert len(found) + sum(found.dropped.values()) == sum(map(len, collection.qrels.values()))


@pytest.mark.parametrize("compat", [None, COMPAT])
def test_few_tokens_may_be_too_much_text(monkeypatch, compat):
    """A line without blanks is one token, and 512 copies of it would fill the memory."""
    monkeypatch.setattr(duplicates, "_CHARACTERS", 1000)
    collection = made(["ab", "a" * 90, "a" * 300 + " " + "b" * 300], ["ab"])
    found = LNC2(analyzer="whitespace", max_tokens=11, compat=compat).contrasts(collection)
    assert [ids[1] for _, ids, _ in rows_of(found)] == ["d0", "d1"]
    assert found.dropped == {"too long to be copied": 1}


def test_copies_that_are_analysed_otherwise_are_dropped():
    """By an analyzer that finds other tokens where two copies meet."""
    analyzers.register("sentences")(lambda: Analyzer.of("sentences", lambda t: t.split(". ") if t else []))
    try:
        found = LNC2(analyzer="sentences", max_tokens=9).contrasts(made(["a. b", "a. "], ["a"]))
    finally:
        analyzers.forget("sentences")
    assert (len(found), found.dropped) == (0, {"analysed otherwise when copied": 2})


def test_published_copies_of_tokens_inside_words(tmp_path):
    """`ing` alone is one token, `ization` becomes three: such texts are written less often, so that copies fit."""
    tokens = ["[UNK]", "play", "##ing", "ing", "##ization", "i", "##z", "##ation", "the", "#", "-"]
    analyzer, texts = (
        wordpiece(tmp_path, tokens),
        ["playing the", "playization the", "# zz playing", "playization " * 3],
    )
    for most in (4, 7, 12, 512):
        found = LNC2(analyzer=analyzer, max_tokens=most, compat=COMPAT).contrasts(made(texts, ["playing"]))
        assert max((len(analyzers.create(analyzer).terms(text)) for text in found.docs), default=0) <= most
        assert len(found) + sum(found.dropped.values()) == len(texts)
        if most == 12:
            assert [ids[0] for _, ids, _ in rows_of(found)] == ["d0*4", "d1*2", "d2*3"]
            written = {ids[1]: docs for _, ids, docs in rows_of(found)}
            assert written["d0"] == (" ".join(["play"] * 4 + ["ing"] * 4 + ["the"] * 4), "play ing the")
            assert written["d2"][1] == "# [UNK] play ing"
            assert found.queries == ["play ing"], "else no token inside a word of the query is found"


@pytest.mark.parametrize("name", ["sample", "cranfield", "msmarco_dl19"])
def test_bm25_obeys_lnc2_and_query_likelihood_need_not(request, name):
    """With Dirichlet smoothing, a text with fewer query terms than the language at large loses by being copied."""
    collection = open_collection(name if name == "sample" else str(request.getfixturevalue("data_folder") / name))
    found = LNC2(most=2000).contrasts(collection)
    assert len(found) + sum(found.dropped.values()) == sum(map(len, LNC2().views(collection)))
    queries = [found.queries[i] for i in found.query]
    for ranker in ("bm25(k1=0.01,b=0.05)", "bm25(k1=1.2,b=0.75)", "bm25(k1=5.0,b=0.99)", "ql"):
        scorer = open_ranker(ranker, Setting(collection))
        copied, text = (scorer.score(queries, [found.docs[i] for i in column]) for column in found.doc.T)
        if ranker == "ql":
            assert 0.8 < (copied >= text).mean() < 1 or name != "sample"
        else:
            assert ((copied > text) | ((text == 0) & (copied == 0))).all()
            assert (text > 0).mean() > 0.5


@pytest.mark.parametrize("axiom", [LNC2(), LB2(), TFC2(), LB1(scores="bm25")])
def test_they_have_no_preference_between_two_texts(axiom):
    with pytest.raises(WhyrankError, match=r"no preference|three texts|leave scores out") as error:
        axiom.preference("wall berlin", "wall wall", "wall")
    assert len(str(error.value).splitlines()) == 1


# LB2: a word replaced by a query term that the text lacks, and by one that it has.


def two_terms(query, words, documents, tolerance):
    """The query terms of LB2, straight from the definition: one that the text has, one that it lacks."""
    best = None
    idf = {q: math.log((len(documents) + 1) / max(sum(q in other for other in documents), 1)) for q in query}
    for had in [q for q in dict.fromkeys(query) if q in words]:
        for lacked in [q for q in dict.fromkeys(query) if q not in words]:
            gap = abs(idf[had] - idf[lacked])
            allowed = float(tolerance.rstrip("%")) / 100 * max(idf[had], idf[lacked])
            if gap <= allowed + 1e-9 and (best is None or gap < best[0] - 1e-9):
                best = gap, had, lacked
    return best and best[1:]


@given(collection=COLLECTIONS, tolerance=st.sampled_from(["10%", "0%", "50%", "1000%"]), seed=st.integers(0, 3))
@settings(max_examples=100)
def test_lb2_equals_plain_loops(collection, tolerance, seed):
    """Any one word that is no query term may be replaced, the same in both texts."""
    possible, documents = {}, [set(text.split()) for text in collection.docs.values()]
    for q, judged in collection.qrels.items():
        query = collection.queries[q].split()
        for d in judged:
            words = collection.docs[d].split()
            terms = two_terms(query, words, documents, tolerance)
            positions = [i for i, word in enumerate(words) if word not in query]
            if terms and positions:
                had, lacked = terms
                texts = [tuple(" ".join([*words[:i], w, *words[i + 1 :]]) for w in (lacked, had)) for i in positions]
                possible[q, (f"{d}+{lacked}", f"{d}+{had}")] = texts
    rows = rows_of(LB2(analyzer="whitespace", idf=tolerance, seed=seed).contrasts(collection))
    assert [row[:2] for row in rows] == sorted(possible)
    assert all(texts in possible[q, ids] for q, ids, texts in rows)


def test_lb2_replaces_any_word_and_the_seed_says_which():
    docs = {f"d{i}": f"berlin {' '.join(f'w{j}' for j in range(i, i + 8))}" for i in range(40)}
    collection = Collection.of(docs, {"q": "wall berlin"}, {"q": dict.fromkeys(docs, 1)})
    made_texts = [LB2(analyzer="whitespace", idf="1000%", seed=seed).contrasts(collection).docs for seed in (0, 1)]
    assert {text.split().index("wall") for text in made_texts[0] if "wall" in text} == set(range(1, 9))
    assert made_texts[0] != made_texts[1]


def test_lb2_leaves_all_but_the_word_alone_and_counts_texts_without_one():
    text = "  Berlin,\n (cats) "
    [pair] = pairs_of(LB2(idf="1000%").contrasts(made([text], ["The Walls, in Berlin?"])))
    assert pair.docs == ("  Berlin,\n (Walls) ", "  Berlin,\n (Berlin) ")
    found = LB2(analyzer="whitespace").contrasts(made(["berlin ??"], ["berlin wall"]))
    assert (len(found), found.dropped) == (0, {"no word to replace": 1})


def assert_lb2_texts_are_right(collection, study, least):
    """The analyzer sees one token replaced, which is no query term, by the term that is in the id."""
    analyzer, found = analyzers.create(study.analyzer), study.contrasts(collection)
    assert len(found) >= least
    for q, (first, second), texts in rows_of(found):
        doc_id, _, lacked = first.rpartition("+")
        before, query = analyzer.terms(collection.docs[doc_id]), analyzer.query_terms(collection.queries[q])
        replaced = set()
        for text, term in zip(texts, (lacked, second.removeprefix(f"{doc_id}+")), strict=True):
            after = analyzer.terms(text)
            [position] = [i for i, (x, y) in enumerate(zip(before, after, strict=True)) if x != y]
            assert (before[position] not in query, after[position]) == (True, term)
            replaced.add(position)
        assert len(replaced) == 1
        assert lacked not in before
        assert second.removeprefix(f"{doc_id}+") in before


def test_lb2_texts_are_right(data_folder, tmp_path):
    """On the sample, on real texts, and in word pieces, of which those inside words have no spelling of their own."""
    assert_lb2_texts_are_right(open_collection("sample"), LB2(), 200)
    assert_lb2_texts_are_right(real(data_folder / "cranfield"), LB2(max_tokens=None), 20)
    tokens = ["[UNK]", "wall", "##ed", "##s", "berlin", "cat", "fall", "the", ".", ",", "play"]
    docs = ["Berlin cats, the cat.", "the play, the wall.", "The cats played. Walls!"]
    collection = made(docs, ["Berlin played, walled?", "wall fall berlin."])
    study = LB2(analyzer=wordpiece(tmp_path, tokens), idf="1000%")
    assert_lb2_texts_are_right(collection, study, 3)
    ids = study.contrasts(collection).labels["doc_ids"].values().ravel().tolist()
    assert not any("##" in doc_id or doc_id[-1] in ".,?" for doc_id in ids)


# TFC2: three texts.


def triples(axiom, collection):
    """All triples (D1, D2, D3) of all queries."""
    found = []
    for query_id, facts, docs in pools(axiom, collection):
        total = {d: facts.sum(doc) for d, doc in docs.items()}
        similar = {(i, j): near(docs[i].length, docs[j].length, axiom.length) for i in docs for j in docs}
        pairs = [(i, j) for i in docs for j in docs if 1 <= total[i] < total[j] and similar[i, j]]
        for i, j in pairs:
            for k in [k for k in docs if total[j] < total[k] and similar[i, k] and similar[j, k]]:
                one, two, three = docs[i].count, docs[j].count, docs[k].count
                if all(two[q] - one[q] == three[q] - two[q] for q in facts.terms):
                    found.append((query_id, (i, j, k)))
    return sorted(found)


@pytest.mark.parametrize("compat", [None, COMPAT])
@given(collection=COLLECTIONS, cut=CUTS, length=LENGTHS)
@settings(max_examples=60)
def test_tfc2_equals_plain_loops(compat, collection, cut, length):
    axiom = TFC2(analyzer="whitespace", max_tokens=cut, length=length, compat=compat)
    assert found_by(axiom, collection) == triples(axiom, collection)


def test_tfc2_has_instances(data_folder):
    """With the texts and grades of their ids in the order D1, D2, D3."""
    axiom, collection = TFC2(analyzer="whitespace"), crowd()
    found = axiom.contrasts(collection)
    ids = found.labels["doc_ids"].values().tolist()
    assert found_by(axiom, collection) == triples(axiom, collection) != []
    assert [[found.docs[d] for d in row] for row in found.doc] == [[collection.docs[d] for d in row] for row in ids]
    assert found.labels["relevance"].tolist() == [[int(d[1:]) % 3 for d in row] for row in ids]
    axiom, collection = TFC2(max_tokens=60), real(data_folder / "msmarco_dl19", size=40)
    assert found_by(axiom, collection) == triples(axiom, collection) != []


@given(st.integers(0, 30), st.integers(1, 30), st.sampled_from([0.1, 1 / 3, 0.7, 1e-9, 123.4]), st.integers(-3, 3))
def test_a_score_that_counts_ties_in_any_unit(start, step, unit, bend):
    """0.3 - 0.2 is not 0.2 - 0.1 in floating point; a step that is larger by one unit is seen all the same."""
    scores = np.array([[start, start + step, start + 2 * step - bend]]) * unit
    assert np.sign(differences(scores)).tolist() == [np.sign(bend)]


def test_many_alike_documents_stay_in_bounded_memory():
    """Two thousand documents of few count vectors: millions of triples, of which a sample is held."""
    draw = random.Random(0)
    docs = [f"{'a ' * (i % 6)}{'x ' * draw.randint(0, 20)}" for i in range(2000)]
    collection, axiom = made(docs, ["a"]), TFC2(analyzer="whitespace", length=3, most=50_000)
    assert sum(map(len, axiom.views(collection))) == 2000  # analysed before memory is measured
    tracemalloc.start()
    found = axiom.contrasts(collection)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    every = count_triples(docs, 3)
    assert 10_000 < len(found) <= 50_000 < every
    assert len(found) + sum(found.dropped.values()) == every
    assert peak < 80 << 20 < every * 12  # bytes; all rows would take more


def count_triples(docs, tolerance):
    """How many there are, by counting documents per number of `a` and length."""
    size = max(len(text.split()) for text in docs) + 1
    table = np.zeros((6, size), np.int64)
    for text in docs:
        table[text.split().count("a"), len(text.split())] += 1
    found = 0
    for one, two, three in [(1, 2, 3), (2, 3, 4), (3, 4, 5), (1, 3, 5)]:
        for i in range(size):
            for j in range(max(0, i - tolerance), min(size, i + tolerance + 1)):
                low, high = max(0, max(i, j) - tolerance), min(i, j) + tolerance + 1
                found += table[one, i] * table[two, j] * table[three, low:high].sum()
    return int(found)
