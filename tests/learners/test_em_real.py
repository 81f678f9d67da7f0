"""EM on a real collection."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from whyrank.data import open_collection
from whyrank.learners.em import learn_em, make_bitext


def test_cranfield(data_folder):
    bitext = make_bitext(open_collection(str(data_folder / "cranfield")), "lucene")
    assert bitext.links > 100_000
    plain = learn_em(bitext, held_out=0.1, check=True)
    assert all(after < before for before, after in pairwise(plain.perplexities))
    assert np.isclose(plain.perplexities[0], len(bitext.target_terms), rtol=1e-9)
    other = learn_em(bitext, held_out=0.1, threads=2, memory=0)
    assert other.table.digest == plain.table.digest
    assert other.perplexities == plain.perplexities
