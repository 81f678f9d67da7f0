"""Every axiom on two documents against plain loops over its definition, and by hand; and its word vectors."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from random import Random

import numpy as np
import pytest
from axiom_oracles import COLLECTIONS, CUTS, LENGTHS, RULES, Space, crowd, expected, found_by, made, real
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.data import Collection, open_collection, write_run
from whyrank.rankers import Setting, open_ranker
from whyrank.studies.axioms import axioms, meaning
from whyrank.studies.axioms.aspects import REG
from whyrank.studies.axioms.semantic import STMC1, STMC2
from whyrank.text import Analyzer, analyzers
from whyrank.text.vectors import GloVe, collection_vectors

COMPAT = "camara-hauff"
RELEASED = [f"{name}(compat={COMPAT})" for name in ("TFC1", "M-TDC", "LNC1", "TP", "STMC1", "STMC2", "STMC3")]
CASES = [*RULES, *RELEASED, "LNC1(variant=length)", "LB1(scores=first)"]
every_case = pytest.mark.parametrize("spec", CASES)
OPTIONS = {
    "length": LENGTHS,
    "idf": st.sampled_from([0, 0.3, "10%", "50%", "100%"]),
    "margin": st.sampled_from(["10%", "0%", 0.1, "50%"]),
    "coverage": st.sampled_from(["distinct", "occurrences"]),
    "distance": st.sampled_from([0.02, 0.2, 0.9, 2]),
}
_draw = Random(7)
SPACE = {word: [_draw.gauss(0, 1) for _ in range(4)] for word in ("a", "b", "c", "x", "z", "unseen")}  # none for y
FLAT = {
    "q": [1, 0], "r": [1, 0.1], "s": [0, 1], "near": [0.9, 0.1], "mid": [0.6, 0.4], "far": [0, 2], "back": [-0.9, -0.1],
    "dim": [-0.6, -0.4], "rr": [-1, -0.1],
}  # fmt: skip


def write(path, space):
    path.write_text("".join(f"{word} {' '.join(map(repr, vector))}\n" for word, vector in space.items()), "utf-8")
    return str(path)


@pytest.fixture(scope="module")
def spaces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    return {"space": write(folder / "space.txt", SPACE), "flat": write(folder / "flat.txt", FLAT)}


def create(spec, **arguments):
    return axioms.create(f"axiom/{spec}", **{"analyzer": "whitespace", **arguments})


@every_case
@given(data=st.data(), collection=COLLECTIONS, cut=CUTS)
@settings(max_examples=40)
def test_equals_plain_loops(spec, spaces, data, collection, cut):
    """Same instances, same winners, each once."""
    names = {field.name for field in fields(create(spec))} & set(OPTIONS)
    options = {name: data.draw(OPTIONS[name]) for name in sorted(names)}
    axiom = replace(create(spec, max_tokens=cut, vectors=spaces["space"]), **options)
    assert found_by(axiom, collection) == expected(axiom, collection, Space(SPACE))


@every_case
def test_a_crowd_has_instances(spec, spaces):
    """With the texts and grades of their ids."""
    axiom, collection = create(spec, vectors=spaces["space"]), crowd()
    found = axiom.contrasts(collection)
    ids, queries = found.labels["doc_ids"].values().tolist(), found.labels["query_id"].values().tolist()
    assert found_by(axiom, collection) == expected(axiom, collection, Space(SPACE)) != []
    assert [[found.docs[d] for d in row] for row in found.doc] == [[collection.docs[d] for d in row] for row in ids]
    assert [found.queries[q] for q in found.query] == [collection.queries[q] for q in queries]
    assert found.labels["relevance"].tolist() == [[int(d[1:]) % 3 for d in row] for row in ids]


@pytest.fixture(scope="module", params=["cranfield", "msmarco_dl19"])
def real_case(request, data_folder):
    collection = real(data_folder / request.param)
    trained = collection_vectors(collection.docs, analyzers.create("lucene"), GloVe())
    return collection, Space(dict(zip(trained.words, trained.matrix, strict=True)))


@every_case
def test_real_texts(spec, real_case):
    """Vectors are those that are trained on the collection."""
    collection, space = real_case
    axiom = create(spec, analyzer="lucene", max_tokens=60)
    assert found_by(axiom, collection) == expected(axiom, collection, space)


BACKGROUND = ["b", "b y"]  # so that `b` is more common than `a`
BY_HAND = [
    # spec, other documents, query, first, second, who wins
    ("TFC1", (), "a b", "a a", "a", 1),
    ("TFC1", (), "a b", "a a", "x", 0),  # no query term
    ("TFC3", ["b"], "a b", "a b", "a a", 1),
    ("TFC3", ["b"], "a b", "a b", "a a a", 0),  # another sum
    ("TDC", BACKGROUND, "a b", "a x y z", "b x y z", 1),
    ("TDC", (), "a b", "a", "b", 0),  # as rare as each other
    ("M-TDC", BACKGROUND, "a b", "a x y z", "b x y z", 1),
    ("M-TDC", ["b y", "a a a a"], "a b", "a x", "b x", 0),  # both directions hold
    ("M-TDC", ["b y", "a a a a"], "a b b", "a x", "b x", -1),  # the query has it more often
    (f"M-TDC(compat={COMPAT})", ["b y", "a a a a"], "a b", "a x", "b x", -1),  # by collection frequency
    ("M-TDC", (), "a b c", "a a b c", "b b c c", 0),  # two terms that take over the count of a third
    ("TF-LNC", (), "a b", "a a x", "a x", 1),
    ("TF-LNC", (), "a b", "a a x", "a x y", 0),  # the length of the rest
    ("LNC1", (), "a b", "a x", "a x x", 1),
    ("LNC1", (), "a b", "a x", "a x y", 1),  # of a word that the first lacks
    ("LNC1", (), "a b", "a x y y", "a x x y", 0),  # one more on either side
    ("LNC1", (), "a b", "a x", "a a x x", 0),  # other counts of a query term
    ("LNC1(variant=length)", (), "a b", "a x", "a x y y", 1),
    (f"LNC1(compat={COMPAT})", (), "a b", "a x", "a a x x", 1),
    ("LB1", (), "a b", "a a b", "b x", 1),  # present is enough
    ("LB1", (), "a a", "a", "x", 0),  # one distinct term
    ("LB1", (), "a b", "a", "b", 0),  # each lacks one
    ("AND", (), "a b", "b a", "b b", 1),
    ("AND(length=2)", (), "a b", "b a x x x", "b b", 0),
    ("AND", (), "b b", "b", "x", 0),  # one distinct term
    ("AND(max_tokens=2)", (), "a b", "x a b", "x y", 0),  # what is cut off does not count
    ("M-AND", (), "a b c", "b c", "a a", 1),
    ("DIV", (), "b", "b x y", "b x", 1),
    ("DIV", (), "b", "b x x x", "b x", 0),  # sets, not counts
    ("DIV", (), "", "", "", 0),
    ("TP", (), "a b", "a b", "a x b", 1),
    ("PROX1", (), "a b c", "a b", "a x x b c", 1),
    ("PROX2", (), "a b", "a x b", "x a b", 1),
    ("PROX3", (), "a a", "a a x", "x a a", 1),  # repeated tokens are a phrase of two
    ("PROX3", (), "a", "a x", "x a", 0),  # a query of one token
    ("PROX4", (), "a b", "a b x a b", "a b x x x", 1),  # as tight, and more often
    ("PROX5", (), "a b", "a b a", "a b x a", 1),
    ("QPHRA", (), "b a", "x b a", "a b x", 1),
    ("STMC1", (), "q", "q near", "q far", 1),
    ("STMC1", (), "q", "q q near", "q far", 1),
    ("STMC1(coverage=occurrences)", (), "q", "q q near", "q far", 0),
    (f"STMC1(compat={COMPAT})", (), "q", "q near", "q far", -1),
    ("STMC1", (), "q", "q mid r near dim back rr", "q far", 0),  # all cancel out, but for rounding
    ("STMC1", (), "q", "q mid near unknown", "unknown q near mid", 0),  # the same words
    ("STMC2", (), "q", "q q near", "q near", 1),
    ("STMC2", (), "q", "q q near", "q far", 0),  # not alike
    ("STMC2(distance=1)", (), "q", "q q near", "q far", 1),
    ("STMC2", (), "nothing", "near nothing", "near", 1),  # the query itself needs no vector
    ("STMC3", (), "q", "q near far", "q q far", 1),
    ("STMC3", (), "q s", "q near far", "q s far", 0),  # other coverage
    ("STMC3", (), "q", "q near", "q q far" + " far" * 7, 1),  # nine more
    ("STMC3", (), "q", "q near", "q q far" + " far" * 9, 0),  # ten more
    (f"STMC3(compat={COMPAT})", (), "q", "q far", "q near near", 1),
    ("REG", (), "q r s", "s q x", "q r x", 1),  # s is least like q and r
    ("ANTI-REG", (), "q r s", "r r x", "q s x", 1),  # r is most like q and s
    ("REG", (), "q s", "s", "q", 0),  # two terms
    ("REG", (), "q r unknown", "unknown", "q", 0),  # two terms with vectors
]


@pytest.mark.parametrize(("spec", "others", "query", "first", "second", "wins"), BY_HAND)
def test_by_hand(spec, others, query, first, second, wins, spaces):
    axiom, collection = create(spec, vectors=spaces["flat"]), made([first, second, *others], [query])
    assert axiom.preference(query, first, second, collection) == wins
    assert axiom.preference(query, second, first, collection) == -wins


def test_both_orders_only_under_compat():
    collection = made(["a x", "b x"], ["a b"])
    assert found_by(create("M-TDC"), collection) == found_by(create("TDC"), collection) == []
    both = [("q0", ("d0", "d1")), ("q0", ("d1", "d0"))]
    assert found_by(create(f"M-TDC(compat={COMPAT})"), collection) == both
    assert found_by(create(f"LNC1(compat={COMPAT})"), made(["a x y y", "a x x y"], ["a b"])) == both


@pytest.mark.parametrize("percent", [7, 10, 29, 35, 58, 70, 82])
def test_shares_of_a_length_are_exact(percent, spaces):
    """29% of 100 tokens are 29, although 0.29 * 100 is less in floating point; STMC3 leaves out the end, TFC1 not."""
    tfc1, stmc3 = create(f"TFC1(length={percent}%)"), create(f"STMC3(length={percent}%)", vectors=spaces["flat"])
    for longer in range(50, 300, 50):
        room = percent * longer // 100
        texts = ["q q " + "far " * (longer - 2), "q " + "near " * (longer - room - 1)]
        assert tfc1.preference("q", *texts) == 1
        assert tfc1.preference("q", texts[0], texts[1].removesuffix("near ")) == 0
        assert stmc3.preference("q", texts[1], texts[0]) == (0 if percent * longer % 100 == 0 else 1)
        assert stmc3.preference("q", texts[1] + "near", texts[0]) == 1


def test_close_fractions_are_told_apart():
    """13,333 / 40,000 is less than 13,334 / 40,003, but not by a billionth."""
    words = [f"w{i}" for i in range(40_000)]
    first, second = words[:13_333], [*words[:13_334], "x", "y", "z"]
    assert create("DIV", max_tokens=None).preference(*map(" ".join, (words, first, second))) == 1


@pytest.mark.parametrize(
    ("spec", "stated", "released"), [("TP", "closest", "farther"), ("STMC1", "nearer", "further")]
)
def test_compat_says_which_text_it_favours(spec, stated, released):
    plain, compat = create(spec), create(f"{spec}(compat={COMPAT})")
    assert [stated in axiom.positive for axiom in (plain, compat)] == [True, False]
    assert [released in axiom.positive for axiom in (plain, compat & compat)] == [False, True]


def test_views_in_turns_keep_their_own_words():
    """LNC1 keeps the words of the last view only; those of another query are other words."""
    axiom = create("LNC1")
    views = list(axiom.views(crowd()))
    alone = [axiom.matrix(view).tolist() for view in views]
    assert [axiom.matrix(view).tolist() for view in reversed(views)] == alone[::-1]
    assert alone[0] != alone[1]


def test_lb1_takes_the_scores_of_a_run_file(tmp_path):
    docs = {"both": "berlin wall", "wall": "wall", "also": "wall cat", "far": "wall wall"}
    collection = Collection.of(docs, {"q": "berlin wall"}, {"q": dict.fromkeys(docs, 0)})
    write_run(tmp_path / "run", {"q": {"both": 10.0, "wall": 9.0, "far": 8.9}})
    found = create(f"LB1(scores='{tmp_path / 'run'}')").contrasts(collection)
    assert found.labels["doc_ids"].values().tolist() == [["both", "wall"]]


WORDS = st.lists(st.sampled_from("abcxy"), min_size=2, max_size=12)
SHUFFLES = WORDS.flatmap(lambda words: st.lists(st.permutations(words).map(" ".join), min_size=2, max_size=6))


@pytest.mark.parametrize("ranker", ["bm25", "ql"])
@given(texts=SHUFFLES, query=st.lists(st.sampled_from("abcx"), min_size=1, max_size=4).map(" ".join))
@settings(max_examples=30)
def test_a_bag_of_words_ties_on_proximity(ranker, texts, query):
    """Where all texts have the same words, every contrast is an exact tie."""
    collection = made(texts, [query])
    scorer = open_ranker(ranker, Setting(collection, "whitespace"))
    for name in ("TP", "PROX1", "PROX2", "PROX3", "PROX4", "PROX5", "QPHRA"):
        found = create(name).contrasts(collection)
        queries = [found.queries[i] for i in found.query]
        assert np.array_equal(*(scorer.score(queries, [found.docs[i] for i in side]) for side in found.doc.T))


@pytest.mark.parametrize("name", ["sample", "cranfield", "msmarco_dl19"])
def test_bm25_gives_more_for_a_new_term(request, name):
    """BM25 has diminishing returns and the terms are about as rare: it obeys LB2, and LB1 at similar length."""
    collection = open_collection(name if name == "sample" else str(request.getfixturevalue("data_folder") / name))
    bm25 = open_ranker("bm25", Setting(collection))
    for spec in ("LB1", "LB2"):
        found = create(spec, analyzer="lucene", most=2000).contrasts(collection)
        queries = [found.queries[i] for i in found.query]
        winner, loser = (bm25.score(queries, [found.docs[i] for i in column]) for column in found.doc.T)
        assert (winner > loser).mean() > 0.99
        assert len(found) > 40


# What the semantic axioms see: vectors of terms, trained or read, and what has none.

SEMANTIC = ["STMC1", "STMC2", "STMC3", "REG", "ANTI-REG", "STMC1(compat=camara-hauff)"]


@pytest.mark.parametrize("spec", SEMANTIC)
def test_trained_vectors(spec):
    """They are those of the documents in any order."""
    collection, axiom = crowd(), axioms.create(f"axiom/{spec}", analyzer="whitespace", seed=3)
    trained = collection_vectors(collection.docs, analyzers.create("whitespace"), GloVe(seed=3))
    space = Space(dict(zip(trained.words, trained.matrix, strict=True)))
    assert found_by(axiom, collection) == expected(axiom, collection, space)
    backwards = Collection.of(dict(reversed(collection.docs.items())), collection.queries, collection.qrels)
    assert axiom.contrasts(backwards).fingerprint == axiom.contrasts(collection).fingerprint


def test_no_term_stands_out_where_two_are_alike(tmp_path):
    spec = write(tmp_path / "v.txt", {"q": [1, 0], "r": [2, 0], "s": [0, 1], "t": [0, 3]})
    axiom = REG(analyzer="whitespace", vectors=spec)
    assert axiom.preference("q r s t", "s", "q") == 0
    assert axiom.preference("q r s", "s", "q") == 1
    assert axiom.contrasts(made(["q", "s"], ["q r s t", "q r s", "q r"])).dropped == {
        "queries of fewer than three terms with a vector": 1,
        "queries without a single term least like the others": 1,
    }


def test_what_has_no_vector_is_counted_and_never_an_instance(spaces):
    docs = ["q near", "q far", "q unknown", "q", "q near back", "other unknown q mid"]
    collection, axiom = made(docs, ["q", "lost", "q lost"]), STMC1(analyzer="whitespace", vectors=spaces["flat"])
    assert axiom.contrasts(collection).dropped == {
        "words without a vector": 3,
        "documents without a word vector outside the query": 6,  # an unknown word, no other word, two that cancel out
        "queries without a word vector": 1,
    }
    assert {pair for _, pair in found_by(axiom, collection)} == {("d0", "d1"), ("d0", "d5"), ("d5", "d1")}
    both = STMC2(analyzer="whitespace", vectors=spaces["flat"]).contrasts(collection).dropped
    assert set(both) == {"words without a vector", "documents without a word vector outside the query"}


def units_of(axiom, collection):
    """The vector of each term of the collection that has one."""
    views = axiom.views(collection)
    slot, units, _ = axiom.term_vectors(views)
    terms = views.pools.analyzer.vocabulary.terms[: len(slot)]
    return {term: units[slot[i]] for i, term in enumerate(terms) if slot[i] >= 0}


def test_the_vector_of_a_stem_is_the_mean_of_its_forms(tmp_path):
    space = {"running": [2, 0], "runs": [0, 1], "run": [-5, -5], "jumps": [0, 1], "Ran": [1, 1], "lazi": [3, 4], "us": [1, 0]}  # fmt: skip
    collection = made(["He RUNNING, runs! lazy us", "Jumps; Ran jump running"], ["runs lazy unseen"])
    found = units_of(STMC1(analyzer="lucene", vectors=write(tmp_path / "v.txt", space)), collection)
    half = math.sqrt(0.5)
    wanted = {"run": [half, half], "jump": [0, 1], "ran": [half, half], "lazi": [0.6, 0.8], "us": [1, 0]}
    assert {term: found[term] for term in wanted} == {t: pytest.approx(v) for t, v in wanted.items()}
    assert "u" not in found


def test_tokens_inside_words_lose_their_mark(tmp_path):
    def tokens(text):
        return [token for word in text.split() for token in (word[:3], f"##{word[3:]}") if token.strip("#")]

    space = {"run": [1, 0], "running": [1, 9], "ning": [0, 1], "##ner": [1, 1], "cat": [3, 4]}
    spec = write(tmp_path / "v.txt", space)
    analyzers.register("semantic-test-tokens")(lambda: Analyzer.of("semantic-test-tokens", tokens))
    try:
        axiom = STMC1(analyzer="semantic-test-tokens", vectors=spec)
        found = units_of(axiom, made(["running runner cat ##"], ["cat"]))
    finally:
        analyzers.forget("semantic-test-tokens")
    assert set(found) == {"run", "##ning", "cat"}
    assert found["cat"] == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("texts", [("", ""), ("x", ""), ("q", "q q"), ("a b c q", "q r s a"), ("?", "\ud800 q")])
def test_two_texts_alone_are_enough_to_train_on(texts):
    for spec in SEMANTIC:
        for query in ("q r s", ""):
            assert axioms.create(f"axiom/{spec}").preference(query, *texts) in (-1, 0, 1)


def test_many_documents_do_without_one_table(tmp_path, monkeypatch):
    axiom = STMC2(analyzer="whitespace", vectors=write(tmp_path / "v.txt", SPACE))
    whole = found_by(axiom, crowd())
    monkeypatch.setattr(meaning, "_CELLS", 10)
    monkeypatch.setattr(meaning, "_PAIRS", 7)
    assert found_by(axiom, crowd()) == whole


def test_training_happens_once_for_a_collection_and_seed(monkeypatch):
    trained, train = [], GloVe.train
    monkeypatch.setattr(GloVe, "train", lambda self, *given: (trained.append(self.seed), train(self, *given))[1])
    collection = crowd()
    for spec in SEMANTIC:
        axiom = axioms.create(f"axiom/{spec}", analyzer="whitespace")
        axiom.contrasts(collection)
        axiom.preference("a b c", "a x", "b z", collection)
    assert trained == [0]
    seeds = [STMC1(analyzer="whitespace", seed=seed) for seed in (0, 1)]
    cosines = [axiom.nearness(next(iter(axiom.views(collection)))).cosine for axiom in seeds]
    assert not np.allclose(*cosines, equal_nan=True)
