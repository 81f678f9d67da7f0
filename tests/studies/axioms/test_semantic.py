"""The semantic axioms against nested loops over their definitions, with vectors made by hand and trained ones."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from count_oracles import COLLECTIONS, CUTS, check_order, check_signs, found_by, made, near, oracle, real
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import BadInput
from whyrank.data import Collection
from whyrank.studies.axioms import meaning
from whyrank.studies.axioms.aspects import ANTI_REG, REG
from whyrank.studies.axioms.semantic import STMC1, STMC2, STMC3
from whyrank.text import Analyzer, analyzers
from whyrank.text.vectors import GloVe, collection_vectors

COMPAT = "camara-hauff"
CASES = [(STMC1, None), (STMC1, COMPAT), (STMC2, None), (STMC2, COMPAT), (STMC3, None), (STMC3, COMPAT)]
CASES += [(REG, None), (ANTI_REG, None)]
every_axiom = pytest.mark.parametrize(("kind", "compat"), CASES, ids=lambda case: getattr(case, "name", case))

_draw = Random(7)
SPACE = {word: [_draw.gauss(0, 1) for _ in range(4)] for word in "abcxz"}  # no vector for y; "unseen" has one
SPACE["unseen"] = [_draw.gauss(0, 1) for _ in range(4)]


def write(path, space):
    path.write_text("".join(f"{word} {' '.join(map(repr, vector))}\n" for word, vector in space.items()), "utf-8")
    return str(path)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    return write(tmp_path_factory.mktemp("vectors") / "space.txt", SPACE)


class Oracle:
    """Means and cosines by loops."""

    def __init__(self, space):
        self.space = {word: self.unit(np.float32(vector).tolist()) for word, vector in space.items()}

    @staticmethod
    def unit(vector):
        size = math.sqrt(sum(x * x for x in vector))
        return [x / size for x in vector] if size > 1e-9 else None

    def mean(self, words):
        vectors = [self.space[word] for word in words if word in self.space]
        sums = [sum(column) for column in zip(*vectors, strict=True)] if vectors else []
        return self.unit([x / len(vectors) for x in sums]) if vectors else None

    def cosine(self, one, two):
        return None if one is None or two is None else sum(x * y for x, y in zip(one, two, strict=True))

    def others(self, facts, doc):
        return self.mean([word for word in sorted(doc.count.elements()) if word not in facts.terms])

    def to_query(self, facts, doc):
        return self.cosine(self.others(facts, doc), self.mean(facts.asked))

    def stmc1(self, axiom, facts, one, two):
        by_occurrence = axiom.compat or axiom.coverage == "occurrences"
        had = [[min(d.count[q], d.count[q] if by_occurrence else 1) for q in facts.terms] for d in (one, two)]
        first, second = self.to_query(facts, one), self.to_query(facts, two)
        if sum(had[0]) != sum(had[1]) or first is None or second is None:
            return False
        return second > first + 1e-9 if axiom.compat else first > second + 1e-9

    def stmc2(self, axiom, facts, one, two):
        alike = self.cosine(self.others(facts, one), self.others(facts, two))
        sums = [sum(doc.count[q] for q in facts.terms) for doc in (one, two)]
        return alike is not None and 1 - alike <= axiom.distance + 1e-9 and sums[0] > sums[1]

    def stmc3(self, axiom, facts, one, two):
        sums = [sum(doc.count[q] for q in facts.terms) for doc in (one, two)]
        distinct = [sum(doc.count[q] > 0 for q in facts.terms) for doc in (one, two)]
        first, second = self.to_query(facts, one), self.to_query(facts, two)
        if (
            abs(one.length - two.length) >= axiom.length
            or distinct[0] != distinct[1]
            or first is None
            or second is None
        ):
            return False
        if axiom.compat:
            return two.length - sums[1] > one.length - sums[0] and first + 1e-9 < second
        return sums[1] > sums[0] and first > second + 1e-9

    def reg(self, axiom, facts, one, two, best=min):
        known = [q for q in facts.terms if q in self.space]
        sums = [sum(doc.count[q] for q in facts.terms) for doc in (one, two)]
        if len(known) < 3 or sums[0] != sums[1] or not near(one.length, two.length, axiom.length):
            return False
        like = {}
        for q in known:
            cosines = [self.cosine(self.space[q], self.space[other]) for other in known if other != q]
            like[q] = sum(cosines) / len(cosines)
        [star, *more] = [q for q in known if abs(like[q] - best(like.values())) <= 1e-9]
        return not more and one.count[star] > two.count[star]

    def anti_reg(self, axiom, facts, one, two):
        return self.reg(axiom, facts, one, two, best=max)

    def rule(self, axiom):
        kind = getattr(self, type(axiom).__name__.lower())
        return lambda facts, one, two: kind(axiom, facts, one, two)


def options(kind):
    """Values for the arguments that only some of the axioms have."""
    return {
        STMC1: {"coverage": st.sampled_from(["distinct", "occurrences"])},
        STMC2: {"distance": st.sampled_from([0.02, 0.2, 0.9, 2])},
        STMC3: {"length": st.sampled_from([1, 2, 10])},
    }.get(kind, {"length": st.sampled_from([0, 2, 10, "50%"])})


@every_axiom
@settings(max_examples=40)
@given(data=st.data(), collection=COLLECTIONS, cut=CUTS)
def test_instances_are_those_of_the_definition(vectors, kind, compat, data, collection, cut):
    given_ = data.draw(st.fixed_dictionaries(options(kind)))
    axiom = kind(analyzer="whitespace", vectors=vectors, compat=compat, max_tokens=cut, **given_)
    assert found_by(axiom, collection) == oracle(axiom, collection, Oracle(SPACE).rule(axiom))


def crowd(size=40):
    draw = Random(2)
    docs = [" ".join(draw.choices("aabbcxxyz", k=draw.randint(0, 9))) for _ in range(size)]
    return made(docs, ["a b", "a b c b", "c b a", "a y x", "y"])


@every_axiom
def test_a_crowd_has_instances_and_signs_agree(vectors, kind, compat):
    axiom = kind(analyzer="whitespace", vectors=vectors, compat=compat)
    found = found_by(axiom, crowd())
    assert len(found) > 20
    assert found == oracle(axiom, crowd(), Oracle(SPACE).rule(axiom))
    check_signs(axiom, crowd(16), Oracle(SPACE).rule(axiom))
    check_order(axiom, crowd())


@every_axiom
def test_trained_vectors(kind, compat):
    collection = crowd()
    axiom = kind(analyzer="whitespace", compat=compat, seed=3)
    trained = collection_vectors(collection.docs, analyzers.create("whitespace"), GloVe(seed=3))
    rule = Oracle(dict(zip(trained.words, trained.matrix.tolist(), strict=True))).rule(axiom)
    assert found_by(axiom, collection) == oracle(axiom, collection, rule)
    check_signs(axiom, collection, rule)
    check_order(axiom, collection)
    backwards = Collection.of(dict(reversed(collection.docs.items())), collection.queries, collection.qrels)
    assert axiom.contrasts(backwards).fingerprint == axiom.contrasts(collection).fingerprint


class Real(Oracle):
    """Means that are computed once, for longer texts."""

    def __init__(self, vectors):
        self.space = dict(zip(vectors.words, vectors.units(np.arange(len(vectors))), strict=True))
        self.known = {}

    def mean(self, words):
        if (key := tuple(words)) not in self.known:
            vectors = [self.space[word] for word in words if word in self.space]
            self.known[key] = np.sum(vectors, axis=0) / np.linalg.norm(np.sum(vectors, axis=0)) if vectors else None
        return self.known[key]

    def others(self, facts, doc):
        key = tuple(facts.terms), id(doc.count)
        if key not in self.known:
            self.known[key] = (doc, super().others(facts, doc))
        return self.known[key][1]

    def cosine(self, one, two):
        return None if one is None or two is None else float(one @ two)


@pytest.fixture(scope="module", params=["cranfield", "msmarco_dl19"])
def real_case(request, data_folder):
    collection = real(data_folder / request.param, size=30)
    return collection, Real(collection_vectors(collection.docs, analyzers.create("lucene"), GloVe()))


@every_axiom
def test_ten_queries_of_real_collections(real_case, kind, compat):
    collection, space = real_case
    axiom = kind(compat=compat)
    found = found_by(axiom, collection)
    assert found == oracle(axiom, collection, space.rule(axiom))
    assert found


FLAT = {
    "q": [1, 0],
    "r": [1, 0.1],
    "s": [0, 1],
    "near": [0.9, 0.1],
    "mid": [0.6, 0.4],
    "far": [0, 2],
    "back": [-0.9, -0.1],
    "dim": [-0.6, -0.4],
    "rr": [-1, -0.1],
}


@pytest.fixture
def flat(tmp_path):
    return write(tmp_path / "flat.vec", FLAT)


def asked(axiom, query, one, two):
    signs = axiom.preference(query, one, two), axiom.preference(query, two, one)
    assert signs[0] == -signs[1]
    return signs[0]


def test_stmc1_by_hand(flat):
    axiom = STMC1(analyzer="whitespace", vectors=flat)
    assert asked(axiom, "q", "q near", "q far") == 1
    assert asked(axiom, "q", "near", "mid far") == 1
    assert asked(axiom, "q", "q near", "far") == 0, "one has no query term"
    assert asked(axiom, "q", "q q near", "q far") == 1
    assert asked(STMC1(analyzer="whitespace", vectors=flat, coverage="occurrences"), "q", "q q near", "q far") == 0
    assert asked(STMC1(analyzer="whitespace", vectors=flat, compat=COMPAT), "q", "q q near", "q far") == 0
    assert asked(STMC1(analyzer="whitespace", vectors=flat, compat=COMPAT), "q", "q near", "q far") == -1
    assert asked(axiom, "q", "q near near", "q near") == 0, "the same direction"
    for order in ("mid r near dim back rr", "back dim rr mid near r", "near r mid back rr dim"):
        assert asked(axiom, "q", f"q {order}", "q far") == 0, "all cancel out, but for rounding"
    assert asked(axiom, "q", "q mid near unknown", "unknown q near mid") == 0, "the same words"


def test_compat_says_which_text_it_favours(flat):
    """STMC1 and STMC3 turn round under compat, and so do their words, in a combination too."""
    for kind in (STMC1, STMC3):
        stated, released = kind(vectors=flat), kind(vectors=flat, compat=COMPAT)
        assert ("nearer" in stated.positive, "further" in stated.positive) == (True, False)
        assert ("nearer" in released.positive, "further" in released.positive) == (False, True)
        assert released.favoured in (released & released).positive
        assert released.favoured in (-released).positive


@pytest.mark.parametrize("percent", [7, 10, 14, 15, 29, 35, 70])
def test_stmc3_leaves_out_lengths_that_differ_by_the_whole_share(flat, percent):
    axiom = STMC3(analyzer="whitespace", vectors=flat, length=f"{percent}%")
    for longer in range(20, 300, 10):
        room = percent * longer // 100
        for difference, sign in ((room, 0 if percent * longer % 100 == 0 else 1), (room - 1, 1)):
            few, more = "q " + "near " * (longer - difference - 1), "q q " + "far " * (longer - 2)
            assert asked(axiom, "q", few, more) == sign, (longer, difference)


@pytest.mark.parametrize("compat", [None, COMPAT])
def test_stmc2_by_hand(flat, compat):
    axiom = STMC2(analyzer="whitespace", vectors=flat, compat=compat)
    assert asked(axiom, "q", "q q near", "q near") == 1
    assert asked(axiom, "q", "q near", "near") == 1
    assert asked(axiom, "q", "q near", "q near near") == 0, "as many query terms"
    assert asked(axiom, "q", "q q near", "q far") == 0, "not alike"
    wide = STMC2(analyzer="whitespace", vectors=flat, compat=compat, distance=1)
    assert asked(wide, "q", "q q near", "q far") == 1
    assert asked(wide, "q", "q q near", "q back") == 0
    assert asked(axiom, "nothing", "near nothing", "near") == 1, "the query itself needs no vector"


def test_stmc3_by_hand(flat):
    axiom = STMC3(analyzer="whitespace", vectors=flat)
    assert asked(axiom, "q", "q near far", "q q far") == 1
    assert asked(axiom, "q", "q q near", "q far far") == 0, "more query terms and nearer"
    assert asked(axiom, "q s", "q near far", "q s far") == 0, "other coverage"
    assert asked(axiom, "q", "q near", "q q far" + " far" * 7) == 1, "nine more"
    assert asked(axiom, "q", "q near", "q q far" + " far" * 9) == 0, "ten more"
    assert asked(STMC3(analyzer="whitespace", vectors=flat, length="100%"), "q", "q near", "q q" + " far" * 30) == 1
    compat = STMC3(analyzer="whitespace", vectors=flat, compat=COMPAT)
    assert asked(compat, "q", "q far", "q near near") == 1
    assert asked(compat, "q", "q near", "q far far") == 0
    assert asked(compat, "q", "q far", "q q near") == 0


def test_reg_by_hand(flat):
    axiom, anti = (kind(analyzer="whitespace", vectors=flat) for kind in (REG, ANTI_REG))
    assert asked(axiom, "q r s", "s q x", "q r x") == 1, "s is least like q and r"
    assert asked(anti, "q r s", "r r x", "q s x") == 1, "r is most like q and s"
    assert asked(axiom, "q r s", "s", "q" + " x" * 10) == 1
    assert asked(axiom, "q r s", "s", "q" + " x" * 11) == 0, "too long"
    assert asked(axiom, "q r s", "s q", "q") == 0, "more query terms"
    assert asked(axiom, "q s", "s", "q") == 0, "two terms"
    assert asked(axiom, "q r unknown", "unknown", "q") == 0, "two terms with vectors"
    assert asked(axiom, "q r s s unknown", "s", "unknown") == 1


def test_no_term_stands_out_where_two_are_alike(tmp_path):
    spec = write(tmp_path / "v.txt", {"q": [1, 0], "r": [2, 0], "s": [0, 1], "t": [0, 3]})
    axiom = REG(analyzer="whitespace", vectors=spec)
    assert asked(axiom, "q r s t", "s", "q") == 0
    assert asked(axiom, "q r s", "s", "q") == 1
    collection = made(["q", "s"], ["q r s t", "q r s", "q r"])
    dropped = axiom.contrasts(collection).dropped
    assert dropped == {
        "queries of fewer than three terms with a vector": 1,
        "queries without a single term least like the others": 1,
    }


def test_what_has_no_vector_is_counted_and_never_an_instance(flat):
    docs = ["q near", "q far", "q unknown", "q", "q near back", "other unknown q mid"]
    collection = made(docs, ["q", "lost", "q lost"])
    axiom = STMC1(analyzer="whitespace", vectors=flat)
    found = axiom.contrasts(collection)
    assert (
        found.dropped
        == {
            "words without a vector": 3,
            "documents without a word vector outside the query": 6,  # for two queries: the unknown word, no other word, and two that cancel out
            "queries without a word vector": 1,
        }
    )
    assert {pair for _, pair in found_by(axiom, collection)} == {("d0", "d1"), ("d0", "d5"), ("d5", "d1")}
    both = STMC2(analyzer="whitespace", vectors=flat).contrasts(collection).dropped
    assert set(both) == {"words without a vector", "documents without a word vector outside the query"}


def units_of(axiom, collection):
    """The vector of each term of the collection."""
    views = axiom.views(collection)
    slot, units, _ = axiom.term_vectors(views)
    return {term: units[slot[i]] for i, term in enumerate(views.pools.analyzer.vocabulary.terms) if _known(slot, i)}


def _known(slot, i):
    return i < len(slot) and slot[i] >= 0


def test_the_vector_of_a_stem_is_the_mean_of_its_forms(tmp_path):
    space = {
        "running": [2, 0],
        "runs": [0, 1],
        "run": [-5, -5],
        "jumps": [0, 1],
        "Ran": [1, 1],
        "lazi": [3, 4],
        "us": [1, 0],
    }
    spec = write(tmp_path / "v.txt", space)
    collection = made(["He RUNNING, runs! lazy us", "Jumps; Ran jump running"], ["runs lazy unseen"])
    found = units_of(STMC1(analyzer="lucene", vectors=spec), collection)
    half = math.sqrt(0.5)
    expected = {"run": [half, half], "jump": [0, 1], "ran": [half, half], "lazi": [0.6, 0.8], "u": None, "us": [1, 0]}
    for term, vector in expected.items():
        assert (vector is None and term not in found) or found[term] == pytest.approx(vector), term


def test_forms_are_those_of_the_collection_for_two_texts_too(tmp_path):
    spec = write(tmp_path / "v.txt", {"runs": [1, 0], "running": [0, 1], "home": [1, 0.5], "away": [0.5, 1.5]})
    docs = {"d0": "running home", "d1": "runs away", "d2": "away"}
    collection = Collection.of(docs, {"q": "run"}, {"q": dict.fromkeys(docs, 0)})
    axiom = STMC1(analyzer="lucene", vectors=spec)
    [view] = axiom.views(collection)
    pairs = [("d0", "d1"), ("d0", "d2"), ("d1", "d2")]
    signs = [axiom.matrix(view)[int(i[1]), int(j[1])] for i, j in pairs]
    assert [axiom.preference("run", docs[i], docs[j], collection) for i, j in pairs] == signs
    assert signs == [1, 0, 0]
    none = Collection.of({"d": "home"}, {})
    assert axiom.preference("home", "running home", "home away", none) == -1, "a form that the collection lacks"


def test_pieces_of_words_lose_their_mark(tmp_path):
    def pieces(text):
        return [piece for word in text.split() for piece in (word[:3], f"##{word[3:]}") if piece.strip("#")]

    analyzers.register("semantic-test-pieces")(lambda: Analyzer.of("semantic-test-pieces", pieces))
    try:
        spec = write(
            tmp_path / "v.txt", {"run": [1, 0], "running": [1, 9], "ning": [0, 1], "##ner": [1, 1], "cat": [3, 4]}
        )
        collection = made(["running runner cat ##"], ["cat"])
        found = units_of(STMC1(analyzer="semantic-test-pieces", vectors=spec), collection)
    finally:
        analyzers.forget("semantic-test-pieces")
    assert {term: vector.tolist() for term, vector in found.items()} == {
        "run": [1, 0],
        "##ning": [0, 1],
        "cat": pytest.approx([0.6, 0.8]),
    }


@pytest.mark.parametrize(
    "texts", [("", ""), ("x", ""), ("x", "x"), ("q", "q q"), ("a b c q", "q r s a"), ("?", "\ud800 q")]
)
@every_axiom
def test_two_texts_alone_are_enough_to_train_on(kind, compat, texts):
    for query in ("q r s", "q", "", "!"):
        assert asked(kind(compat=compat), query, *texts) in (-1, 0, 1)


def test_many_documents_do_without_one_table(vectors, monkeypatch):
    axiom = STMC2(analyzer="whitespace", vectors=vectors)
    whole = found_by(axiom, crowd())
    monkeypatch.setattr(meaning, "_CELLS", 10)
    monkeypatch.setattr(meaning, "_PAIRS", 7)
    assert found_by(axiom, crowd()) == whole


def test_other_seeds_train_other_vectors_but_files_stay():
    axioms = [STMC1(analyzer="whitespace", seed=seed) for seed in (0, 1)]
    collection = crowd()
    cosines = [axiom.nearness(next(iter(axiom.views(collection)))).cosine for axiom in axioms]
    assert not np.allclose(*cosines, equal_nan=True)


def test_training_happens_once_for_a_collection(monkeypatch):
    done = []
    real_train = GloVe.train
    monkeypatch.setattr(GloVe, "train", lambda self, *given_: (done.append(1), real_train(self, *given_))[1])
    collection = crowd()
    for kind, compat in CASES:
        axiom = kind(analyzer="whitespace", compat=compat)
        axiom.contrasts(collection)
        axiom.preference("a b c", "a x", "b z", collection)
    assert len(done) == 1


def test_a_missing_file_is_said_when_it_is_needed():
    axiom = STMC1(vectors="nowhere.txt")
    with pytest.raises(BadInput, match=r"nowhere\.txt: no such file, folder or installed package of word vectors"):
        axiom.contrasts(crowd())
