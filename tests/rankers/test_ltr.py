"""Learning to rank: the ranker, its training, and what can be wrong with either."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from whyrank.core import MissingExtra, UnknownName, WhyrankError, executor
from whyrank.data import Collection, open_collection
from whyrank.evaluation import evaluate
from whyrank.rankers import Setting, open_ranker
from whyrank.rankers.ltr import FEATURES, Boosting, read_model, train_ltr, train_recipe
from whyrank.rankers.ltr.ranker import with_facts
from whyrank.scoring import Engine, rerank, retrieve
from whyrank.testing import RankerContract
from whyrank.testing.examples import sample

lightgbm = pytest.importorskip("lightgbm")


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


def part(query_ids):
    whole = sample()
    queries = {q: whole.queries[q] for q in query_ids}
    return Collection.of(whole.docs, queries, {q: whole.qrels[q] for q in queries}, runs=whole.runs, name="part")


class TestLearning:
    def test_it_fits_what_it_saw(self, model):
        ranker, queries = open_ranker(f"ltr:{model.path}", Setting(sample())), list(sample().queries)
        found = mean_ndcg(ranker.score, queries)
        assert found == pytest.approx(model.ndcg, abs=1e-6), "training and scoring see the same features"
        assert found > mean_ndcg(open_ranker("bm25", Setting(sample())).score, queries) + 0.05
        assert found > 0.95

    def test_it_ranks_what_it_did_not_see(self, tmp_path):
        queries = list(sample().queries)
        train_ltr(part(queries[::2]), "bm25", tmp_path / "m.txt", boosting=Boosting(trees=40, leaves=4))
        ranker, random = open_ranker(f"ltr:{tmp_path / 'm.txt'}", Setting(sample())), np.random.default_rng(0)
        chance = np.mean([mean_ndcg(lambda q, d: random.random(len(d)), queries[1::2]) for _ in range(20)])
        assert mean_ndcg(ranker.score, queries[1::2]) > chance + 0.3

    def test_what_training_says(self, model):
        pairs = sum(len(run) for run in sample().runs["bm25"].values())
        assert (model.queries, model.pairs, model.trees) == (40, pairs, 60)
        assert model.dev_ndcg is None
        assert list(model.gains) == list(FEATURES)
        assert max(model.gains, key=model.gains.get) in ("bm25", "idf_coverage")

    def test_equal_input_gives_equal_files(self, model, tmp_path):
        again = train_ltr(sample(), "bm25", tmp_path / "m.txt", boosting=Boosting(trees=60))
        assert again.path.read_bytes() == model.path.read_bytes()
        assert again[1:] == model[1:]

    def test_the_order_of_candidates_tells_nothing(self, tmp_path):
        run = sample().runs["bm25"]
        reverse = {q: dict(reversed(list(scores.items()))) for q, scores in run.items()}
        files = [
            train_ltr(sample(), r, tmp_path / "m.txt", boosting=Boosting(trees=5)).path.read_bytes()
            for r in (run, reverse)
        ]
        assert files[0] == files[1]

    def test_it_stops_where_the_dev_queries_are_ranked_best(self, tmp_path):
        queries = list(sample().queries)
        dev, grown = (part(queries[1::2]), "bm25"), Boosting(trees=80, patience=5, rate=0.3)
        found = train_ltr(part(queries[::2]), "bm25", tmp_path / "m.txt", dev=dev, boosting=grown)
        assert found.trees < 80
        reached = {}
        for trees in (found.trees - 5, found.trees, found.trees + 5):
            cut = train_ltr(part(queries[::2]), "bm25", tmp_path / "n.txt", boosting=replace(grown, trees=trees))
            reached[trees] = mean_ndcg(open_ranker(f"ltr:{cut.path}", Setting(sample())).score, queries[1::2])
        assert reached[found.trees] == pytest.approx(found.dev_ndcg, abs=1e-6)
        assert reached[found.trees - 5] < reached[found.trees] >= reached[found.trees + 5]
        assert [found.path.read_text().count("\nTree="), found.trees] == [found.trees] * 2

    def test_some_features(self, tmp_path):
        found = train_ltr(
            sample(), "bm25", tmp_path / "m.txt", features=["length", "bm25"], boosting=Boosting(trees=5)
        )
        assert list(found.gains) == ["length", "bm25"]
        ranker = open_ranker(f"ltr:{found.path}", Setting(sample()))
        assert ranker.features.names == ("length", "bm25")
        assert "language=" not in repr(ranker)

    def test_judgements_that_teach_nothing_are_left_out(self, tmp_path):
        docs, run = (
            {"a": "red fox", "b": "fox", "c": "blue"},
            {q: dict.fromkeys(["a", "b", "gone"], 1.0) for q in "12"},
        )
        qrels = {"1": {"a": 2, "b": -1, "c": 1}, "2": {"a": 0, "b": -2}}
        collection = Collection.of(docs, {"1": "fox", "2": "red"}, qrels, runs={"r": run})
        found = train_ltr(collection, "r", tmp_path / "m.txt", boosting=Boosting(trees=2, min_docs=1))
        assert (found.queries, found.pairs) == (1, 2)


class TestRecipe:
    def test_as_the_command_line_trains(self, model, tmp_path):
        data, settings = {"collection": "sample", "negatives": "bm25"}, {"trees": 60}
        assert train_recipe(data, settings, tmp_path / "m.txt", 0).path.read_bytes() == model.path.read_bytes()
        assert train_recipe({"collection": "sample"}, settings, tmp_path / "m.txt", 0).pairs == model.pairs

    def test_judged_documents(self, tmp_path):
        data = {"collection": "sample", "negatives": "judged"}
        found = train_recipe(
            data, {"trees": 2, "features": ["bm25"], "analyzer": "whitespace"}, tmp_path / "m.txt", 3
        )
        assert found.pairs == sum(map(len, sample().qrels.values()))
        assert open_ranker(f"ltr:{found.path}", Setting(sample())).features.statistics.analyzer.id == "whitespace"

    def test_wrong_ones(self, tmp_path):
        with pytest.raises(UnknownName, match=r"unknown setting of 'ltr' 'leafs'; did you mean 'leaves'\?"):
            train_recipe({"collection": "sample"}, {"leafs": 3}, tmp_path / "m.txt", 0)
        with pytest.raises(WhyrankError, match="name one collection"):
            train_recipe({"collection": ["sample", "sample"]}, {}, tmp_path / "m.txt", 0)


class TestIdentity:
    def test_it_has_the_digest_of_the_model(self, model, tmp_path):
        text = model.path.read_text()
        (tmp_path / "same.txt").write_text(text)
        unsealed = text.replace("whyrank-sha256:", "")
        (tmp_path / "other.txt").write_text(unsealed.replace("\nleaf_value=-", "\nleaf_value=0", 1))
        ids = [
            repr(open_ranker(f"ltr:{p}", Setting(sample())))
            for p in (model.path, tmp_path / "same.txt", tmp_path / "other.txt")
        ]
        assert ids[0] == ids[1] != ids[2]

    def test_it_has_analyzer_and_statistics(self, model):
        spec = f"ltr:{model.path}"
        other = Collection.of({"d": "text"}, {"q": "text"})
        settings = [(spec, sample()), (spec, other), (spec, None), (f"{spec}(analyzer=whitespace)", sample())]
        assert len({repr(open_ranker(name, Setting(collection))) for name, collection in settings}) == 4

    def test_the_analyzer_of_training_is_used(self, tmp_path):
        found = train_ltr(
            sample(), "bm25", tmp_path / "m.txt", analyzer="chain(stem=porter)", boosting=Boosting(trees=2)
        )
        spec = f"ltr:{found.path}"
        assert (
            open_ranker(spec, Setting(sample(), "whitespace")).features.statistics.analyzer.id == "chain(stem=porter)"
        )
        own = open_ranker(f"{spec}(analyzer=lucene)", Setting(sample(), "whitespace"))
        assert own.features.statistics.analyzer.id == "lucene"

    def test_other_processes_give_the_same(self, model):
        ranker, codes = open_ranker(f"ltr:{model.path}", Setting(sample())), np.arange(30, dtype=np.int32)
        asked = list(sample().queries.values())[:30], list(sample().docs.values())[:30], codes, codes
        apart = Engine(executor=executor("processes(workers=1)"), batch_size=11).score(ranker, *asked).values
        assert np.array_equal(apart, Engine().score(ranker, *asked).values)


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

    def test_a_model_that_learned_nothing(self, tmp_path):
        data = lightgbm.Dataset(np.zeros((20, 1)), np.zeros(20), group=[20], feature_name=["ql"])
        lightgbm.train({"objective": "lambdarank", "verbosity": -1}, data, 2).save_model(tmp_path / "m.txt")
        assert read_model(tmp_path / "m.txt").predict(np.ones((2, 1))).tolist() == [0.0, 0.0]

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

    def test_a_model_that_is_cut_off_anywhere(self, tmp_path):
        text = trained()[1].model_to_string()
        for end in range(0, text.index("end of trees"), 97):
            (tmp_path / "m.txt").write_text(text[:end])
            with pytest.raises(WhyrankError, match="is no model that can be used"):
                read_model(tmp_path / "m.txt")

    def test_no_file_a_folder_and_no_text(self, tmp_path):
        (tmp_path / "b.txt").write_bytes(b"tree\n\xff\xfe")
        for path in (tmp_path / "no.txt", tmp_path, tmp_path / "b.txt"):
            with pytest.raises(WhyrankError, match=r"is no model that can be used|cannot be read \(Is a directory\)"):
                read_model(path)


class TestErrors:
    def test_features_of_another_kind(self, tmp_path):
        data = lightgbm.Dataset(np.random.default_rng(0).random((50, 2)), np.arange(50) % 2, group=[50])
        lightgbm.train({"objective": "lambdarank", "verbosity": -1}, data, 1).save_model(tmp_path / "m.txt")
        with pytest.raises(
            WhyrankError, match=r"m\.txt: the model needs the feature 'Column_0', which is none of ours"
        ):
            open_ranker(f"ltr:{tmp_path / 'm.txt'}", Setting(sample()))

    def test_a_model_with_a_feature_renamed(self, model, tmp_path):
        text = model.path.read_text().replace("whyrank-sha256:", "")
        (tmp_path / "m.txt").write_text(text.replace(" bm25 ql", " bm25 bm25", 1))
        with pytest.raises(WhyrankError, match="each of them once"):
            open_ranker(f"ltr:{tmp_path / 'm.txt'}", Setting(sample()))

    def test_no_model(self, tmp_path):
        with pytest.raises(WhyrankError, match=r"no\.txt: is no model that can be used"):
            open_ranker(f"ltr:{tmp_path / 'no.txt'}")
        with pytest.raises(WhyrankError, match="ltr: analyzer must be text"):
            open_ranker("ltr:m.txt(analyzer=3)")

    def test_nothing_to_learn(self, tmp_path):
        with pytest.raises(WhyrankError, match="no query of collection sample has candidates of more than one grade"):
            train_ltr(sample(), {}, tmp_path / "m.txt")
        with pytest.raises(UnknownName, match="unknown feature 'x'"):
            train_ltr(sample(), "bm25", tmp_path / "m.txt", features=["x"])
        assert not (tmp_path / "m.txt").exists()

    @pytest.mark.parametrize(
        "wrong", [{"trees": 0}, {"leaves": 1}, {"rate": 0}, {"rate": 1.5}, {"seed": -1}, {"min_docs": "3"}]
    )
    def test_settings_that_cannot_be(self, wrong):
        with pytest.raises(WhyrankError, match=f"ltr: {next(iter(wrong))} must be"):
            Boosting(**wrong)

    def test_without_lightgbm_the_extra_is_named(self, model, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "lightgbm", None)
        with pytest.raises(MissingExtra, match=r"pip install 'whyrank\[ltr\]'"):
            train_ltr(sample(), "bm25", tmp_path / "m.txt")
        with pytest.raises(MissingExtra, match=r"ranker 'ltr' needs .* pip install 'whyrank\[ltr\]'"):
            open_ranker(f"ltr:{model.path}", Setting(sample()))


class TestContract(RankerContract):
    tolerance = 0.0

    @pytest.fixture(autouse=True)
    def _model(self, model):
        self.model = model

    def make(self):
        return open_ranker(f"ltr:{self.model.path}", self.setting())


@pytest.mark.slow
def test_scifact(data_folder, tmp_path):
    """Learned on the training queries, better than BM25 on the test queries."""
    train, test = (open_collection(f"{data_folder / 'scifact'}:{split}") for split in ("train", "test"))
    runs = [retrieve(Engine(), open_ranker("bm25", Setting(c)), c, 100)[0] for c in (train, test)]
    found = train_ltr(train, runs[0], tmp_path / "m.txt")
    learned = rerank(Engine(), open_ranker(f"ltr:{found.path}", Setting(test)), test, runs[1])[0]
    before, after = (evaluate(test, {"run": run}, ["nDCG@10"])[0].mean for run in (runs[1], learned))
    assert after > before + 0.015
