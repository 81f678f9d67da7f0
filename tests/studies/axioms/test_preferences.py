"""Tables of preferences, against one question at a time."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest

from whyrank.core import WhyrankError
from whyrank.data import Collection
from whyrank.studies.axioms import axioms, parse_expression, preferences, save_preferences
from whyrank.studies.axioms.counts import DIV, TFC1, TFC2

DOCS = {"a": "x y", "b": "x x y", "c": "z", "d": "y y x", "e": "x", "alone": "x z"}
COLLECTION = Collection.of(
    DOCS,
    {"1": "x y", "2": "z", "3": "x", "none": "x"},
    {"1": {"a": 2, "b": 0, "c": 1}, "2": {"c": 1, "e": 0}, "3": {"alone": 1}, "none": {"gone": 1}},
    runs={"r": {"1": {"d": 5.0, "a": 4.0}, "2": {}}},
)
ASKED = ("TFC1", "DIV", "TFC1 & -DIV", "2*M-AND + TFC1", "ORACLE")
COMMON = {"analyzer": "whitespace", "pairs": "all"}


def made(texts=ASKED, **more):
    return [parse_expression(text, **{**COMMON, **more}) for text in texts]


def preference_table(given, features=False):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        save_preferences(path, given, COLLECTION, features)
        return pq.read_table(path)


def names(texts=ASKED):
    bare = [parse_expression(text, analyzer="whitespace") for text in texts]
    return [axiom.id.removeprefix("axiom/") for axiom in bare]


def pool(query_id: str) -> list[str]:
    found = [*COLLECTION.qrels.get(query_id, {}), *COLLECTION.runs["r"].get(query_id, {})]
    return [d for d in dict.fromkeys(found) if d in DOCS]


def alone(axiom, query_id: str, one: str, two: str) -> int:
    """One question at a time; the judgements are not in the texts."""
    if axiom.name == "ORACLE":
        grades = [COLLECTION.qrels.get(query_id, {}).get(d, 0) for d in (one, two)]
        return (grades[0] > grades[1]) - (grades[0] < grades[1])
    return axiom.preference(COLLECTION.queries[query_id], DOCS[one], DOCS[two], COLLECTION)


class TestPairs:
    def test_every_pair_once_with_what_each_axiom_says_alone(self):
        found = preference_table(made())
        assert found.column_names == ["query_id", "doc_a", "doc_b", *names(), "relevance_a", "relevance_b"]
        rows = found.to_pylist()
        pairs = [(q, a, b) for q in ("1", "2", "3", "none") for a, b in combinations(pool(q), 2)]
        assert [(row["query_id"], row["doc_a"], row["doc_b"]) for row in rows] == pairs
        assert len(rows) == 6 + 1
        for row, (q, a, b) in zip(rows, pairs, strict=True):
            assert [row[name] for name in names()] == [alone(axiom, q, a, b) for axiom in made()]
            assert (row["relevance_a"], row["relevance_b"]) == (
                COLLECTION.qrels[q].get(a),
                COLLECTION.qrels[q].get(b),
            )

    def test_names_leave_out_what_is_the_same_for_all(self):
        axiom = TFC1(length=5, analyzer="whitespace", pairs="top:2", candidates="r", seed=3)
        table = preference_table([axiom])
        assert table.column_names[3] == "TFC1(analyzer=whitespace,length=5)"
        assert axioms.create("axiom/" + table.column_names[3]) == TFC1(length=5, analyzer="whitespace")
        assert json.loads(table.schema.metadata[b"whyrank.axioms"]) == {table.column_names[3]: axiom.id}
        assert table.num_rows == 1

    def test_names_of_ones_own(self):
        table = preference_table({"both": TFC1() & DIV(), "one": TFC1()})
        assert table.column_names[3:5] == ["both", "one"]
        assert preference_table(["TFC1 & DIV"]).column_names[3] == "TFC1 & DIV", "as it is written"
        assert preference_table({"one": TFC1()}, features=True).column_names[2:5] == [
            "one mean",
            "one max",
            "one min",
        ]


class TestFeatures:
    def test_mean_largest_and_least_over_the_others(self):
        rows = preference_table(made(), features=True).to_pylist()
        assert [(row["query_id"], row["doc_id"]) for row in rows] == [
            (q, d) for q in ("1", "2", "3") for d in pool(q)
        ]
        for row in rows:
            q, d = row["query_id"], row["doc_id"]
            for name, axiom in zip(names(), made(), strict=True):
                said = [alone(axiom, q, d, other) for other in pool(q) if other != d]
                expected = (sum(said) / len(said), max(said), min(said)) if said else (None, None, None)
                assert tuple(row[f"{name} {kind}"] for kind in ("mean", "max", "min")) == pytest.approx(expected)
            assert row["relevance"] == COLLECTION.qrels[q].get(d)


GROUPS = {(False, 1): 2, (False, 3): 2, (False, 1 << 18): 1, (True, 1): 3, (True, 3): 2, (True, 1 << 18): 1}


class TestFiles:
    @pytest.mark.parametrize("rows", [1, 3, 1 << 18])
    @pytest.mark.parametrize("features", [False, True])
    def test_a_file_is_the_table(self, tmp_path, monkeypatch, rows, features):
        path, table = tmp_path / "p.parquet", preference_table(made(), features)
        monkeypatch.setattr(preferences, "ROWS", rows)
        assert save_preferences(path, made(), COLLECTION, features) == table.num_rows
        found = pq.read_table(path)
        assert found.to_pylist() == table.to_pylist()
        assert found.schema.metadata[b"whyrank.axioms"] == table.schema.metadata[b"whyrank.axioms"]
        assert pq.ParquetFile(path).num_row_groups == GROUPS[features, rows]

    def test_what_fails_leaves_the_old_file(self, tmp_path, monkeypatch):
        path = tmp_path / "p.parquet"
        save_preferences(path, ["TFC1"], COLLECTION)
        before = path.read_bytes()
        monkeypatch.setattr(preferences, "ROWS", 1)
        with pytest.raises(WhyrankError, match="ORIG needs candidates"):
            save_preferences(path, ["ORIG"], Collection.of(DOCS, COLLECTION.queries, COLLECTION.qrels))
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "at least one"),
        (["TFC1", TFC1()], "twice"),
        ({"a": TFC1(), "b": TFC1()}, "twice"),
        ({"a": "TFC1"}, "no axiom"),
        ([TFC2()], "TFC2"),
        ([TFC1(), DIV(pairs="all")], "same pairs"),
    ],
)
def test_wrong_axioms(given, says, tmp_path):
    with pytest.raises(WhyrankError, match=says):
        preference_table(given)
    with pytest.raises(WhyrankError, match=r"\.parquet"):
        save_preferences(tmp_path / "p.csv", ["TFC1"], COLLECTION)
