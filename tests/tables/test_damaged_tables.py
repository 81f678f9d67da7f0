"""Term tables in which some bytes are other ones: the table that it was, another one, or a clear error."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from whyrank.core import WhyrankError
from whyrank.tables import TermTable, open_table


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
def test_damage_never_ends_in_another_error(tmp_path, suffix):
    random = np.random.default_rng(1)
    terms = [f"term{i}" for i in range(300)]
    pairs = [(q, d) for q in terms[:20] for d in terms]
    file = tmp_path / f"table{suffix}"
    TermTable.from_triples(*zip(*pairs, strict=True), random.random(len(pairs)), analyzer="lucene").save(file)
    whole = np.frombuffer(file.read_bytes(), np.uint8)
    for _ in range(250):
        damaged = whole.copy()
        damaged[random.integers(len(whole), size=3)] = random.integers(256, size=3)
        file.write_bytes(damaged.tobytes())
        with suppress(WhyrankError):
            open_table(file, check=True)
