"""Re-ranking by the preferences of axioms, against plain loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError, generator
from whyrank.data import Collection, Grades, open_collection, ranking
from whyrank.studies.axioms import Axiom, axioms, rerank
from whyrank.studies.axioms.duplicates import LNC2
from whyrank.studies.axioms.reranking import kwiksort, tournament


@dataclass(frozen=True, kw_only=True)
class Cells(Axiom):
    """The winners are listed: `b>a` says that document b must beat document a."""

    says: tuple[str, ...] = ()

    name: ClassVar[str] = "CELLS"
    favours: ClassVar[str] = "what is listed"

    def wins(self, view, a, b):
        ids, says = view.pool.doc_ids, set(self.says)
        return np.array([f"{ids[i]}>{ids[j]}" in says for i, j in zip(a, b, strict=True)], dtype=bool)


@pytest.fixture(autouse=True, scope="module")
def registered():
    axioms.register("axiom/CELLS")(Cells)
    yield
    axioms.forget("axiom/CELLS")


LETTERS = "abcdefgh"
METHODS = ("kwiksort", "tournament")


def letters(n: int = len(LETTERS)) -> Collection:
    return Collection.of({d: d for d in LETTERS[:n]}, {"q": "x", "p": "y"})


def run_of(order: str, query: str = "q") -> dict[str, dict[str, float]]:
    return {query: {d: float(100 - i) for i, d in enumerate(order)}}


def order_of(axiom, run, collection=None, **more) -> str:
    return "".join(ranking(rerank(axiom, collection or letters(), run, **more)["q"]))


def sorted_plainly(order: str, beats: set[str], draws) -> str:
    """KwikSort as it is told: a pivot at random, those before it, those after it, and so on inside."""
    if len(order) < 2:
        return order
    pivot = order[draws.integers(len(order))]
    before, after = "", ""
    for d in order:
        if d != pivot:
            undecided = (f"{d}>{pivot}" in beats) == (f"{pivot}>{d}" in beats)
            first = order.index(d) < order.index(pivot) if undecided else f"{d}>{pivot}" in beats
            before, after = (before + d, after) if first else (before, after + d)
    return sorted_plainly(before, beats, draws) + pivot + sorted_plainly(after, beats, draws)


def by_wins(order: str, beats: set[str]) -> str:
    score = dict.fromkeys(order, 0)
    for i, one in enumerate(order):
        for two in order[i + 1 :]:
            up, down = f"{one}>{two}" in beats, f"{two}>{one}" in beats
            won = 1 if up == down or up else -1
            score[one], score[two] = score[one] + won, score[two] - won
    return "".join(sorted(order, key=lambda d: (-score[d], order.index(d))))


BEATS = st.sets(st.sampled_from([f"{a}>{b}" for a in LETTERS for b in LETTERS if a != b]))
ORDERS = st.permutations(LETTERS).map("".join)


class TestAgainstPlainLoops:
    @given(ORDERS, BEATS, st.integers(0, 5))
    @settings(max_examples=60)
    def test_kwiksort(self, order, beats, seed):
        axiom = Cells(says=tuple(sorted(beats)))
        expected = sorted_plainly(order, beats, generator(seed, "kwiksort", "q"))
        assert order_of(axiom, run_of(order), seed=seed) == expected

    @given(ORDERS, BEATS)
    @settings(max_examples=60)
    def test_tournament(self, order, beats):
        assert order_of(Cells(says=tuple(beats)), run_of(order), method="tournament") == by_wins(order, beats)

    @given(ORDERS, BEATS, st.sampled_from(METHODS), st.randoms(use_true_random=False))
    @settings(max_examples=40)
    def test_the_order_in_which_a_run_is_held_does_not_matter(self, order, beats, method, shuffled):
        run = run_of(order)
        items = list(run["q"].items())
        shuffled.shuffle(items)
        axiom = Cells(says=tuple(beats))
        other = rerank(axiom, letters(), run_of("ab", "p") | {"q": dict(items)}, method)
        assert rerank(axiom, letters(), run, method)["q"] == other["q"]
        assert list(other) == ["p", "q"]

    @given(ORDERS, st.sampled_from(METHODS), st.integers(0, 3))
    @settings(max_examples=20)
    def test_an_axiom_that_says_nothing_changes_nothing(self, order, method, seed):
        assert order_of(Cells(), run_of(order), method=method, seed=seed) == order
        assert order_of("ORIG", run_of(order), method=method, seed=seed) == order
        assert order_of("-ORIG", run_of(order), method=method, seed=seed) == order[::-1]


class TestRuns:
    @pytest.mark.parametrize("method", METHODS)
    def test_beyond_depth_documents_keep_their_rank(self, method):
        says = tuple(f"{a}>{b}" for i, a in enumerate("hgfedcba") for b in "hgfedcba"[i + 1 :])
        assert order_of(Cells(says=says), run_of("abcdefgh"), method=method, depth=3) == "cbadefgh"
        assert order_of(Cells(says=says), run_of("abcdefgh"), method=method, depth=1) == "abcdefgh"
        assert order_of(Cells(says=says), run_of("abcdefgh"), method=method, depth=99) == "hgfedcba"

    @pytest.mark.parametrize("method", METHODS)
    def test_documents_and_queries_without_text_keep_their_rank(self, method):
        run = run_of("axbyc") | {"nowhere": {"a": 1.0, "b": 2.0}, "p": {}}
        found = rerank("-ORIG", letters(), run, method)
        assert list(found["q"]) == list("cxbya")
        assert list(rerank("-ORIG", letters(), run, method, depth=3)["q"]) == list("bxayc")
        assert list(found["nowhere"]) == ["b", "a"]
        assert found["p"] == {}
        assert rerank("-ORIG", letters(), {}, method) == {}

    def test_the_seed_decides_in_cycles_only_and_for_each_query_alone(self):
        axiom, run = Cells(says=("a>b", "b>c", "c>a")), run_of("abc") | run_of("abc", "p")
        found = [rerank(axiom, letters(), run, seed=seed) for seed in range(30)]
        assert {"".join(ranked["q"]) for ranked in found} == {"abc", "bca", "cab"}
        assert any(list(ranked["q"]) != list(ranked["p"]) for ranked in found)
        assert rerank(axiom, letters(), run, seed=7) == found[7]

    def test_a_chain_of_worst_pivots(self):
        """Parts of one document at each step, five thousand deep, would end a recursion."""

        class First:
            def integers(self, n):
                return 0

        signs = np.triu(np.ones((5000, 5000), np.int8), 1)
        assert kwiksort(signs - signs.T, First()) == list(range(5000))
        assert tournament(signs - signs.T) == list(range(5000))

    def test_unjudged_documents_are_non_relevant(self):
        """No order is better than that of the judgements, also where unjudged documents stand between the others."""
        grades = Grades({g: str(g) for g in (1, 2, 3)}, relevant=2, nonrelevant=1)
        judged = {"q": {"b": 3, "d": 1, "f": 2}}
        collection = Collection.of({d: d for d in LETTERS}, {"q": "x"}, judged, grades=grades)
        for method in METHODS:
            assert order_of("ORACLE", run_of("acdebf"), collection, method=method) == "bfacde"


@pytest.mark.parametrize(
    ("axiom", "options", "says"),
    [("ORIG", {"method": "quicksort"}, "'kwiksort'"), (LNC2(), {}, "LNC2"), (3, {}, "no axiom"), ("ORIG", {"depth": 0}, "depth")],
)  # fmt: skip
def test_wrong_requests(axiom, options, says):
    with pytest.raises(WhyrankError, match=says):
        order_of(axiom, run_of("ab"), **options)


def test_real_candidates_by_judgements(data_folder):
    """The judgements as an axiom put what is relevant first, and nothing can be better."""
    collection = open_collection(str(data_folder / "msmarco_dl19"))
    judged = {q: docs for q, docs in collection.runs["bm25.top100"].items() if q in collection.qrels}
    run = {q: {d: s for d, s in docs.items() if d in collection.qrels[q]} for q, docs in judged.items()}
    for method in METHODS:
        for query_id, docs in rerank("ORACLE", collection, run, method, seed=3).items():
            grades = [collection.qrels[query_id][d] for d in docs]
            assert grades == sorted(grades, reverse=True)
