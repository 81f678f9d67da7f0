"""Collections in tables with named columns: which columns are taken, and one clear line for what cannot be read."""

import csv
import json
import os
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whyrank.core import Call, WhyrankError, parse_call
from whyrank.data import Collection, open_collection, write_parquet
from whyrank.data.disk import DiskDocs

PRODUCTS = [
    {"sku": "1", "title": "red shoe", "description": 'a "red" shoe,\nlight', "price": 20.5},
    {"sku": "2", "title": "blue shoe", "description": "for running", "price": 35},
    {"sku": "007", "title": "hat", "description": "hat of wool", "price": 12},
]
TEXTS = {"1": 'red shoe a "red" shoe,\nlight', "2": "blue shoe for running", "007": "hat of wool"}
CLICKS = "query,sku,label\nred shoe,1,2\nred shoe,2,0.0\nhat,007,1\n"


def write_rows(path, rows):
    names = list(rows[0])
    match path.suffix:
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case ".parquet":
            write_parquet(pa.Table.from_pylist(rows), path)
        case ".arrow":
            table = pa.Table.from_pylist(rows)
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table)
        case _:
            with path.open("w", newline="", encoding="utf-8") as file:
                delimiter = "\t" if path.suffix == ".tsv" else ","
                writer = csv.writer(file, delimiter=delimiter)
                writer.writerows([names, *(row.values() for row in rows)])
    return path


@pytest.fixture
def products(tmp_path):
    (tmp_path / "clicks.csv").write_text(CLICKS)
    return write_rows(tmp_path / "products.csv", PRODUCTS)


def opened(products, **columns):
    given = {"docs": str(products), "queries": str(products.parent / "clicks.csv")} | columns
    return open_collection(str(Call("files", None, given)))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow"])
def test_every_format_gives_the_same_collection(products, suffix):
    path = write_rows(products.with_suffix(suffix), PRODUCTS)
    found = opened(path, qrels=str(products.parent / "clicks.csv"))
    assert found.name == "products"
    assert found.docs == TEXTS
    assert found.titles == {"1": "red shoe", "2": "blue shoe", "007": "hat"}
    assert dict(found.fields) == {"1": {"price": 20.5}, "2": {"price": 35}, "007": {"price": 12}}
    assert found.queries == {"q1": "red shoe", "q2": "hat"}, "a file with judgements has queries too"
    assert found.qrels == {"q1": {"1": 2, "2": 0}, "q2": {"007": 1}}, "named by their texts"
    assert f"{path.name}: id: sku; text: title + description; fields: price" in found.notes


@pytest.mark.usefixtures("products")
def test_a_folder_of_shards_is_one_table(tmp_path):
    (tmp_path / "corpus").mkdir()
    for number, row in enumerate(PRODUCTS):
        write_rows(tmp_path / "corpus" / f"train-0000{number}-of-00003.parquet", [row])
    assert list(opened(tmp_path / "corpus", queries=str(tmp_path / "clicks.csv")).docs.items()) == list(TEXTS.items())
    shards = tmp_path / "corpus" / "train-0000[01]-*.parquet"
    assert list(opened(shards, queries=str(tmp_path / "clicks.csv")).docs) == ["1", "2"]


def test_named_columns_win(products):
    found = opened(products, doc_text="description,title", doc_id="title", query_text="sku", query_id="label")
    assert list(found.docs) == ["red shoe", "blue shoe", "hat"]
    assert found.docs["blue shoe"] == "for running blue shoe"
    assert found.queries == {"2": "1", "0.0": "2", "1": "007"}
    assert found.fields["hat"] == {"sku": "007", "price": 12}


def test_tsv_without_a_header(tmp_path):
    (tmp_path / "collection.tsv").write_text("0\tThe first passage\n1\tThe second\n")
    (tmp_path / "queries.tsv").write_text("9\twhich is second\n")
    (tmp_path / "qrels.tsv").write_text("9\t0\t1\t1\n")
    parts = {"docs": "collection.tsv", "queries": "queries.tsv", "qrels": "qrels.tsv"}
    spec = str(Call("files", None, {name: str(tmp_path / file) for name, file in parts.items()}))
    found = open_collection(spec)
    assert found.docs == {"0": "The first passage", "1": "The second"}
    assert (found.queries, found.qrels) == ({"9": "which is second"}, {"9": {"1": 1}})


def test_what_is_not_a_number_is_no_text(products):
    rows = products.with_suffix(".jsonl")
    rows.write_text('{"id": 1, "text": NaN}\n{"id": 2, "text": 7.5}\n')
    assert opened(rows).docs == {"1": "", "2": "7.5"}


def test_a_header_of_tsv_with_names_of_ones_own(tmp_path):
    (tmp_path / "shop.tsv").write_text("code\twords\nx\tred shoe\n")
    (tmp_path / "clicks.csv").write_text(CLICKS)
    assert opened(tmp_path / "shop.tsv", doc_id="code", doc_text="words").docs == {"x": "red shoe"}


def test_above_the_memory_limit_texts_and_fields_stay_on_disk(products, monkeypatch, tmp_path):
    memory = opened(products)
    monkeypatch.setenv("WHYRANK_MEMORY_LIMIT", "10")
    monkeypatch.setenv("WHYRANK_CACHE", str(tmp_path / "cache"))
    for _ in range(2):  # made, then found
        kept = opened(products)
        assert isinstance(kept.docs, DiskDocs)
        assert (kept.docs, kept.titles, dict(kept.fields)) == (memory.docs, memory.titles, dict(memory.fields))
    assert opened(products, doc_text="title").docs["1"] == "red shoe", "other columns are another store"


def test_the_same_texts_as_a_folder_gives(tmp_path):
    rows = [{"_id": "a", "title": "Art", "text": "Artificial"}, {"_id": "b", "title": "", "text": "b", "year": 1999}]
    write_rows(tmp_path / "corpus.jsonl", rows)
    (tmp_path / "queries.tsv").write_text("q\ttext\n")
    folder = open_collection(str(tmp_path))
    files = opened(tmp_path / "corpus.jsonl", queries=str(tmp_path / "queries.tsv"))
    assert files.docs == folder.docs
    assert dict(files.fields) == dict(folder.fields) == {"b": {"year": 1999}}


CASES = [
    ("", r"p\.csv: the file is empty"),
    ("id,text\n", r"p\.csv: there are no rows"),
    ("text,year\na,1\n", r"p\.csv: no column is known as doc_id; the columns are text, year; name it with doc_id"),
    ("id,sku,text\n1,2,a\n", r"p\.csv: several columns may be doc_id \(id, sku\); the columns are id, sku, text"),
    ("id,text,body\n1,a,b\n", r"several columns may be doc_text \(text, body\)"),
    ("id,text\n1,a\n1,b\n", r"p\.csv:3: id '1' was already used in line 2"),
    ("id,text\n1,a\n,b\n", r"p\.csv:3: 'id' is '', which cannot be an id"),
    ("id,text\n1,a,b\n", r"p\.csv:2: expected 2 columns as in the first row, found 3"),
    ('id,text\n1,"a\n2,b\n', r"p\.csv:2: malformed CSV"),
    ("id,text,text\n1,a,b\n", r"p\.csv:1: two columns are named 'text'"),
    (b"id,text\n1,caf\xe9\n", r"p\.csv:2: byte 6 of this line \(0xe9\) is not UTF-8"),
]


@pytest.mark.parametrize(("content", "message"), CASES)
def test_one_line_for_what_cannot_be_read(tmp_path, content, message):
    path = tmp_path / "p.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "clicks.csv").write_text(CLICKS)
    with pytest.raises(WhyrankError, match=message) as error:
        opened(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("clicks", "message"),
    [
        ("query,sku,label\nhat,1,E\n", r"clicks\.csv:2: grade 'E' is not an integer"),
        (
            "query,sku\nhat,1\n",
            r"no column is known as the grade; the columns are query, sku; name it with qrels_columns",
        ),
        ("query_id,query,sku,label\n1,hat,1,1\n1,cap,1,1\n", r"clicks\.csv:3: query '1' has two texts, 'hat' before"),
    ],
)
def test_one_line_for_judgements_that_cannot_be_read(products, clicks, message):
    (products.parent / "clicks.csv").write_text(clicks)
    with pytest.raises(WhyrankError, match=message):
        opened(products, qrels=str(products.parent / "clicks.csv"))


def test_spreadsheets_marks_and_long_lines_are_read(products):
    long = "word " * 400_000
    products.write_bytes(f"\ufeffID;Text\r\n1;{long}\r\n2;caf\u00e9\r\n".encode())
    assert opened(products).docs == {"1": long, "2": "café"}


@pytest.mark.parametrize("missing", ["docs", "queries"])
def test_a_missing_file_is_named(products, missing):
    with pytest.raises(WhyrankError, match=f"needs {missing}=FILE"):
        opened(products, **{missing: ""})
    with pytest.raises(WhyrankError, match=r"nowhere\.csv: there is no such file or folder"):
        opened(products, **{missing: "nowhere.csv"})


def test_a_pipe_is_refused(products, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")  # a file that is none was looked for in its folder, found, and so on without end
    with pytest.raises(WhyrankError, match=r"pipe\.csv: a pipe cannot be read twice"):
        opened(products, queries=str(tmp_path / "pipe.csv"))


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@given(
    st.fixed_dictionaries({"docs": NAMES, "queries": NAMES}, optional={"doc_text": NAMES, "relevant": st.integers()})
)
def test_the_call_string_parses_back(arguments):
    assert parse_call(str(Call("files", None, arguments))) == Call("files", None, arguments)


CELL = st.text(st.characters(codec="utf-8"), max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(CELL, CELL), min_size=1), st.sampled_from(["\n", "\r\n"]))
def test_any_cell_of_a_csv_comes_back(tmp_path, cells, end):
    path = tmp_path / "cells.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator=end)
        writer.writerows([("id", "text", "note"), *((i, *row) for i, row in enumerate(cells))])
    (tmp_path / "clicks.csv").write_text(CLICKS)
    found = opened(path)
    assert found.docs == {str(i): text for i, (text, _) in enumerate(cells)}
    texts = {str(i): note for i, (_, note) in enumerate(cells) if note and not note.isascii()}
    assert {doc_id: found.fields[doc_id]["note"] for doc_id in texts} == texts


class TestFrames:
    DOCS = pa.table({"doc_id": [7, 8], "text": ["red shoe", "hat"], "price": [20.5, None]})
    QRELS = {"query_id": [1, 1], "doc_id": [7, 8], "grade": [2, 0]}

    def check(self, docs):
        found = Collection.from_frames(docs, {"query_id": [1], "query": ["shoe"]}, self.QRELS, name="shop")
        assert (found.name, found.docs, found.queries) == ("shop", {"7": "red shoe", "8": "hat"}, {"1": "shoe"})
        assert found.qrels == {"1": {"7": 2, "8": 0}}
        assert dict(found.fields) == {"7": {"price": 20.5}}

    def test_arrow_columns_and_rows(self):
        self.check(self.DOCS)
        self.check(self.DOCS.to_pydict())
        self.check(self.DOCS.to_pylist())

    @pytest.mark.parametrize("module", ["pandas", "polars"])
    def test_data_frames(self, module):
        frames = pytest.importorskip(module)
        self.check(frames.DataFrame(self.DOCS.to_pydict()))

    def test_the_recipe_for_grades_from_clicks(self):
        """Smoothed click rates of pairs that were shown often enough, in three grades around the mean rate."""
        log = [("shoe", 7, 100, 30), ("shoe", 8, 100, 2), ("hat", 8, 100, 4), ("hat", 7, 3, 3), ("hat", 8, 100, 21)]
        shown, clicked = Counter(), Counter()
        for query, doc_id, impressions, clicks in log:
            shown[query, doc_id] += impressions
            clicked[query, doc_id] += clicks
        mean = clicked.total() / shown.total()
        rates = {pair: (clicked[pair] + 10 * mean) / (n + 10) for pair, n in shown.items() if n >= 20}
        rows = [
            {"query": query, "doc_id": doc_id, "grade": (rate > mean / 2) + (rate > 1.5 * mean)}
            for (query, doc_id), rate in rates.items()
        ]
        found = Collection.from_frames(self.DOCS, rows, rows)
        assert found.queries == {"q1": "shoe", "q2": "hat"}
        assert found.qrels == {"q1": {"7": 2, "8": 0}, "q2": {"8": 1}}, "three impressions tell nothing"

    def test_mistakes(self):
        with pytest.raises(WhyrankError, match="docs: item 2: id '7' occurs twice"):
            Collection.from_frames({"id": [7, 7], "text": ["a", "b"]}, {"query": ["q"]})
        with pytest.raises(WhyrankError, match=r"docs cannot be read as a table .* give a data frame"):
            Collection.from_frames(7, {"query": ["q"]})
        with pytest.raises(WhyrankError, match="docs: no column is known as doc_text; the columns are id, n"):
            Collection.from_frames({"id": [7], "n": [1]}, {"query": ["q"]})
