"""Every axiom that whyrank brings keeps the contract, on the bundled sample and on made-up collections."""

from __future__ import annotations

import inspect
from unittest import SkipTest

import pytest
from axiom_oracles import COLLECTIONS
from hypothesis import HealthCheck, given, settings

from whyrank.core import WhyrankError
from whyrank.data import Collection
from whyrank.studies.axioms import axioms
from whyrank.testing import AxiomContract
from whyrank.testing.examples import sample

COMPAT = "camara-hauff"
NAMES = axioms.match("axiom/*")
NINE = [f"axiom/{name}" for name in ("TFC1", "TFC2", "M-TDC", "LNC1", "LNC2", "TP", "STMC1", "STMC2", "STMC3")]
SPECS = [*NAMES, *(f"{name}(compat={COMPAT})" for name in NINE)]
NOT_PAIRWISE = ("axiom/TFC2", "axiom/LNC2", "axiom/LB2", "axiom/LB1(scores")
RARE = {"axiom/LNC1"}  # in texts of the bundled sample, each has one more of some word


class Contract(AxiomContract):
    """The contract for the axiom of a call string."""

    spec: str
    given_: Collection | None = None
    analyzer: str | None = None

    def make(self):
        return axioms.create(self.spec, **({"analyzer": self.analyzer} if self.analyzer else {}))

    def collection(self):
        return self.given_ if self.given_ is not None else sample()

    @property
    def pairwise(self):
        return not self.spec.startswith(NOT_PAIRWISE)

    @property
    def both_orders(self):
        return self.make().both_orders and self.make().compat is not None

    @property
    def fewest(self):
        return 0 if self.spec in RARE or self.given_ is not None else 1


VARIANTS = [
    "axiom/LNC1(variant=length)",
    "axiom/AND(length=20%)",
    "axiom/TFC3(idf=25%,seed=3)",
    "axiom/STMC2(distance=0.1,seed=3)",
    "axiom/STMC1(coverage=occurrences)",
    "axiom/TFC1(pairs=all,max_tokens=20)",
    "axiom/LNC2(max_tokens=None,copies=3)",
    "axiom/LB1(scores=bm25,margin=5%)",
    "axiom/PROX2(pairs=top:5,analyzer=whitespace,conclusion=weak)",
    "axiom/expression(of='(TFC1 & DIV) | -PROX2')",
    "axiom/expression(of='2*TFC1 + M-AND | vote(TFC1, DIV, M-AND)')",
]


@pytest.mark.parametrize("_spec", [*SPECS, *VARIANTS], indirect=True)
class TestOnTheSample(Contract):
    @pytest.fixture(autouse=True)
    def _spec(self, request):
        self.spec = request.param


@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
@given(given_=COLLECTIONS)
def test_on_made_up_collections(spec, given_):
    case = Contract()
    case.spec, case.given_, case.analyzer, case.scalars = spec, given_, "whitespace", 4
    for name, test in inspect.getmembers(case, inspect.ismethod):
        if name.startswith("test_"):
            try:
                test()
            except SkipTest:
                assert not case.pairwise


def test_there_are_no_more_compat_modes_than_the_nine():
    assert {name for name in NAMES if "compat" not in axioms.factory(name).not_filled} == set(NINE)
    for name in set(NAMES) - set(NINE):
        with pytest.raises(WhyrankError, match="is none of the nine with a compat mode"):
            axioms.create(f"{name}(compat={COMPAT})")


REFUSED = {
    "length": ["TFC1(length=-3)", "TFC1(length=None)", "TDC(length=x)", "TF-LNC(length='-3')", "DIV(length=long)", "LB1(length=x)", "REG(length=-1)"],
    "idf": ["TFC3(idf='-3')", "LB2(idf=close)"],
    "margin": ["LB1(margin=much)"],
    "variant": ["LNC1(variant=longer)", f"LNC1(variant=length,compat={COMPAT})"],
    "copies": ["LNC2(copies=1)"],
    "coverage": ["STMC1(coverage=all)"],
    "distance": ["STMC2(distance=3)"],
    "vectors": ["STMC1(vectors='')", "STMC1(vectors=3)"],
    "compat": ["STMC1(compat=other)"],
    "conclusion": ["TP(conclusion=maybe)"],
    "most": ["TP(most=0)"],
    "max_tokens": ["TP(max_tokens=0)"],
    "seed": ["TP(seed=x)", "TP(seed=1.5)", "TP(seed=True)", "TP(seed=None)"],
    "analyzer": ["TP(analyzer=3)"],
}  # fmt: skip


@pytest.mark.parametrize(("spec", "says"), [(spec, says) for says, specs in REFUSED.items() for spec in specs])
def test_wrong_arguments(spec, says):
    with pytest.raises(WhyrankError, match=says):
        axioms.create(f"axiom/{spec}")


def test_conclusions():
    """The published form of M-TDC is strict, unless one asks for another conclusion."""
    specs = ("TFC1", "TDC", "M-TDC", f"M-TDC(compat={COMPAT})", f"M-TDC(compat={COMPAT},conclusion=weak)")
    found = [axioms.create(f"axiom/{spec}").concludes for spec in specs]
    assert found == ["strict", "weak", "weak", "strict", "weak"]
