"""Collections in folders: our own shape, BEIR's and the hub's."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import BadInput, WhyrankError
from whyrank.data import Collection, open_collection, write_parquet, write_qrels, write_run
from whyrank.data.disk import DiskDocs

OURS = {
    "corpus.jsonl": '{"id": "a", "title": "T", "text": "one", "url": "u"}\n{"id": "b", "text": "two"}\n',
    "queries.tsv": "1\tfirst\n2\tsecond\n",
    "qrels.txt": "1 0 a 2\n1 0 b 0\n",
    "runs/bm25.top100.txt": "1 Q0 a 1 2.5 t\n1 Q0 b 2 1.5 t\n",
    "runs/other.txt": "2 Q0 b 1 1.0 t\n",
}
BEIR = {
    "corpus.jsonl": '{"_id": "a", "title": "T", "text": "one", "metadata": {}}\n{"_id": "b", "text": "two"}\n',
    "queries.jsonl": '{"_id": "1", "text": "first"}\n{"_id": "2", "text": "second"}\n{"_id": "3", "text": "third"}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\n",
    "qrels/dev.tsv": "query-id\tcorpus-id\tscore\n3\tb\t1\n2\ta\t1\n",
}


def fill(folder, files, *, packed=False):
    for name, text in files.items():
        path = folder / (f"{name}.gz" if packed else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode(), mtime=0) if packed else text.encode())
    return folder


def without(files, *names):
    return {name: text for name, text in files.items() if name not in names}


@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_is_read(tmp_path, packed):
    collection = open_collection(str(fill(tmp_path / "mine", OURS, packed=packed)))
    assert collection.name == "mine"
    assert collection.docs == {"a": "T one", "b": "two"}
    assert collection.titles == {"a": "T"}
    assert collection.queries == {"1": "first", "2": "second"}
    assert collection.qrels == {"1": {"a": 2, "b": 0}}
    assert list(collection.runs) == ["bm25.top100", "other"]
    assert collection.runs["bm25.top100"] == {"1": {"a": 2.5, "b": 1.5}}
    assert collection.notes == []


ids = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=6)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
queries = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


@given(st.dictionaries(ids, texts, min_size=1), st.dictionaries(ids, queries, min_size=1), st.data(), st.booleans())
@settings(max_examples=50)
def test_a_collection_written_to_a_folder_comes_back(tmp_path_factory, docs, posed, data, packed):
    qrels = data.draw(st.dictionaries(st.sampled_from(sorted(posed)), _about(docs, st.integers(0, 3)), min_size=1))
    run = data.draw(st.dictionaries(st.sampled_from(sorted(posed)), _about(docs, st.floats(-9, 9)), min_size=1))
    files = {
        "corpus.jsonl": "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in docs.items()),
        "queries.tsv": "".join(f"{i}\t{text}\n" for i, text in posed.items()),
    }
    folder = fill(tmp_path_factory.mktemp("folder"), files, packed=packed)
    end = ".gz" if packed else ""
    write_qrels(folder / f"qrels.txt{end}", qrels)
    write_run(folder / "runs" / f"r.txt{end}", run)
    found = open_collection(str(folder), strict=all(text.strip() for text in [*docs.values(), *posed.values()]))
    plain = Collection.of(docs, posed, qrels, runs={"r": run}, name=folder.name)
    assert (found.docs, found.queries, found.qrels, dict(found.runs), found.grades) == (
        plain.docs, plain.queries, plain.qrels, plain.runs, plain.grades
    )  # fmt: skip


def _about(docs, values):
    return st.dictionaries(st.sampled_from(sorted(docs)), values, min_size=1)


def test_splits_and_their_candidates(tmp_path):
    for split, grade in (("dev", 1), ("test", 0)):
        candidates = f'{{"id": "a", "text": "{split}"}}'
        fill(tmp_path, {f"candidates.{split}.jsonl": candidates, f"queries.{split}.tsv": f"1\t{split}"})
        fill(tmp_path, {f"qrels.{split}.txt": f"1 0 a {grade}"})
    collection = open_collection(f"{tmp_path}:test")
    assert (collection.docs, collection.queries, collection.qrels) == ({"a": "test"}, {"1": "test"}, {"1": {"a": 0}})
    assert collection.name == f"{tmp_path.name}:test"
    for spec, problem in (
        (f"{tmp_path}", r"\(dev, test\); write PATH:dev"),
        (f"{tmp_path}:tset", "did you mean 'test'"),
    ):
        with pytest.raises(BadInput, match=problem):
            open_collection(spec)


def test_the_only_split_is_read_and_noted(tmp_path):
    files = {"queries.test.tsv": "1\tx", "qrels.test.txt": OURS["qrels.txt"], "corpus.jsonl": OURS["corpus.jsonl"]}
    collection = open_collection(str(fill(tmp_path / "f", files)))
    assert collection.qrels == {"1": {"a": 2, "b": 0}}
    assert collection.notes == ["split 'test' was read, the only one in f"]


def test_other_files_that_serve(tmp_path):
    files = without(OURS, "corpus.jsonl", "qrels.txt") | {"passages.jsonl": '{"docno": "a", "text": "p"}'}
    collection = open_collection(str(fill(tmp_path / "f", files)))
    assert (collection.docs, collection.qrels) == ({"a": "p"}, {})
    assert collection.notes == ["no qrels.txt in f: nothing is judged"]
    fill(tmp_path / "f", {"qrels.txt": "query-id\tcorpus-id\tscore\n1\ta\t2\n"})
    assert open_collection(str(tmp_path / "f")).qrels == {"1": {"a": 2}}


@pytest.mark.parametrize(
    ("files", "split", "problem"),
    [
        (without(OURS, "corpus.jsonl"), "", r"the folder has no corpus\.jsonl or passages\.jsonl"),
        (without(OURS, "queries.tsv"), "", r"the folder has no queries\.tsv"),
        ({"queries.dev.tsv": "1\tx"}, "", r"no corpus\.jsonl or passages\.jsonl or candidates\.dev\.jsonl"),
        (OURS, ":dev", "there is no split 'dev'; it has no splits"),
        (BEIR, ":train", "there is no split 'train'; known: dev, test"),
        (without(BEIR, "qrels/test.tsv"), "", "there is no split 'test'; known: dev"),
    ],
)
def test_missing_files(tmp_path, files, split, problem):
    with pytest.raises(BadInput, match=problem):
        open_collection(f"{fill(tmp_path / 'f', files)}{split}")


def test_runs_are_read_on_first_use_and_once(tmp_path):
    fill(tmp_path, OURS | {"runs/broken.txt": "1 Q0 a\n"})
    runs = open_collection(str(tmp_path)).runs
    assert "broken" in runs
    assert runs["other"] is runs["other"]
    with pytest.raises(BadInput, match=r"broken\.txt:1: expected 6 columns"):
        runs["broken"]
    with pytest.raises(KeyError):
        runs["none"]


def test_unknown_ids_are_noted_or_with_strict_fatal(tmp_path):
    qrels = OURS["qrels.txt"] + "".join(f"1 0 z{i} 0\n" for i in range(7)) + "9 0 a 1\n"
    fill(tmp_path, OURS | {"qrels.txt": qrels, "runs/r.txt": "1 Q0 a 1 2.5 t\n1 Q0 y 2 1.5 t\n"})
    collection = open_collection(str(tmp_path))
    assert collection.notes == [
        "qrels.txt: queries that the collection does not have: 1 (9)",
        "qrels.txt: documents that the collection does not have: 7 (z0, z1, z2, z3, z4, …)",
    ]
    assert collection.qrels["1"]["z3"] == 0
    assert len(collection.runs["r"]["1"]) == 2
    assert collection.notes[2:] == ["r.txt: documents that the collection does not have: 1 (y)"]
    with pytest.raises(BadInput, match=r"qrels\.txt: query '9' is not in the collection"):
        open_collection(str(tmp_path), strict=True)
    fill(tmp_path, {"qrels.txt": OURS["qrels.txt"]})
    runs = open_collection(str(tmp_path), strict=True).runs
    with pytest.raises(BadInput, match=r"r\.txt: document 'y' is not in the collection"):
        runs["r"]


@pytest.mark.parametrize("limit", ["1G", "10"])
def test_an_empty_text_is_noted_or_with_strict_fatal(tmp_path, monkeypatch, limit):
    monkeypatch.setenv("WHYRANK_MEMORY_LIMIT", limit)
    (tmp_path / "corpus.jsonl").write_text('{"id": "a", "text": "one"}\n\n{"id": "b", "text": " "}\n')
    (tmp_path / "queries.tsv").write_text("1\tone\n2\t\n")
    for _ in range(2):  # the second time, a large corpus has a store
        assert open_collection(str(tmp_path)).notes[:2] == [
            "corpus.jsonl: documents with an empty text: 1 (b)",
            "queries.tsv: queries with an empty text: 1 (2)",
        ]
    with pytest.raises(BadInput, match=r"queries\.tsv:2: .*'2' is empty"):
        open_collection(str(tmp_path), strict=True)
    (tmp_path / "queries.tsv").write_text("1\tone\n")
    with pytest.raises(BadInput, match=r"corpus\.jsonl:3: .*'b' is empty"):
        open_collection(str(tmp_path), strict=True)


def test_a_large_corpus_stays_on_disk(tmp_path, monkeypatch):
    fill(tmp_path / "f", OURS)
    memory = open_collection(str(tmp_path / "f"))
    monkeypatch.setenv("WHYRANK_MEMORY_LIMIT", "10")
    collection = open_collection(str(tmp_path / "f"))
    assert isinstance(collection.docs, DiskDocs)
    assert (collection.docs, collection.titles, collection.notes) == (memory.docs, memory.titles, memory.notes)
    travelled = pickle.loads(pickle.dumps(collection))
    assert travelled.docs == memory.docs
    assert travelled.runs["other"] == memory.runs["other"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_beir_folder_is_seen_and_read(tmp_path, packed):
    fill(tmp_path / "f", BEIR, packed=packed)
    collection = open_collection(str(tmp_path / "f"))
    assert collection.name == "f:test"
    assert collection.docs == {"a": "T one", "b": "two"}
    assert collection.queries == {"1": "first"}
    assert collection.qrels == {"1": {"a": 2, "b": 0}}
    assert collection.notes == ["queries of other splits, left out: 2"]
    with pytest.raises(BadInput, match=r"it needs corpus\.jsonl, queries\.jsonl and qrels/SPLIT"):
        open_collection(f"beir:{fill(tmp_path / 'g', OURS)}")
    dev = open_collection(f"beir:{tmp_path / 'f'}:dev")
    assert (dev.queries, dev.qrels) == ({"2": "second", "3": "third"}, {"3": {"b": 1}, "2": {"a": 1}})


class TestHub:
    """Retrieval sets as tables by split: the layout of MTEB on the Hugging Face hub, and what `datasets` saves."""

    CORPUS = [{"_id": "d1", "title": "Eggs", "text": "Boil them."}, {"_id": "d2", "title": "", "text": "A shop."}]
    QUERIES = [{"_id": "q1", "text": "how long"}, {"_id": "q2", "text": "where"}]
    QRELS = {"test": [("q1", "d1", 1)], "dev": [("q2", "d2", 1), ("q2", "d1", 0)]}

    @pytest.fixture
    def hub(self, tmp_path):
        """Write parts, each a list of rows under a file name."""

        def write(parts):
            for name, rows in parts.items():
                path = tmp_path / "hub" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                table = pa.Table.from_pylist(rows)
                if path.suffix == ".parquet":
                    write_parquet(table, path)
                elif path.suffix == ".arrow":
                    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
                        stream.write_table(table)
                else:
                    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            return str(tmp_path / "hub")

        return write

    def judged(self, split):
        return [dict(zip(("query-id", "corpus-id", "score"), row, strict=True)) for row in self.QRELS[split]]

    def check(self, folder, split):
        found = open_collection(f"{folder}:{split}" if split else folder)
        chosen = split or "test"
        assert found.name == f"hub:{chosen}"
        assert found.docs == {"d1": "Eggs Boil them.", "d2": "A shop."}
        assert found.queries == {q: t for q, t in {"q1": "how long", "q2": "where"}.items() if q in found.qrels}
        assert [(q, d, grade) for q, judged in found.qrels.items() for d, grade in judged.items()] == self.QRELS[
            chosen
        ]

    @pytest.mark.parametrize("split", ["", "test", "dev"])
    def test_shards_of_parquet(self, hub, split):
        parts = {f"corpus/corpus-0000{i}-of-00002.parquet": [row] for i, row in enumerate(self.CORPUS)}
        parts |= {"queries/queries-00000-of-00001.parquet": self.QUERIES}
        parts |= {f"qrels/{each}-00000-of-00001.parquet": self.judged(each) for each in self.QRELS}
        self.check(hub(parts), split)

    @pytest.mark.parametrize("split", ["", "dev"])
    def test_json_lines_beside_folders(self, hub, split):
        parts = {"corpus.jsonl": self.CORPUS, "queries.jsonl": self.QUERIES}
        self.check(hub(parts | {f"data/{each}.jsonl": self.judged(each) for each in self.QRELS}), split)

    @pytest.mark.parametrize("split", ["", "dev"])
    def test_saved_to_disk(self, hub, split):
        parts = {"corpus/data-00000-of-00001.arrow": self.CORPUS, "queries/data-00000-of-00001.arrow": self.QUERIES}
        parts |= {f"default/{each}/data-00000-of-00001.arrow": self.judged(each) for each in self.QRELS}
        self.check(hub(parts), split)

    def test_mistakes(self, hub):
        parts = {"corpus.parquet": self.CORPUS, "queries.parquet": self.QUERIES}
        folder = hub(parts | {f"qrels/{each}.parquet": self.judged("dev") for each in ("dev", "train")})
        with pytest.raises(WhyrankError, match=r"there are several splits \(dev, train\); write PATH:dev"):
            open_collection(folder)
        with pytest.raises(WhyrankError, match="there is no split 'tset'"):
            open_collection(f"{folder}:tset")
        assert len(open_collection(f"{folder}:train").queries) == 1

    def test_without_judgements_and_damaged(self, hub):
        folder = hub({"corpus.parquet": self.CORPUS, "queries.parquet": self.QUERIES})
        assert (len(open_collection(folder).queries), open_collection(folder).qrels) == (2, {})
        Path(folder, "corpus.parquet").write_bytes(b"PAR1 no such thing")
        with pytest.raises(WhyrankError, match=r"corpus\.parquet: cannot be read as parquet"):
            open_collection(folder)
