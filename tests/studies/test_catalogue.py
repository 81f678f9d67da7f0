"""Probes and axioms under one roof: names, options, and `ask`."""

from __future__ import annotations

import numpy as np
import pytest

import whyrank
from whyrank.core import UnknownName, WhyrankError
from whyrank.data import Collection
from whyrank.studies import Catalogue, probes_and_axioms, unjudged_options
from whyrank.studies.axioms import axioms
from whyrank.studies.probes import probes

DOCS = {"d1": "cat cat", "d2": "cat dog", "d3": "cow"}


class Longer:
    name = "longer"
    scale = "characters"

    def __init__(self):
        self.asked = 0

    def score(self, queries, docs):
        self.asked += len(docs)
        return np.array([len(doc) for doc in docs])


class TestCatalogue:
    def test_names_and_call_strings_find_their_home(self):
        assert probes_and_axioms().match("*T*C1") == ["axiom/STMC1", "axiom/TFC1"]
        assert probes_and_axioms().home("axiom/TFC1(length=5)") is axioms
        assert probes_and_axioms().home("matched/length|tf(tolerance=1)") is probes
        with pytest.raises(UnknownName, match="unknown probe 'axiom/TFC1'"):
            Catalogue(probes).match("axiom/TFC1")
        with pytest.raises(UnknownName, match="axiom/TFC1"):
            probes_and_axioms().home("axiom/TCF1(length=5)")

    def test_options_go_to_those_that_accept_them(self):
        names = ["axiom/TFC1", "matched/length|tf"]
        made = probes_and_axioms().make(names, {"tolerance": "10%", "max_tokens": None, "analyzer": "whitespace"})
        calls = [study.id for study in made.values()]
        assert calls == ["axiom/TFC1(analyzer=whitespace,max_tokens=None)", "matched/length|tf(tolerance=10%,analyzer=whitespace)"]  # fmt: skip

    def test_options_by_kind_are_on_top_and_a_call_string_above_all(self):
        names = ["axiom/TFC1", "axiom/TFC3(pairs=judged)", "matched/length|tf"]
        made = probes_and_axioms().make(names, {"pairs": "top:5"}, {"axioms": {"pairs": "all"}})
        assert [study.pairs for study in made.values()] == ["all", "judged", "top:5"]

    def test_a_compat_mode_goes_to_its_own_kind(self):
        for mode, modes in (("abnirml", [None, "abnirml"]), ("camara-hauff", ["camara-hauff", None])):
            made = probes_and_axioms().make(["axiom/TFC1", "matched/length|tf"], {"compat": mode})
            assert [study.compat for study in made.values()] == modes
        with pytest.raises(WhyrankError, match=r"'abnirml' \(probes\), 'camara-hauff' \(axioms\), 'relev.* \(bias"):
            probes_and_axioms().make(["axiom/TFC1"], {"compat": "abnirm"})
        with pytest.raises(WhyrankError, match="is for probes"):
            probes_and_axioms().make(["axiom/TFC1"], {"compat": "abnirml"})


class TestWithoutJudgements:
    RUNS = {"tasb": {"q": {"d1": 1.0}}, "bm25.top100": {"q": {"d2": 1.0}}}

    def test_what_axioms_and_probes_take(self):
        judged = Collection.of(DOCS, {"q": "cat"}, {"q": {"d1": 1}}, runs=self.RUNS)
        bare = Collection.of(DOCS, {"q": "cat"})
        several = Collection.of(DOCS, {"q": "cat"}, runs=self.RUNS)
        assert unjudged_options(judged) == unjudged_options(bare) == unjudged_options(judged, "tasb") == {}
        for given, run in (((several,), "bm25.top100"), ((several, "tasb"), "tasb"), ((bare, "f.txt"), "f.txt")):
            options = {"pairs": "top:100", "candidates": run}
            assert unjudged_options(*given) == {"axioms": options, "probes": options}

    def test_audit(self):
        runs = {"r": {"q": dict.fromkeys(DOCS, 1.0)}}
        [found] = whyrank.audit(
            Longer(), Collection.of(DOCS, {"q": "cat"}, runs=runs), "axiom/TFC1", analyzer="whitespace"
        )
        assert (found.n, found.with_relevant) == (1, None)
        assert "pairs=top:100" in found.call
        [asked] = whyrank.audit(Longer(), Collection.of(DOCS, {"q": "cat"}, runs=runs), "axiom/TFC1", pairs="judged")
        assert asked.n == 0

    def test_without_a_run_bm25_retrieves(self):
        bare = Collection.of(DOCS, {"q": "cat"})
        found = whyrank.audit(Longer(), bare, ["axiom/TFC1", "edited/repeat-document"], analyzer="whitespace")
        assert [(finding.n, "candidates=bm25" in finding.call) for finding in found] == [(1, True), (2, True)]
        assert not bare.runs, "the collection itself stays as it is"


class TestAsk:
    def test_axioms_and_probes_together(self):
        found = whyrank.audit(
            "bm25", studies=["axiom/TFC1", "matched/length|tf", axioms.create("axiom/AND")], limit=30
        ).findings
        assert [f.study for f in found] == ["axiom/TFC1", "matched/length|tf", "axiom/AND"]
        assert [f.conclusion for f in found] == ["strict", "", "strict"]
        assert (found[0].delta, found[2].delta) == (0, 0) < (found[1].delta, found[1].delta)
        assert all(f.scale == "sum of term weights" and f.n == 30 for f in found)

    @pytest.mark.parametrize(("delta", "more"), [(None, False), (0.5, False), ("p50", True)])
    def test_axioms_alone_need_no_calibration(self, delta, more):
        """Nothing is scored but the texts of the contrasts, each once for its query."""
        ranker = Longer()
        [found] = whyrank.audit(ranker, studies="axiom/TFC1", delta=delta, limit=5)
        assert (ranker.asked > 10) is more
        assert (found.delta == 0) is (delta is None)
