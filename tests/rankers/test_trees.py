"""Models in LightGBM's text form: the same scores to the bit, and no damage that goes unnoticed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whyrank.rankers.ltr.trees import read_trees, with_facts

from whyrank.core import WhyrankError

MODEL = """tree
version=v4
num_class=1
num_tree_per_iteration=1
max_feature_idx=1
objective=lambdarank
feature_names=one two
tree_sizes=10 10

Tree=0
num_leaves=3
num_cat=0
split_feature=1 0
threshold=0.5 2
decision_type=2 0
left_child=1 -1
right_child=-3 -2
leaf_value=1 10 100
is_linear=0

Tree=1
num_leaves=1
num_cat=0
leaf_value=0.25
is_linear=0

end of trees

parameters:
end of parameters
"""


def written(path, text=MODEL):
    (path / "m.txt").write_text(text)
    return path / "m.txt"


def trained(lightgbm, seed, missing=False, **parameters):
    random = np.random.default_rng(seed)
    matrix, grades = random.normal(size=(240, 3)).round(1), random.integers(0, 4, 240)
    if missing:
        matrix[random.random(matrix.shape) < 0.3] = np.nan
    fixed = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 3}
    data = lightgbm.Dataset(matrix, grades, group=[24] * 10, feature_name=["one", "two", "three"])
    return matrix, lightgbm.train(fixed | parameters, data, 12)


class TestScores:
    def test_by_hand(self, tmp_path):
        found = read_trees(written(tmp_path)).predict(np.array([[2.0, 0.5], [2.1, 0.5], [0.0, 0.6]]))
        assert found.tolist() == [1.25, 10.25, 100.25]

    @pytest.mark.parametrize("missing", [False, True])
    @pytest.mark.parametrize("parameters", [{}, {"zero_as_missing": True}, {"use_missing": False}, {"num_leaves": 4}])
    def test_those_of_lightgbm_to_the_bit(self, tmp_path, parameters, missing):
        matrix, booster = trained(pytest.importorskip("lightgbm"), 1, missing, **parameters)
        booster.save_model(tmp_path / "m.txt")
        probe = np.concatenate([matrix, np.zeros((1, 3)), np.full((1, 3), np.nan), np.full((1, 3), 1e-36)])
        found = read_trees(tmp_path / "m.txt").predict(probe)
        assert np.array_equal(found, booster.predict(probe, raw_score=True))

    def test_a_model_that_learned_nothing(self, tmp_path):
        lightgbm = pytest.importorskip("lightgbm")
        data = lightgbm.Dataset(np.zeros((20, 1)), np.zeros(20), group=[20], feature_name=["one"])
        lightgbm.train({"objective": "lambdarank", "verbosity": -1}, data, 2).save_model(tmp_path / "m.txt")
        assert read_trees(tmp_path / "m.txt").predict(np.ones((2, 1))).tolist() == [0.0, 0.0]


class TestFacts:
    def test_they_come_back(self, tmp_path):
        facts = {"analyzer": "chain(stop=lucene,stem='x=y')", "n": 3, "text": "line\nbreak ="}
        assert read_trees(written(tmp_path, with_facts(MODEL, facts))).facts == facts
        assert read_trees(written(tmp_path)).facts == {}

    def test_lightgbm_reads_past_them(self, tmp_path):
        lightgbm = pytest.importorskip("lightgbm")
        matrix, booster = trained(lightgbm, 2)
        text = with_facts(booster.model_to_string(), {"analyzer": "a=b=c"})
        again = lightgbm.Booster(model_str=text)
        assert np.array_equal(again.predict(matrix), booster.predict(matrix))
        assert again.feature_name() == ["one", "two", "three"]

    def test_the_digest_is_that_of_the_file(self, tmp_path):
        one = read_trees(written(tmp_path)).digest
        assert one != read_trees(written(tmp_path, MODEL.replace("0.25", "0.26"))).digest


class TestDamage:
    @pytest.mark.parametrize(
        ("old", "new", "what"),
        [
            ("tree\n", "", "not LightGBM's text form"),
            ("end of trees", "", "not LightGBM's text form, or cut off"),
            ("num_class=1", "num_class=3", "more than one class"),
            ("objective=lambdarank", "average_output", "random forest"),
            ("tree_sizes=10 10", "tree_sizes=10 10 10", "a tree is missing"),
            ("split_feature=1 0", "split_feature=1 2", "a feature without a name"),
            ("split_feature=1 0", "split_feature=1 -1", "a feature without a name"),
            ("split_feature=1 0", "split_feature=1 0.5", "should be whole"),
            ("split_feature=1 0", "split_feature=1 nan", "should be whole"),
            ("split_feature=1 0", "split_feature=1", "split_feature is incomplete"),
            ("threshold=0.5 2", "threshold=0.5 x", "threshold is not numbers"),
            ("left_child=1 -1", "left_child=0 -1", "a branch leads nowhere"),
            ("left_child=1 -1", "left_child=2 -1", "a branch leads nowhere"),
            ("right_child=-3 -2", "right_child=-4 -2", "a branch leads nowhere"),
            ("leaf_value=0.25", "", "leaf_value is incomplete"),
            ("leaf_value=1 10 100", "leaf_value=1 10", "is incomplete"),
            ("decision_type=2 0", "decision_type=2 1", "categorical"),
            ("num_cat=0", "num_cat=1", "categorical"),
            ("is_linear=0", "is_linear=1", "linear leaves"),
            ("version=v4", "whyrank={", "the line whyrank is damaged"),
        ],
    )
    def test_is_one_clear_line(self, tmp_path, old, new, what):
        assert old in MODEL
        with pytest.raises(WhyrankError, match=what) as caught:
            read_trees(written(tmp_path, MODEL.replace(old, new, 1)))
        assert str(caught.value).startswith(f"{tmp_path / 'm.txt'}: is no model that can be used (")
        assert "\n" not in str(caught.value)

    def test_no_file_a_folder_and_no_text(self, tmp_path):
        (tmp_path / "b.txt").write_bytes(b"tree\n\xff\xfe")
        for path in (tmp_path / "no.txt", tmp_path, tmp_path / "b.txt"):
            with pytest.raises(WhyrankError, match=r"is no model that can be used|cannot be read \(Is a directory\)"):
                read_trees(path)

    @settings(max_examples=150)
    @given(start=st.integers(0, len(MODEL)), cut=st.integers(1, 40), instead=st.text("-0189.x=\n ", max_size=4))
    def test_never_ends_in_anything_else(self, tmp_path_factory, start, cut, instead):
        path = written(tmp_path_factory.mktemp("m"), MODEL[:start] + instead + MODEL[start + cut :])
        try:
            found = read_trees(path)
        except WhyrankError:
            return
        found.predict(np.zeros((2, len(found.names))))
