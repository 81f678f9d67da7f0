"""Word Mover's Distance against a linear programme, and against the published column of numbers."""

from __future__ import annotations

import math
import os
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whyrank
from whyrank.core import MissingExtra, WhyrankError
from whyrank.rankers import open_ranker
from whyrank.rankers.wmd import words
from whyrank.scoring import Engine
from whyrank.testing import RankerContract

pytest.importorskip("ot")

VOCABULARY = [*"abcdefgh", "berlin", "wall", "robert", "gray", "naïve", "bayes", "zero"]
UNKNOWN = ["x", "y", "12", "?", "A_b"]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """Random vectors of five numbers; `b` and `c` share one, and `zero` is all zeros."""
    path = tmp_path_factory.mktemp("vectors") / "small.npy"
    matrix = np.random.default_rng(1).normal(size=(len(VOCABULARY), 5)).astype(np.float32)
    matrix[2], matrix[-1] = matrix[1], 0
    np.save(path, matrix)
    path.with_suffix(".words.txt").write_text("\n".join(VOCABULARY))
    return path


def linear_programme(query, text, points):
    """The definition: the cheapest way to move the mass of one bag of words to the other."""
    from scipy.optimize import linprog

    query_words, words = ({w: c for w, c in Counter(side).items() if w in points} for side in (query, text))
    if not query_words or not words:
        return math.inf
    costs = [[math.dist(points[i], points[j]) for j in words] for i in query_words]
    n, m = len(query_words), len(words)
    rows = np.zeros((n + m, n * m))
    for i in range(n):
        for j in range(m):
            rows[i, i * m + j] = rows[n + j, i * m + j] = 1
    shares = [c / sum(side.values()) for side in (query_words, words) for c in side.values()]
    return linprog(np.ravel(costs), A_eq=rows, b_eq=shares, bounds=(0, None)).fun


def points_of(path, normalise=True):
    matrix = np.load(path).astype(np.float64)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return dict(zip(VOCABULARY, matrix / np.where(lengths > 0, lengths, 1) if normalise else matrix, strict=True))


texts = st.lists(st.sampled_from(VOCABULARY + UNKNOWN), max_size=12).map(" ".join)


class TestDistance:
    @settings(max_examples=60)
    @given(pairs=st.lists(st.tuples(texts, texts), min_size=1, max_size=6), normalise=st.booleans())
    def test_it_is_the_optimum_of_the_linear_programme(self, vectors, pairs, normalise):
        ranker, points = open_ranker(f"wmd:{vectors}(normalise={normalise})"), points_of(vectors, normalise)
        found = ranker.score(*zip(*pairs, strict=True))
        expected = [-linear_programme(words(q), words(d), points) for q, d in pairs]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)

    def test_many_words_reach_the_optimum(self, tmp_path):
        names = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(300)]
        matrix = np.random.default_rng(3).normal(size=(300, 8)).astype(np.float32)
        np.save(tmp_path / "v.npy", matrix)
        (tmp_path / "v.words.txt").write_text("\n".join(names))
        query, text = names[:120] * 2, names[100:] + names[150:]
        points = dict(zip(names, matrix.astype(np.float64), strict=True))
        found = open_ranker(f"wmd:{tmp_path / 'v.npy'}(normalise=False)").score([" ".join(query)], [" ".join(text)])
        assert found == pytest.approx([-linear_programme(query, text, points)], abs=1e-6)


class TestUnknown:
    @pytest.mark.parametrize("pair", [("", "a"), ("a", ""), ("x", "a"), ("a", "12 ?"), ("", "")])
    def test_no_known_word_is_infinitely_far(self, vectors, pair):
        assert open_ranker(f"wmd:{vectors}").score([pair[0]], [pair[1]]).tolist() == [-math.inf]
        assert open_ranker(f"wmd:{vectors}(unknown=-3)").score([pair[0]], [pair[1]]).tolist() == [-3]

    @pytest.mark.parametrize("arguments", ["unknown=no", "normalise=1", "unknown=True"])
    def test_wrong_arguments_are_one_line(self, vectors, arguments):
        with pytest.raises(WhyrankError, match=r"^wmd: "):
            open_ranker(f"wmd:{vectors}({arguments})")


class TestIdentity:
    def test_it_follows_the_vectors_and_not_their_path(self, vectors, tmp_path):
        matrix = np.load(vectors)
        for name, values in (("same", matrix), ("other", matrix + np.float32(0.1))):
            np.save(tmp_path / f"{name}.npy", values)
            (tmp_path / f"{name}.words.txt").write_text("\n".join(VOCABULARY))
        paths = vectors, tmp_path / "same.npy", tmp_path / "other.npy"
        here, same, other = (repr(open_ranker(f"wmd:{path}")) for path in paths)
        assert here == same != other
        assert repr(open_ranker(f"wmd:{vectors}(normalise=False)")) != here

    def test_what_is_missing_shows_at_once(self, vectors, monkeypatch):
        monkeypatch.setitem(sys.modules, "ot.lp.emd_wrap", None)
        with pytest.raises(MissingExtra, match=r"pip install 'whyrank\[wmd\]'"):
            open_ranker(f"wmd:{vectors}")
        with pytest.raises(WhyrankError, match="no such file, folder or installed package of word vectors"):
            open_ranker("wmd:nowhere.txt")


class TestContract(RankerContract):
    @pytest.fixture(autouse=True)
    def _vectors(self, vectors):
        self.vectors = vectors

    def make(self):
        return open_ranker(f"wmd:{self.vectors}(unknown=-9)")


PRINTED = {
    ("relevance", "length"): 0.27, ("relevance", "tf"): 0.11, ("relevance", "overlap"): 0.15,
    ("length", "relevance"): -0.10, ("length", "tf"): -0.08, ("length", "overlap"): 0.02,
    ("tf", "relevance"): 0.49, ("tf", "length"): 0.65, ("tf", "overlap"): 0.02,
    ("overlap", "relevance"): 0.47, ("overlap", "length"): 0.59, ("overlap", "tf"): 0.25,
}  # fmt: skip
"""MacAvaney et al., "ABNIRML: analyzing the behavior of neural IR models", TACL 2022, table 1, WMD on TREC DL 2019."""


@pytest.mark.slow
def test_the_published_column(data_folder):
    given = os.environ.get("WHYRANK_GLOVE")
    if not given:
        pytest.skip("set WHYRANK_GLOVE to the GloVe 6B vectors of 100 numbers to run this test")
    named = {f"matched/{variable}|{control}": value for (variable, control), value in PRINTED.items()}
    analyzer = f"terrier(stopwords={data_folder / 'stopwords' / 'terrier.txt'})"
    options = {"engine": Engine(), "analyzer": analyzer, "compat": "abnirml"}
    found = whyrank.audit(f"wmd:{given}", str(data_folder / "msmarco_dl19"), list(named), **options)
    gaps = [abs(finding.score - named[finding.study]) for finding in found]
    assert len(gaps) == 12
    assert np.mean(gaps) <= 0.02
    assert max(gaps) <= 0.06
    assert sum(gap <= 0.03 for gap in gaps) >= 11
    assert all(abs(finding.delta - 0.0064) < 0.001 for finding in found)


def test_a_text_and_its_copies_tie(vectors):
    """The distance is the same on paper, and the solver may add it up in another order."""
    random = np.random.default_rng(0)
    docs = {f"d{i}": " ".join(random.choice(VOCABULARY[:-1], random.integers(3, 40))) for i in range(200)}
    queries = {str(i): " ".join(random.choice(VOCABULARY[:-1], 6)) for i in range(5)}
    collection = whyrank.data.Collection.of(docs, queries, {query: dict.fromkeys(docs, 0) for query in queries})
    [finding] = whyrank.audit(f"wmd:{vectors}", collection, "axiom/LNC2", analyzer="whitespace")
    assert (finding.neutral, finding.satisfied, finding.delta) == (1000, 1.0, 1e-9)
