import numpy as np
import pytest
import torch
from chunked_models import small_network, small_pairs, small_pieces
from hypothesis import given
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.networks import tensors
from whyrank.networks.chunks import chunk_arrays, reading

torch.set_num_threads(1)
SPECIAL = {"cls": 101, "sep": 102, "pad": 0, "mask": 103}
PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20)), min_size=1, max_size=5)


def ids(n, start):
    return np.arange(start, start + n, dtype=np.int32)


@given(PAIRS, st.integers(1, 6), st.integers(1, 3))
def test_rows_and_places_are_those_of_the_chunks(sizes, size, most):
    queries, docs = (
        [ids(q, 200 * i + 1) for i, (q, _) in enumerate(sizes)],
        [ids(d, 5000 + 50 * i) for i, (_, d) in enumerate(sizes)],
    )
    found = chunk_arrays(queries, docs, SPECIAL, size, most)
    flat = found["ids"].ravel()
    for i, (query, doc) in enumerate(zip(queries, docs, strict=True)):
        read = doc[: size * most].tolist()
        rows = [row for row in found["parts"][i] if row >= 0]
        assert len(rows) == max(1, -(-len(read) // size))
        assert [flat[place] for place in found["query"][i] if place >= 0] == query.tolist()
        assert all(place // found["ids"].shape[1] == rows[0] for place in found["query"][i] if place >= 0)
        assert [flat[place] for place in found["doc"][i] if place >= 0] == read
        for k, row in enumerate(rows):
            chunk = read[k * size : (k + 1) * size]
            expected = [101, *query.tolist(), 102, *chunk, 102]
            assert found["ids"][row][found["mask"][row] == 1].tolist() == expected
            assert found["types"][row][: len(expected)].tolist() == [0] * (len(query) + 2) + [1] * (len(chunk) + 1)
    assert sorted(row for row in found["parts"].ravel() if row >= 0) == list(range(len(found["ids"])))


def test_states_of_the_last_layer_are_there_for_other_heads(tmp_path):
    """What a head over the states of query and text needs: each pair's own, whatever stands beside it."""
    network = small_network("vanilla", small_pieces(tmp_path))
    queries, docs = (f(texts) for f, texts in zip((network.query_ids, network.doc_ids), small_pairs(), strict=True))
    with torch.inference_mode():
        batch = tensors(network.arrays(queries, docs))
        together = reading(network.encoder.last(batch), batch)
        for i, (query, doc) in enumerate(zip(queries, docs, strict=True)):
            own = tensors(network.arrays([query], [doc]))
            alone = reading(network.encoder.last(own), own)
            q, d = together.query_mask[i], together.doc_mask[i]
            assert (int(q.sum()), int(d.sum())) == (len(query), len(doc))
            torch.testing.assert_close(together.query[i][q], alone.query[0][alone.query_mask[0]], atol=1e-5, rtol=0)
            torch.testing.assert_close(together.doc[i][d], alone.doc[0][alone.doc_mask[0]], atol=1e-5, rtol=0)


@pytest.mark.parametrize("chunks", [0, 1.5, True, "3"])
def test_a_wrong_number_of_chunks_is_refused(tmp_path, chunks):
    with pytest.raises(WhyrankError, match="chunks must be a whole number, 1 or more"):
        small_network("vanilla", small_pieces(tmp_path), chunks=chunks)
