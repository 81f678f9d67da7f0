"""Weights fitted for every setting of the parts of a fuse."""

from __future__ import annotations

import pytest

from whyrank.core import WhyrankError
from whyrank.evaluation import Runner, Split
from whyrank.evaluation.fusion import fit_best
from whyrank.evaluation.fusion.fitting import fit_fusion
from whyrank.rankers import Setting
from whyrank.scoring import Engine
from whyrank.testing.examples import sample

COLLECTION = sample()


@pytest.fixture(scope="module")
def runner():
    return Runner(Engine(), Setting(COLLECTION), COLLECTION.runs["bm25"], depth=10)


def fitted(runner, spec):
    return fit_fusion(spec, Split(COLLECTION, None), "nDCG@10", runner, restarts=1)


def test_the_best_of_all_settings_is_kept(runner):
    """Against all four fitted one by one."""
    spec = "fuse(of=['bm25(k1=0.3:2.3:2)','ql(mu=10:1010:1000)'],normalise=query)"
    found, settings = fit_best(spec, Split(COLLECTION, None), "nDCG@10", runner, restarts=1)
    each = [
        fitted(runner, f"fuse(of=['bm25(k1={k1})','ql(mu={mu})'],normalise=query)")
        for k1 in (0.3, 2.3)
        for mu in (10, 1010)
    ]
    best = max(each, key=lambda fusion: fusion.rows[-1].dev)
    assert settings == 4
    assert found.rows[-1].dev == best.rows[-1].dev
    assert found.spec == best.spec
    assert len({fusion.rows[-1].dev for fusion in each}) > 1


def test_without_ranges_it_is_the_fusion_itself(runner):
    spec = "fuse(of=['bm25','ql'],normalise=query)"
    found, settings = fit_best(spec, Split(COLLECTION, None), "nDCG@10", runner, restarts=1)
    assert settings == 1
    assert found.spec == fitted(runner, spec).spec


def test_too_many_settings_are_refused_before_anything_is_fitted(runner):
    spec = "fuse(of=['bm25(k1=0:1:0.01,b=0:1:0.05)','ql'],normalise=query)"
    with pytest.raises(WhyrankError, match="2,121 settings together; at most 1,000"):
        fit_best(spec, Split(COLLECTION, None), "nDCG@10", runner)


def test_the_command_says_how_many(whyrank):
    spec = "fuse(of=['bm25(k1=0.6:1.2:0.6)','ql'],normalise=query)"
    code, printed, said = whyrank("tune", "-r", spec, "--candidates", "bm25", "--depth", "10", "--restarts", "1")
    assert code == 0, said
    assert "for each of 2 settings of the parts on 40 queries" in said
    assert "bm25(k1=" in printed
