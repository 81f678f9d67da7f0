"""Term tables on disk: nothing is lost in any format, nothing half is read, and mapping reads no entries."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from pyarrow.feather import write_feather
from term_table_samples import as_dict, assert_same, generated, tables

from whyrank.core import BadInput, WhyrankError
from whyrank.tables import TermTable, open_table

SUFFIXES = (".parquet", ".arrow", ".tsv", ".tsv.gz")
COLUMNS = ["query_term", "document_term", "weight"]
ENTRIES = {("car", "auto"): 0.5, ("car", "car"): 0.25, ("#cat", "kit\tten"): 0.125}


def small(counts=(7, 8, 9)):
    table = TermTable.from_triples([q for q, _ in ENTRIES], [d for _, d in ENTRIES], list(ENTRIES.values()), learner="em(5)")  # fmt: skip
    return TermTable(table.query_terms, table.doc_terms, table.indptr, table.indices, table.weights, table.facts, counts)  # fmt: skip


def refused(path, *words):
    with pytest.raises(BadInput) as caught:
        open_table(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert all(word in message for word in words), message
    return message


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(tables())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_is_lost(tmp_path, suffix, drawn):
    path = tmp_path / f"table{suffix}"
    drawn[0].save(path)
    found = open_table(path)
    assert_same(found, drawn[0])
    again = tmp_path / f"again{suffix}"
    found.save(again)
    assert again.read_bytes() == path.read_bytes()


def test_the_content_says_the_format(tmp_path):
    for suffix in SUFFIXES:
        small().save(tmp_path / f"x{suffix}")
        renamed = (tmp_path / f"x{suffix}").rename(tmp_path / "plain name: a:b")
        assert_same(open_table(renamed), small())


def test_text_as_people_read_it(tmp_path):
    small().save(tmp_path / "t.tsv")
    assert (tmp_path / "t.tsv").read_text() == (
        '# whyrank term table 1\n# entries: 3\n# facts: {"learner": "em(5)"}\n'
        '# document_terms: ["auto", "car", "kit\\tten"]\n# counts: [7, 8, 9]\n'
        "car\tauto\t0.5\ncar\tcar\t0.25\n\\#cat\tkit\\tten\t0.125\n"
    )
    small(None).save(tmp_path / "t.tsv")
    assert "terms" not in (tmp_path / "t.tsv").read_text()


def test_parquet_is_three_columns_for_other_tools(tmp_path):
    small().save(tmp_path / "t.parquet")
    rows = pq.read_table(tmp_path / "t.parquet").to_pylist()
    assert [tuple(row) for row in rows] == [tuple(COLUMNS)] * 3
    assert {(r["query_term"], r["document_term"]): r["weight"] for r in rows} == ENTRIES


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_cut_is_noticed(tmp_path, suffix):
    small().save(tmp_path / f"t{suffix}")
    whole, cut = (tmp_path / f"t{suffix}").read_bytes(), tmp_path / f"cut{suffix}"
    ends = {
        *range(12),
        *range(0, len(whole), 7 if suffix in ".parquet.arrow" else 1),
        *range(len(whole) - 40, len(whole)),
    }
    for size in sorted(ends):
        cut.write_bytes(whole[:size])
        refused(cut)


def test_no_file_and_no_table(tmp_path):
    refused(tmp_path / "none.tsv", "no such file")
    refused(tmp_path, "cannot be read")
    with pytest.raises(WhyrankError, match=r"written as \.parquet, \.arrow, \.tsv, \.tsv\.gz"):
        small().save(tmp_path / "t.csv")
    with pytest.raises(WhyrankError, match="plain values"):
        TermTable.from_triples(["a"], ["b"], [1], odd=object()).save(tmp_path / "t.tsv")
    assert not list(tmp_path.iterdir())


def test_foreign_text(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_bytes(b"\xef\xbb\xbf# a comment\n# another\nquery_term\tdocument_term\tweight\r\nb\ty\\t\t1e-3\r\n\r\na\t\"x\t2\r\n#a\tx\t3")  # fmt: skip
    table = open_table(path)
    assert as_dict(table) == {("b", "y\\t"): float(np.float32(1e-3)), ("a", '"x'): 2, ("#a", "x"): 3}
    path.write_text("#tag\tx\t0.5\n")
    assert as_dict(open_table(path)) == {("#tag", "x"): 0.5}
    path.write_bytes(gzip.compress(b"b\tx\t1\na\tx\t2\nb\ta\t3\n"))
    table = open_table(path)
    assert list(table.query_terms) == ["b", "a"]
    assert table.facts == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [("a\tb\t1\na b 2\n", (":2: ", "3 columns, got 1", "tabs between")), ("a\tb\t1\tc\n", (":1: ", "3 columns, got 4")),
     ("# x\n\na\tb\tmuch\n", (":3: ", "'much'")), ("a\tb\t1\n\nc\td\tnan\n", (":3: the weight nan",)),
     ("a\tb\tinf\n", (":1: the weight inf",)), ("a\tb\t1e39\n", (":1: the weight inf is no finite number",)), ("a\tb\t-0.5\n", (":1: the weight -0.5",)),
     ("a\tb\t1\n\tc\t1\n", ("a query term is empty",)), ("a\tb\t1\nc\td\t1\na\tb\t2\n", ("the pair 'a', 'b' comes twice",)), ("# only this\n", ("empty",)), ("\n\n", ("empty",))],
)  # fmt: skip
def test_text_that_is_wrong(tmp_path, text, words):
    (tmp_path / "t.tsv").write_text(text)
    refused(tmp_path / "t.tsv", *words)


@pytest.mark.parametrize("write", [pq.write_table, write_feather])
def test_foreign_columns(tmp_path, write):
    columns = {"query_term": ["b", "a", "b"], "document_term": ["x", "x", "a"], "weight": [1.0, 2.0, 3.0], "more": [1, 2, 3]}  # fmt: skip
    write(pa.table(columns), tmp_path / "t")
    assert as_dict(open_table(tmp_path / "t")) == {("b", "x"): 1, ("a", "x"): 2, ("b", "a"): 3}
    bad = {"weight": [1.0, None, 3.0], "query_term": ["a", None, "b"], "document_term": ["x", "", "y"]}
    for name, values in bad.items():
        write(pa.table({**columns, name: values}), tmp_path / "t")
        refused(tmp_path / "t", "missing" if None in values else "empty")
    for name, values, words in (
        ("weight", ["1", "2", "3"], "numbers"),
        ("query_term", [1, 2, 3], "int64 instead of text"),
    ):
        write(pa.table({**columns, name: values}), tmp_path / "t")
        refused(tmp_path / "t", words)
    write(pa.table({**columns, "weight": [1.0, float("nan"), 3.0]}), tmp_path / "t")
    refused(tmp_path / "t", "the weight nan")
    write(pa.table({**columns, "query_term": ["b", "a", "b"], "document_term": ["x", "x", "x"]}), tmp_path / "t")
    refused(tmp_path / "t", "'b', 'x' comes twice")
    write(pa.table({"query_term": ["a"], "weight": [1.0]}), tmp_path / "t")
    refused(tmp_path / "t", "there is no column 'document_term'")


def test_vocabulary_and_rows_that_contradict_each_other(tmp_path):
    small().save(tmp_path / "t.parquet")
    file = pq.ParquetFile(tmp_path / "t.parquet")
    rows = file.read().to_pylist()
    rows[1]["query_term"] = "lorry"
    table = pa.Table.from_pylist(rows).replace_schema_metadata(file.metadata.metadata)
    pq.write_table(table, tmp_path / "t.parquet")
    refused(tmp_path / "t.parquet", "'lorry' is not in the vocabulary of the file")
    pq.write_table(table.slice(2), tmp_path / "t.parquet")  # fewer rows are fine: the terms are known
    assert as_dict(open_table(tmp_path / "t.parquet")) == {("#cat", "kit\tten"): 0.125}


MEASURED = """
import json, sys, time
from pathlib import Path
import pyarrow.ipc
from whyrank.tables import open_table
def resident(): return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
small = open_table(sys.argv[1]).doc_terms_for("q1")
before, seconds = resident(), []
for _ in range(3):
    start = time.process_time()
    table = open_table(sys.argv[2])
    seconds.append(time.process_time() - start)
opened = resident()
total = float(table.weights.sum(dtype="f8")) + int(table.indices.max())
print(json.dumps([min(seconds), opened - before, resident() - before]))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_mapping_does_not_read_the_entries(tmp_path):
    generated(1000, 100, 100).save(tmp_path / "small.arrow")
    generated(5_000_000).save(tmp_path / "large.arrow")
    size = (tmp_path / "large.arrow").stat().st_size
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "small.arrow"), str(tmp_path / "large.arrow")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, opened, read = json.loads(done.stdout)
    assert opened < size / 5
    assert read > size * 3 / 4  # what is used is read: the measure can tell the difference
    assert seconds < 0.1


def test_a_mapped_table_outlives_its_file(tmp_path):
    small().save(tmp_path / "t.arrow")
    table = open_table(tmp_path / "t.arrow")
    generated(1000, 10, 200).save(tmp_path / "t.arrow")
    assert_same(table, small())
    (tmp_path / "t.arrow").unlink()
    assert table.by_doc.weights.tolist() == [0.5, 0.25, 0.125]


def test_arrow_parts_that_do_not_fit(tmp_path):
    small().save(tmp_path / "t.arrow")
    reader = pa.ipc.open_file(tmp_path / "t.arrow")
    batch = reader.read_all()
    for name, value, words in (("indptr", [[0, 2]], "row starts"), ("weights", [[1.0, 2.0, 3.0]], "type double"), ("counts", [[1]], "counts")):  # fmt: skip
        changed = batch.set_column(batch.column_names.index(name), name, pa.array(value, pa.large_list(pa.array(value[0]).type)))  # fmt: skip
        with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink, pa.ipc.new_file(sink, changed.schema) as writer:
            writer.write_table(changed.replace_schema_metadata(batch.schema.metadata))
        refused(tmp_path / "t.arrow", words)


def test_entries_of_a_mapped_file_are_checked_when_asked(tmp_path):
    table = generated(1000, 10, 200)
    table.save(tmp_path / "t.arrow")
    assert_same(open_table(tmp_path / "t.arrow", check=True), table)
    raw = (tmp_path / "t.arrow").read_bytes()
    weight = table.weights[500:510].tobytes()
    raw = raw.replace(weight, np.full(10, -1, dtype=np.float32).tobytes())
    (tmp_path / "t.arrow").write_bytes(raw)
    refused(tmp_path / "t.arrow", "does not match its checksum")
    (tmp_path / "t.arrow").write_bytes(raw.replace(b"whyrank-sha256:", b"another-sha256:"))
    assert open_table(tmp_path / "t.arrow").weights[500] == -1
    with pytest.raises(BadInput, match="the weight -1"):
        open_table(tmp_path / "t.arrow", check=True)


@pytest.mark.parametrize("suffix", [".arrow", ".parquet", ".tsv.gz"])
def test_a_flipped_bit_is_an_error_or_changes_nothing(tmp_path, suffix):
    random, file, table = np.random.default_rng(1), tmp_path / f"table{suffix}", generated(6000, 20, 900)
    table.save(file)
    whole = np.frombuffer(file.read_bytes(), np.uint8)
    for _ in range(150):
        damaged = whole.copy()
        damaged[random.integers(len(whole))] ^= np.uint8(1 << random.integers(8))
        file.write_bytes(damaged.tobytes())
        with suppress(WhyrankError):
            found = open_table(file, check=True)
            assert (found.digest, dict(found.facts)) == (table.digest, dict(table.facts))
