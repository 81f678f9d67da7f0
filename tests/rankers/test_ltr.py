"""Learning to rank: features and the language model against plain Python, the ranker, its training, its files."""

from __future__ import annotations

import math
import pickle
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import MissingExtra, UnknownName, WhyrankError
from whyrank.data import Collection, open_collection
from whyrank.evaluation import evaluate
from whyrank.rankers import Setting, base, open_ranker
from whyrank.rankers.ltr import FEATURES, Boosting, open_features, read_model, train_ltr, train_recipe
from whyrank.rankers.ltr.kneser_ney import KneserNey
from whyrank.rankers.ltr.ranker import with_facts
from whyrank.scoring import Engine, rerank, retrieve
from whyrank.testing import RankerContract
from whyrank.testing.examples import PAIRS, sample
from whyrank.text import analyzers

lightgbm = pytest.importorskip("lightgbm")
WORDS = ["aa", "b", "cat", "Cat", "dog", "eel", "é"]
texts = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
queries = st.lists(st.sampled_from([*WORDS, "new", "other"]), max_size=6).map(" ".join)
ALL, WHITESPACE, START = tuple(FEATURES), analyzers.create("whitespace"), "<start>"


# The bigram language model


class PlainModel:
    """The formulas of Kneser-Ney smoothing, looked up in dictionaries."""

    def __init__(self, texts):
        self.pairs = Counter()
        for words in map(str.split, texts):
            self.pairs.update(zip([START, *words], words, strict=False))
        self.known = sorted({w for _, w in self.pairs})
        self.before = Counter(w for _, w in self.pairs)

    @staticmethod
    def discount(counts):
        ones, twos = sum(c == 1 for c in counts), sum(c == 2 for c in counts)
        return ones / (ones + 2 * twos) if ones and twos else 0.75

    def single(self, w):
        if not self.pairs:
            return 1.0
        d, n = self.discount(self.before.values()), len(self.pairs)
        return max(self.before[w] - d, 0) / n + d * len(self.known) / n / (len(self.known) + 1)

    def probability(self, v, w):
        followers = [c for (left, _), c in self.pairs.items() if left == v]
        if not followers:
            return self.single(w)
        d = self.discount(self.pairs.values())
        kept = max(self.pairs[v, w] - d, 0) / sum(followers)
        return kept + d * len(followers) / sum(followers) * self.single(w)

    def per_token(self, text):
        words = text.split()
        logs = [math.log(self.probability(v, w)) for v, w in zip([START, *words], words, strict=False)]
        return sum(logs) / len(logs) if logs else 0.0


def model_of(texts, analyzer=WHITESPACE):
    return KneserNey.of({str(i): t for i, t in enumerate(texts)}, analyzer)


class TestLanguageModel:
    @settings(max_examples=40)
    @given(st.lists(texts, max_size=8))
    def test_what_may_follow_adds_up_to_one(self, texts):
        model = model_of(texts)
        every = np.arange(len(model.terms) + 1)  # the last one is any unknown term
        for left in [*every, model.start]:
            following = model.probability(np.full(len(every), left), every)
            assert following.sum() == pytest.approx(1, abs=1e-12)
            assert (following > 0).all()

    def test_the_digest_is_that_of_the_counts(self, monkeypatch):
        """Whatever chunks the texts were read in, in whatever order, and whatever the analyzer read before."""
        texts = [" ".join("abcde"[(i * j) % 5] for j in range(1, 4 + i % 7)) for i in range(300)]
        whole = model_of(texts)
        monkeypatch.setattr(base, "CHUNK", 7)
        assert whole.digest == model_of(texts).digest != model_of(texts[:-1]).digest
        spec = "chain(tokens=whitespace,max_length=41)"  # an analyzer that nothing else uses
        first = model_of(["x y z", "z y"], analyzers.create(spec))
        analyzers.create(spec).terms("z w y v x")
        again = model_of(["z y", "x y z"], analyzers.create(spec))
        assert first.digest == again.digest == pickle.loads(pickle.dumps(first)).digest


# Features


class Plain:
    """What the features say, read off lists of words."""

    def __init__(self, docs, query, text):
        self.docs, self.query, self.text = docs, query, text
        self.terms, self.words = query.split(), text.split()
        self.distinct = set(self.terms)
        self.shared = self.distinct & set(self.words)

    def idf(self, term):
        df = sum(term in doc.split() for doc in self.docs)
        return math.log(1 + (len(self.docs) - df + 0.5) / (df + 0.5))

    def overlap(self):
        return len(self.shared)

    def coverage(self):
        return len(self.shared) / len(self.distinct) if self.distinct else 0

    def idf_coverage(self):
        return sum(map(self.idf, self.shared)) / sum(map(self.idf, self.distinct)) if self.distinct else 0

    def occurrences(self):
        return sum(word in self.distinct for word in self.words)

    def density(self):
        return self.occurrences() / len(self.words) if self.words else 0

    def first(self):
        return next((i for i, word in enumerate(self.words) if word in self.distinct), len(self.words))

    def span(self):
        ends = [(i, j) for i in range(len(self.words)) for j in range(i + 1, len(self.words) + 1)]
        return min((j - i for i, j in ends if self.shared <= set(self.words[i:j])), default=0) if self.shared else 0

    def phrase(self):
        n = len(self.terms)
        return int(n > 0 and any(self.words[i : i + n] == self.terms for i in range(len(self.words))))

    def neighbours(self):
        wanted = set(pairwise(self.terms))
        return len(wanted & set(pairwise(self.words))) / len(wanted) if wanted else 0

    def bm25(self):
        average = sum(len(doc.split()) for doc in self.docs) / len(self.docs) if any(map(str.split, self.docs)) else 1
        norm, tf = 0.9 * (0.6 + 0.4 * len(self.words) / average), Counter(self.words)
        return sum(self.idf(t) * tf[t] / (tf[t] + norm) for t in self.terms if tf[t])

    def ql(self):
        cf, tf = Counter(word for doc in self.docs for word in doc.split()), Counter(self.words)
        prior = {t: max(cf[t], 0.5) / max(cf.total(), 1) for t in self.terms}
        return sum(math.log((tf[t] + 1000 * prior[t]) / (len(self.words) + 1000)) for t in self.terms)

    def length(self):
        return len(self.words)

    def query_length(self):
        return len(self.terms)

    def jaccard(self):
        either = self.distinct | set(self.words)
        return len(self.shared) / len(either) if either else 0

    def trigrams(self):
        query, doc = ({s.lower()[i : i + 3] for i in range(len(s) - 2)} for s in (self.query, self.text))
        return len(query & doc) / len(query) if query else 0

    def language(self):
        return PlainModel(self.docs).per_token(self.text)

    def query_language(self):
        return PlainModel(self.docs).per_token(self.query)


def features(docs, names=ALL, **setting):
    collection = Collection.of({str(i): doc for i, doc in enumerate(docs)}, {"q": "x"})
    return open_features(names, Setting(collection, "whitespace", **setting))


class TestFeatures:
    @settings(max_examples=80)
    @given(st.lists(texts, min_size=1, max_size=6), st.lists(st.tuples(queries, texts), min_size=1, max_size=6))
    def test_each_is_what_its_definition_says(self, docs, pairs):
        found = features(docs).matrix(*zip(*pairs, strict=True))
        expected = [[getattr(Plain(docs, *pair), name)() for name in ALL] for pair in pairs]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)

    @given(st.text(max_size=12), st.text(max_size=12))
    def test_trigrams_of_any_characters(self, query, text):
        query, text = (" ".join(each.lower().split()) for each in (query, text))
        found = features(["x"], ["trigrams"]).matrix([query], [text])
        assert found[0, 0] == pytest.approx(Plain(["x"], query, text).trigrams())

    def test_all_are_finite_and_batches_do_not_matter(self):
        for setting in (Setting(sample()), Setting()):
            made = open_features(ALL, setting)
            whole = made.matrix(*zip(*PAIRS, strict=True))
            parts = [made.matrix([query], [text]) for query, text in PAIRS[::-1]]
            assert np.isfinite(whole).all()
            assert np.array_equal(whole, np.concatenate(parts[::-1])), "trees tell the smallest differences apart"
        assert features(["a b"]).matrix([], []).shape == (0, len(ALL))

    def test_another_collection_or_a_file_as_source(self, tmp_path):
        Setting(sample()).background(WHITESPACE, None).save(tmp_path / "s.parquet")
        from_file = features(["a b"], ["bm25", "language"], stats=str(tmp_path / "s.parquet"))
        from_sample = features(["a b"], ["bm25", "language"], stats="sample")
        assert from_file.background.digest == from_sample.background.digest
        assert from_file.language.terms == ["a", "b"], "a file of statistics has no pairs"
        assert len(from_sample.language.terms) > 1000
        assert not len(features(["a b"], ["bm25"]).language.terms), "pairs are counted only where they are needed"


# Training and the ranker


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model trained on the bundled sample, and what training says of it."""
    path = tmp_path_factory.mktemp("ltr") / "model.txt"
    return train_ltr(sample(), "bm25", path, boosting=Boosting(trees=60))


def ndcg(scores, grades):
    def gain(order):
        return sum((2**g - 1) / math.log2(i + 2) for i, g in enumerate(order[:10]))

    ranked = [g for _, g in sorted(zip(scores, grades, strict=True), key=lambda pair: -pair[0])]
    return gain(ranked) / gain(sorted(grades, reverse=True))


def mean_ndcg(score, query_ids):
    """Mean nDCG@10 over the candidates of the sample's BM25 run."""
    found = []
    for q in query_ids:
        ids = sorted(d for d in sample().runs["bm25"][q] if d in sample().docs)
        grades = [max(sample().qrels[q].get(d, 0), 0) for d in ids]
        if len(set(grades)) > 1:
            found.append(ndcg(score([sample().queries[q]] * len(ids), [sample().docs[d] for d in ids]), grades))
    return float(np.mean(found))


class TestLearning:
    def test_it_fits_what_it_saw(self, model):
        ranker, ids = open_ranker(f"ltr:{model.path}", Setting(sample())), list(sample().queries)
        found = mean_ndcg(ranker.score, ids)
        assert found == pytest.approx(model.ndcg, abs=1e-6), "training and scoring see the same features"
        assert found > max(0.95, mean_ndcg(open_ranker("bm25", Setting(sample())).score, ids) + 0.05)

    def test_equal_input_gives_equal_files(self, model, tmp_path):
        """In whatever order the candidates are, and as the command line trains."""
        reverse = {q: dict(reversed(list(scores.items()))) for q, scores in sample().runs["bm25"].items()}
        again = train_ltr(sample(), reverse, tmp_path / "m.txt", boosting=Boosting(trees=60))
        assert again.path.read_bytes() == model.path.read_bytes()
        assert again[1:] == model[1:]
        for negatives in ({"negatives": "bm25"}, {}):
            recipe = train_recipe({"collection": "sample", **negatives}, {"trees": 60}, tmp_path / "m.txt", 0)
            assert recipe.path.read_bytes() == model.path.read_bytes()

    def test_judgements_that_teach_nothing_are_left_out(self, tmp_path):
        docs = {"a": "red fox", "b": "fox", "c": "blue"}
        run = {q: dict.fromkeys(["a", "b", "gone"], 1.0) for q in "12"}
        qrels = {"1": {"a": 2, "b": -1, "c": 1}, "2": {"a": 0, "b": -2}}
        collection = Collection.of(docs, {"1": "fox", "2": "red"}, qrels, runs={"r": run})
        found = train_ltr(collection, "r", tmp_path / "m.txt", boosting=Boosting(trees=2, min_docs=1))
        assert (found.queries, found.pairs) == (1, 2)

    def test_a_recipe_with_judged_documents_features_and_an_analyzer(self, tmp_path):
        how = {"trees": 2, "features": ["length", "bm25"], "analyzer": "chain(stem=porter)"}
        found = train_recipe({"collection": "sample", "negatives": "judged"}, how, tmp_path / "m.txt", 3)
        assert found.pairs == sum(map(len, sample().qrels.values()))
        ranker = open_ranker(f"ltr:{found.path}", Setting(sample(), "whitespace"))
        assert ranker.features.names == ("length", "bm25")
        assert ranker.features.analyzer.id == "chain(stem=porter)", "that of training, not that of the setting"
        own = open_ranker(f"ltr:{found.path}(analyzer=lucene)", Setting(sample(), "whitespace"))
        assert own.features.analyzer.id == "lucene"


class TestIdentity:
    def test_it_has_model_analyzer_and_statistics(self, model, tmp_path):
        text = model.path.read_text()
        (tmp_path / "same.txt").write_text(text)
        unsealed = text.replace("whyrank-sha256:", "")
        (tmp_path / "other.txt").write_text(unsealed.replace("\nleaf_value=-", "\nleaf_value=0", 1))
        spec, toy = f"ltr:{model.path}", Collection.of({"d": "text"}, {"q": "text"})
        given = [(spec, sample()), (f"ltr:{tmp_path / 'other.txt'}", sample()), (spec, toy), (spec, None), (f"{spec}(analyzer=whitespace)", sample())]  # fmt: skip
        found = [repr(open_ranker(each, Setting(collection))) for each, collection in given]
        assert len(set(found)) == 5
        assert repr(open_ranker(f"ltr:{tmp_path / 'same.txt'}", Setting(sample()))) == found[0]


class TestContract(RankerContract):
    tolerance = 0.0

    @pytest.fixture(autouse=True)
    def _model(self, model):
        self.model = model

    def make(self):
        return open_ranker(f"ltr:{self.model.path}", self.setting())


# Files


def trained(seed=1, missing=False, **parameters):
    """A booster that LightGBM itself trained, and what it was trained on."""
    random = np.random.default_rng(seed)
    matrix, grades = random.normal(size=(240, 3)).round(1), random.integers(0, 4, 240)
    if missing:
        matrix[random.random(matrix.shape) < 0.3] = np.nan
    fixed = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 3}
    data = lightgbm.Dataset(matrix, grades, group=[24] * 10, feature_name=["bm25", "ql", "length"])
    return matrix, lightgbm.train(fixed | parameters, data, 12)


class TestModels:
    @pytest.mark.parametrize("missing", [False, True])
    @pytest.mark.parametrize("parameters", [{}, {"zero_as_missing": True}, {"use_missing": False}])
    def test_those_of_lightgbm_open(self, tmp_path, parameters, missing):
        matrix, booster = trained(missing=missing, **parameters)
        booster.save_model(tmp_path / "m.txt")
        model = read_model(tmp_path / "m.txt")
        assert (model.names, model.facts) == (("bm25", "ql", "length"), {})
        assert np.array_equal(model.predict(matrix), booster.predict(matrix, raw_score=True))
        assert model.predict(matrix[:0]).tolist() == []

    def test_facts_come_back_and_lightgbm_reads_past_them(self, tmp_path, capfd):
        matrix, booster = trained(2)
        facts = {"analyzer": "chain(stop=lucene,stem='x=y')", "n": 3, "text": "line\nbreak ="}
        (tmp_path / "m.txt").write_text(with_facts(booster.model_to_string(), facts))
        model = read_model(tmp_path / "m.txt")
        assert model.facts == facts
        assert np.array_equal(model.predict(matrix), booster.predict(matrix, raw_score=True))
        assert capfd.readouterr().out == ""

    @pytest.mark.parametrize(
        ("old", "new", "what"),
        [
            ("tree\n", "", "not LightGBM's text form"),
            ("end of trees", "", "cut off"),
            ("\nleaf_value=", "\nleaf_value=1", "cut off"),
            ("tree_sizes=", "tree_sizes=x", "is no model"),
            ("num_class=1", "num_class=3", "more than one class"),
            ("version=v4", "whyrank={", "is no model"),
        ],
    )
    def test_damage_is_one_clear_line(self, tmp_path, old, new, what):
        text = trained()[1].model_to_string()
        assert old in text
        (tmp_path / "m.txt").write_text(text.replace(old, new, 1))
        with pytest.raises(WhyrankError, match=what) as caught:
            read_model(tmp_path / "m.txt")
        assert str(caught.value).startswith(f"{tmp_path / 'm.txt'}: is no model that can be used (")
        assert "\n" not in str(caught.value)

    def test_a_model_that_is_cut_off_anywhere_and_what_is_no_text(self, tmp_path):
        text = trained()[1].model_to_string()
        for end in range(0, text.index("end of trees"), 211):
            (tmp_path / "m.txt").write_text(text[:end])
            with pytest.raises(WhyrankError, match="is no model that can be used"):
                read_model(tmp_path / "m.txt")
        (tmp_path / "b.txt").write_bytes(b"tree\n\xff\xfe")
        for path in (tmp_path / "no.txt", tmp_path, tmp_path / "b.txt"):
            with pytest.raises(WhyrankError, match=r"is no model that can be used|cannot be read \(Is a directory\)"):
                open_ranker(f"ltr:{path}")


class TestRefusals:
    def test_wrong_recipes_and_arguments(self, tmp_path):
        out = tmp_path / "m.txt"
        with pytest.raises(UnknownName, match=r"unknown setting of 'ltr' 'leafs'; did you mean 'leaves'\?"):
            train_recipe({"collection": "sample"}, {"leafs": 3}, out, 0)
        with pytest.raises(WhyrankError, match="name one collection"):
            train_recipe({"collection": ["sample", "sample"]}, {}, out, 0)
        with pytest.raises(WhyrankError, match="no query of collection sample has candidates of more than one grade"):
            train_ltr(sample(), {}, out)
        with pytest.raises(UnknownName, match="unknown feature 'x'"):
            train_ltr(sample(), "bm25", out, features=["x"])
        with pytest.raises(WhyrankError, match="ltr: leaves must be"):
            Boosting(leaves=1)
        with pytest.raises(WhyrankError, match="ltr: analyzer must be text"):
            open_ranker("ltr:m.txt(analyzer=3)")
        assert not out.exists()

    def test_without_lightgbm_the_extra_is_named(self, model, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "lightgbm", None)
        with pytest.raises(MissingExtra, match=r"pip install 'whyrank\[ltr\]'"):
            train_ltr(sample(), "bm25", tmp_path / "m.txt")
        with pytest.raises(MissingExtra, match=r"ranker 'ltr' needs .* pip install 'whyrank\[ltr\]'"):
            open_ranker(f"ltr:{model.path}", Setting(sample()))


@pytest.mark.slow
def test_scifact(data_folder, tmp_path):
    """Learned on the training queries, better than BM25 on the test queries."""
    train, test = (open_collection(f"{data_folder / 'scifact'}:{split}") for split in ("train", "test"))
    runs = [retrieve(Engine(), open_ranker("bm25", Setting(c)), c, 100)[0] for c in (train, test)]
    found = train_ltr(train, runs[0], tmp_path / "m.txt")
    learned = rerank(Engine(), open_ranker(f"ltr:{found.path}", Setting(test)), test, runs[1])[0]
    before, after = (evaluate({"run": run}, test, ["nDCG@10"])[0].mean for run in (runs[1], learned))
    assert after > before + 0.015
