"""Contrasts: building, taking, sampling, fingerprint, files."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrast_pairs import pairs_of
from whyrank.core import WhyrankError
from whyrank.studies import Categories, Contrasts, Pair, save

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PAIRS = st.lists(
    st.builds(lambda q, a, b, n: Pair(q, (a, b), {"query_id": f"id {q}", "grade": n, "doc_ids": (a + "!", b + "?")}),
              TEXT, TEXT, TEXT, st.integers(-5, 5)),
    max_size=12,
)  # fmt: skip


def rows(contrasts: Contrasts) -> list[tuple]:
    """Each contrast with its texts and labels spelled out."""
    shown = {n: c.values().tolist() if isinstance(c, Categories) else c.tolist() for n, c in contrasts.labels.items()}
    texts = [(p.query, p.docs) for p in pairs_of(contrasts)]
    return [(*texts[i], {n: values[i] for n, values in shown.items()}) for i in range(len(contrasts))]


@given(PAIRS)
@settings(max_examples=50, deadline=None)
def test_from_pairs_holds_what_was_given(pairs):
    made = Contrasts.from_pairs(pairs)
    expected = [
        (p.query, p.docs, {k: list(v) if isinstance(v, tuple) else v for k, v in p.labels.items()}) for p in pairs
    ]
    assert rows(made) == expected
    assert len(set(made.queries)) == len(made.queries)
    assert len(set(made.docs)) == len(made.docs)


@given(PAIRS, st.sampled_from([".parquet", ".jsonl"]))
@settings(max_examples=40, deadline=None)
def test_files_have_a_row_per_contrast(tmp_path_factory, pairs, suffix):
    path = tmp_path_factory.mktemp("contrasts") / f"c{suffix}"
    made = Contrasts.from_pairs(pairs)
    save(made, path)
    if suffix == ".parquet":
        found = pq.read_table(path).to_pylist()
    else:
        found = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [(row.pop("query"), tuple(row.pop("docs")), row) for row in found] == rows(made)


@given(PAIRS, st.randoms())
@settings(max_examples=40, deadline=None)
def test_fingerprint_is_of_the_set(pairs, random):
    mixed = list(pairs)
    random.shuffle(mixed)
    made = Contrasts.from_pairs(pairs)
    assert Contrasts.from_pairs(mixed).fingerprint == made.fingerprint
    padded = Contrasts([*made.queries, "unused"], ["unused", *made.docs], made.query, made.doc + 1)
    assert padded.fingerprint == made.fingerprint


@given(PAIRS)
@settings(max_examples=40, deadline=None)
def test_fingerprint_tells_different_questions_apart(pairs):
    made = Contrasts.from_pairs(pairs)
    assert (
        Contrasts.from_pairs(
            [*pairs, Pair("q", ("a", "b"), {"query_id": "x", "grade": 1, "doc_ids": ("", "")})]
        ).fingerprint
        != made.fingerprint
    )
    turned = [p._replace(docs=p.docs[::-1]) for p in pairs]
    same = sorted((p.query, p.docs) for p in pairs) == sorted((p.query, p.docs) for p in turned)
    assert (Contrasts.from_pairs(turned).fingerprint == made.fingerprint) == same


def test_fingerprint_is_fixed():
    """The same questions have the same fingerprint everywhere and always."""
    made = Contrasts.from_pairs([Pair("berlin wall", ("fell in 1989", "was long"))])
    assert made.fingerprint == "2af95dff685a3a93a52473e3ef94328d0ff9f786f4e04f9dce0de33f140e944b"


@given(PAIRS, st.integers(1, 6), st.integers(0, 3), st.randoms())
@settings(max_examples=40, deadline=None)
def test_sample_does_not_depend_on_order(pairs, limit, seed, random):
    mixed = list(pairs)
    random.shuffle(mixed)
    one, two = (Contrasts.from_pairs(p).sample(limit, seed) for p in (pairs, mixed))
    assert len(one) == min(limit, len(pairs))
    assert one.fingerprint == two.fingerprint


@given(st.lists(st.tuples(TEXT, TEXT, st.sampled_from("abc")), max_size=12), st.integers(1, 6), st.randoms())
@settings(max_examples=40, deadline=None)
def test_forms_of_one_document_are_drawn_independently_of_order(found, limit, random):
    pairs = [Pair(q, (t + "!", t), {"query_id": q, "doc_ids": (d, d)}) for q, t, d in found]
    mixed = random.sample(pairs, len(pairs))
    one, two = (Contrasts.from_pairs(p).sample(limit, 0) for p in (pairs, mixed))
    assert len(one) == min(limit, len(pairs))
    assert sorted(rows(one), key=repr) == sorted(rows(two), key=repr)


def test_uneven_pairs_and_labels_are_refused():
    for second in (Pair("q", ("a", "b", "c")), Pair("q", ("a", "b"), {"y": 1})):
        with pytest.raises(WhyrankError):
            Contrasts.from_pairs([Pair("q", ("a", "b")), second])
    with pytest.raises(WhyrankError, match="'x'"):
        Contrasts(["q"], ["a", "b"], np.zeros(1, np.int32), np.array([[0, 1]], np.int32), {"x": np.zeros(2)})


class TestFiles:
    made = Contrasts.from_pairs([Pair("q", ("a", "b"), {"query_id": "1", "doc_ids": ("x", "y"), "grade": 2})])

    def test_columns(self, tmp_path):
        save(self.made, tmp_path / "c.jsonl", {"effect": np.array([1], np.int8), "scores": np.array([[0.5, np.nan]])})
        row = json.loads((tmp_path / "c.jsonl").read_text())
        assert row == {"query_id": "1", "doc_ids": ["x", "y"], "query": "q", "docs": ["a", "b"], "grade": 2, "effect": 1,
                       "scores": [0.5, None]}  # fmt: skip

    def test_many_rows_over_few_texts_stay_small(self, tmp_path):
        n, texts = 200_000, [f"{i} " + "long text " * 300 for i in range(50)]
        doc = np.random.default_rng(0).integers(0, 50, (n, 2)).astype(np.int32)
        many = Contrasts(["q"], texts, np.zeros(n, np.int32), doc)
        save(many, tmp_path / "c.parquet")
        assert (tmp_path / "c.parquet").stat().st_size < 2_000_000
        found = pq.read_table(tmp_path / "c.parquet")
        assert found["docs"].to_pylist()[-1] == [texts[i] for i in doc[-1]]
        facts = json.loads(found.schema.metadata[b"whyrank.contrasts"])
        assert facts == {"study": "", "fingerprint": many.fingerprint, "size": 2}

    def test_other_endings_are_refused(self, tmp_path):
        with pytest.raises(WhyrankError, match=r"\.jsonl or \.parquet"):
            save(self.made, tmp_path / "c.txt")
