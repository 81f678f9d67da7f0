"""Batches of inputs: put together from texts that are tokenised once, beside joining and padding row by row."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from whyrank.rankers.neural import inputs
from whyrank.rankers.neural.computing import Computing
from whyrank.rankers.neural.inputs import InputLayout, TokenRows, fitting_sizes, lay_out
from whyrank.rankers.neural.passages import TextPairs
from whyrank.rankers.neural.readers import PairReader
from whyrank.rankers.neural.scorer import Scorer

PAD = 9
TEXTS = st.lists(st.text("abc", max_size=6), min_size=1, max_size=5)
SPECIAL = st.lists(st.integers(1, 8), max_size=2).map(lambda ids: np.array(ids, np.int32))


def tokenise(texts):
    return [np.array([ord(letter) for letter in text], np.int32) for text in texts]


@given(TEXTS, TEXTS, SPECIAL, SPECIAL, SPECIAL, st.booleans(), st.integers(1, 4), st.data())
def test_a_batch_is_what_joining_and_padding_give(queries, docs, before, between, after, last, multiple, data):
    codes = st.lists(
        st.tuples(st.integers(0, len(queries) - 1), st.integers(0, len(docs) - 1)), min_size=1, max_size=6
    )
    query, doc = np.array(data.draw(codes), np.int32).T
    taken, sizes = {}, []
    for name, texts, chosen in (("query", queries, query), ("doc", docs, doc)):
        rows = TokenRows(tokenise)
        rows.of([texts[chosen[0]]])
        numbers = rows.of(list(dict.fromkeys(texts)))[[list(dict.fromkeys(texts)).index(texts[i]) for i in chosen]]
        sizes.append(np.array([data.draw(st.integers(0, size)) for size in rows.sizes[numbers].tolist()], np.int64))
        taken[name] = rows, rows.cut(numbers, sizes[-1], last)
    layout = InputLayout((before, "query", between, "doc", after), (0, 0, 0, 1, 1), PAD)
    found = lay_out(layout, taken, "cpu", multiple)
    width = found["input_ids"].shape[1]
    assert width % multiple == 0
    for row, (q, d) in enumerate(zip(query, doc, strict=True)):
        cut = [text[len(text) - size[row] :] if last else text[: size[row]] for text, size in
               ((tokenise([queries[q]])[0], sizes[0]), (tokenise([docs[d]])[0], sizes[1]))]  # fmt: skip
        ids = [*before, *cut[0], *between, *cut[1], *after]
        types = [0] * (len(ids) - len(cut[1]) - len(after)) + [1] * (len(cut[1]) + len(after))
        filled = width - len(ids)
        assert found["input_ids"][row].tolist() == ids + [PAD] * filled
        assert found["attention_mask"][row].tolist() == [1] * len(ids) + [0] * filled
        assert found["token_type_ids"][row].tolist() == types + [0] * filled


@pytest.mark.parametrize("more", ["d", "d" * 100], ids=["as much room", "a larger buffer"])
def test_texts_added_while_tokens_go_to_a_device_are_sent_next_time(monkeypatch, more):
    rows, send = TokenRows(tokenise), inputs._send
    rows.of(["a" * 9])
    rows.of(["b" * 2])  # leaves room

    def add_and_send(array, device):
        monkeypatch.setattr(inputs, "_send", send)
        rows.of([more])  # as the thread does that tokenises what comes next
        return send(array, device)

    monkeypatch.setattr(inputs, "_send", add_and_send)
    first = rows.on("cpu:0")  # a device that tokens are sent to
    assert first[1:12].tolist() == [ord("a")] * 9 + [ord("b")] * 2
    assert rows.on("cpu:0")[: len(rows)].tolist() == rows.ids.tolist()


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 30))
def test_the_longer_text_is_cut_first(first, second, room):
    """As the tokenizers package cuts pairs: the longer one, down to half of the room."""
    [n], [m] = fitting_sizes(np.array([first]), np.array([second]), room)
    assert n + m == room or (n, m) == (first, second)
    assert (n, m) <= (first, second)
    if first + second > room:
        assert n == first or m == second or abs(n - m) <= 1
        assert n == first or first > room // 2
        assert m == second or second > room // 2


class Sums(PairReader):
    """Scores a pair by the sum of its tokens; has room for so many rows at a time."""

    layout = InputLayout(("query", "doc"), (0, 0), 0)
    module = None

    def __init__(self, room):
        self.room, self.batches = room, []

    query_ids = doc_ids = staticmethod(tokenise)

    def __call__(self, batch, side="pair"):
        self.batches.append(len(batch["input_ids"]))
        if self.batches[-1] > self.room:
            raise torch.cuda.OutOfMemoryError
        return batch["input_ids"].sum(1).float()


def test_a_batch_that_does_not_fit_is_halved():
    queries, docs = ["q"] * 13, [f"text {i}" for i in range(13)]
    reader = Sums(room=3)
    found = Scorer(reader, Computing("cpu"))(TextPairs.of(queries, docs))
    assert found.tolist() == [sum(map(ord, query + doc)) for query, doc in zip(queries, docs, strict=True)]
    assert reader.batches[0] == 13
    assert max(size for size in reader.batches if size <= 3) == 3
    with pytest.raises(torch.cuda.OutOfMemoryError):
        Scorer(Sums(room=0), Computing("cpu"))(TextPairs.of(queries, docs))


def test_pairs_that_are_the_same_tokens_once_cut_are_read_once():
    class Short(Sums):
        def cut(self, query, doc):
            return query, np.minimum(doc, 2)

    reader = Short(room=99)
    found = Scorer(reader, Computing("cpu"))(TextPairs.of(["q", "q", "q"], ["abc", "abd", "ab"]))
    assert len({*found.tolist()}) == 1
    assert reader.batches == [1]


def test_later_batches_are_no_larger_than_what_fitted():
    reader, docs = Sums(room=3), [f"text {i:02}" for i in range(40)]
    scorer = Scorer(reader, Computing("cpu"))
    scorer(TextPairs.of(["q"] * 40, docs))
    failed = sum(size > 3 for size in reader.batches)
    scorer(TextPairs.of(["q"] * 40, [f"word {i:02}" for i in range(40)]))
    assert sum(size > 3 for size in reader.batches) == failed > 0


def test_a_call_that_fails_leaves_no_scores_behind():
    reader, pairs = Sums(room=0), TextPairs.of(["q", "q"], ["a", "b"])
    scorer = Scorer(reader, Computing("cpu"))
    with pytest.raises(torch.cuda.OutOfMemoryError):
        scorer(pairs)
    reader.room = 9
    assert scorer(pairs).tolist() == [ord("q") + ord("a"), ord("q") + ord("b")]


@given(
    st.lists(st.tuples(st.text("abc", max_size=6), st.text("abc", max_size=6)), min_size=1, max_size=30),
    st.integers(1, 40), st.integers(1, 40), st.integers(1, 30),
)  # fmt: skip
def test_scores_do_not_depend_on_chunks_batches_and_calls(pairs, tokens, chunk, size):
    class Small(Computing):
        pass

    Small.tokens, Small.chunk = tokens, chunk
    reader = Sums(room=99)
    scorer, queries, docs = Scorer(reader, Small("cpu")), *zip(*pairs, strict=True)
    calls = [scorer(TextPairs.of(queries[i : i + size], docs[i : i + size])) for i in range(0, len(pairs), size)]
    assert np.concatenate(calls).tolist() == [sum(map(ord, query + doc)) for query, doc in pairs]
    assert sum(reader.batches) == len(set(pairs))  # each distinct pair once, in whatever call


def test_texts_are_tokenised_while_the_chunk_before_is_computed():
    """A model that goes on only once the texts of the next chunk are tokenised, which happens in another thread."""
    chunks = [threading.Event() for _ in range(5)]

    class Waiting(Sums):
        def doc_ids(self, texts):
            next(chunk for chunk in chunks if not chunk.is_set()).set()
            return tokenise(texts)

        def __call__(self, batch, side="pair"):
            assert chunks[min(len(self.batches) + 1, 4)].wait(10)
            return super().__call__(batch, side)

    class Small(Computing):
        tokens, chunk = 10_000, 2

    found = Scorer(Waiting(room=9), Small("cpu"))(TextPairs.of(["q"] * 7, list("abcdefg")))
    assert found.tolist() == [ord("q") + ord(letter) for letter in "abcdefg"]
