"""Probes of all families as call strings: they parse back, and wrong ones are refused."""

from __future__ import annotations

from itertools import permutations

import pytest

from whyrank.core import WhyrankError
from whyrank.studies.probes import probes


@pytest.mark.parametrize(
    "spec",
    [
        "matched/length|tf",
        "matched/length|tf(tolerance=5)",
        "matched/tf|overlap(tolerance=10%,margin=1.5,compat=abnirml)",
        "matched/tf|length(analyzer='terrier(stopwords=x)',pairs='top:5')",
        "edited/typos(rate=0.5)",
        "edited/repeat-document(times=3,seed=4)",
        "edited/delete-sentence(which=last)",
        "edited/shuffle-words(respace=True,compat=abnirml,analyzer=krovetz)",
        "transferred/fluency(pairs=x.tsv)",
        "transferred/factuality(entity=GPE)",
        "transferred/paraphrase(query=title,compat=abnirml)",
        "transferred/neutrality(seed=3)",
    ],
)
def test_call_strings_parse_back(spec):
    made = probes.create(spec)
    assert probes.create(made.id) == made


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("matched/length|tf(tolerance=-1)", "tolerance"),
        ("matched/length|tf(tolerance=abc)", "tolerance"),
        ("matched/length|tf(compat=x)", "compat"),
        ("matched/length|tf(margin=-2)", "margin"),
        ("edited/typos(rat=1)", "'rate'"),
        ("edited/shuffel-words", "shuffle-words"),
        ("edited/case-fold(compat=x)", "abnirml"),
        ("transferred/fluency(compat=x)", "abnirml"),
        ("transferred/fluency(seed=-1)", "seed"),
    ],
)
def test_wrong_ones_are_refused(spec, says):
    with pytest.raises(WhyrankError, match=says):
        probes.create(spec)


def test_every_pair_of_characteristics_is_a_probe():
    names = ("relevance", "length", "tf", "sum-tf", "overlap")
    assert {f"matched/{a}|{b}" for a, b in permutations(names, 2)} <= set(probes.names())
