"""Batches put together on the device are those put together in numpy, and training with them is the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from training_models import quiet, toy_data, toy_network
from whyrank.networks.tokens import packed_pairs
from whyrank.training import Packer, Trainer
from whyrank.training.losses import CrossEntropy
from whyrank.training.schedule import Schedule

TEXTS = st.lists(
    st.lists(st.integers(5, 40), max_size=7).map(lambda row: np.array(row, np.int32)), min_size=1, max_size=6
)
SPECIAL = {"cls": 1, "sep": 2}


@settings(deadline=None)
@given(TEXTS, TEXTS, st.data())
def test_batches_are_those_of_numpy(queries, docs, data):
    n = data.draw(st.integers(1, 9))
    query, doc = (
        np.array(data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=n, max_size=n)))
        for texts in (queries, docs)
    )
    found = Packer(queries, docs, SPECIAL, "cpu")(query, doc)
    expected = packed_pairs([queries[q] for q in query], [docs[d] for d in doc], SPECIAL)
    assert set(found) == set(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name].numpy(), array, err_msg=name)


def test_training_is_the_same_padded_and_end_to_end():
    losses = []
    for packed in (False, True):
        network, schedule = toy_network(dropout=0.0), Schedule(epochs=3, batch=5, rate=1e-3)
        trainer = Trainer(network, toy_data(negatives=3), CrossEntropy(), schedule, say=quiet)
        if packed:
            trainer._packer = Packer(trainer._queries, trainer._docs, network.tokenizer.special, "cpu")
        losses.append(trainer.run().losses)
    np.testing.assert_allclose(*losses, rtol=1e-3, atol=1e-4)
