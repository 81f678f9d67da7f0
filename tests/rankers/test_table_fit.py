"""Term tables under rankers: damaged files, the analyzer behind a table, and tables that do not fit."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from whyrank.core import BadInput, WhyrankError
from whyrank.data import open_collection
from whyrank.learners.em import bitext_of, learn_em
from whyrank.rankers import Setting, open_ranker
from whyrank.tables import TermTable, open_table
from whyrank.text import analyzers

RANKERS = ("model1", "bm25t", "qlt")
PAIRS = [("cars fast roads", "cars fast"), ("boats slow water", "boats slow"), ("cars roads", "roads fast")]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def learned(analyzer, file):
    learn_em(bitext_of(PAIRS, analyzer)).table.save(file)


class TestDamage:
    """The entries of a mapped file are not read on opening, and the compiled loops check nothing."""

    @pytest.fixture
    def whole(self, tmp_path):
        terms = [f"term{i}" for i in range(40)]
        pairs = [(q, d) for q in terms for d in terms]
        weights = np.random.default_rng(1).random(len(pairs))
        TermTable.from_triples(*zip(*pairs, strict=True), weights, analyzer="whitespace").save(tmp_path / "t.arrow")
        return tmp_path / "t.arrow"

    @pytest.mark.parametrize("ranker", RANKERS)
    @pytest.mark.parametrize(
        ("part", "value", "words"),
        [("indices", 0x3FFFFFFF, "out of range"), ("indices", -1, "out of range"), ("weights", np.nan, "no number"),
         ("weights", np.inf, "not finite"), ("weights", -1, "no number")],
    )  # fmt: skip
    def test_entries(self, whole, ranker, part, value, words):
        array = getattr(open_table(whole), part)
        content = bytearray(whole.read_bytes())
        start = content.find(array.tobytes())
        content[start : start + array.nbytes] = np.full(len(array), value, array.dtype).tobytes()
        whole.write_bytes(content)
        with pytest.raises(BadInput, match="does not match its checksum"):
            open_ranker(f"{ranker}:{whole}(stats=sample)")
        whole.write_bytes(content.replace(b"whyrank-sha256:", b"no-checksum-at-"))  # as a file of another tool
        with pytest.raises(BadInput, match=rf"t\.arrow: .*{words}.*; the file is damaged; get it again"):
            open_ranker(f"{ranker}:{whole}(stats=sample)")

    def test_a_term_that_became_another(self, whole):
        """One number fewer than terms: a loop over numbers would write beyond the last."""
        content = whole.read_bytes().replace(b"whyrank-sha256:", b"no-checksum-at-")
        whole.write_bytes(content.replace(b"term38term39", b"term38term38"))
        for ranker in RANKERS:
            with pytest.raises(BadInput, match="'term38' is in the vocabulary twice"):
                open_ranker(f"{ranker}:{whole}(stats=sample)")

    def test_any_bytes(self, whole):
        content, random = np.frombuffer(whole.read_bytes(), np.uint8), np.random.default_rng(2)
        query, texts = "term1 term2 term39", ["term1 term7 term38", "term39"]
        for _ in range(30):
            damaged = content.copy()
            damaged[random.integers(len(content), size=20)] = random.integers(256, size=20)
            whole.write_bytes(damaged.tobytes())
            for ranker in RANKERS:
                with suppress(WhyrankError):
                    opened = open_ranker(f"{ranker}:{whole}(analyzer=whitespace,stats=sample)")
                    assert np.isfinite(opened.score([query] * 2, texts)).all()


class TestAnalyzer:
    def test_another_stop_list_is_an_error(self, here):
        Path("stop.txt").write_text("slow\n")
        learned("chain(stop=stop.txt)", "t.parquet")
        made, facts = open_ranker("model1:t.parquet(lam=0)").analyzer, open_table("t.parquet").facts
        assert made.id == "chain(stop=stop.txt)"
        assert f"{facts['analyzer']}#{facts['analyzer_files']}" == made.identity
        Path("stop.txt").write_text("slow\nfast\n")
        for ranker in RANKERS:
            with pytest.raises(WhyrankError, match=r"t\.parquet was learned with chain\(stop=stop\.txt\): what lies"):
                open_ranker(f"{ranker}:t.parquet(stats=sample)")
        named = open_ranker("model1:t.parquet(lam=0,analyzer='chain(stop=stop.txt)')")
        assert named.query("fast cars")[0] == ["cars"]

    @pytest.mark.parametrize("kept", [True, False])
    def test_files_beside_the_table_are_found(self, here, monkeypatch, caplog, kept):
        for folder in ("with", "elsewhere"):
            Path(folder).mkdir()
        monkeypatch.chdir("with")
        Path("stop.txt").write_text("slow\n")
        learned("chain(stop=stop.txt)", "t.parquet")
        if not kept:
            TermTable.from_triples(["cars"], ["roads"], [0.5], analyzer="chain(stop=stop.txt)").save("t.parquet")
        monkeypatch.chdir("../elsewhere")
        file = Path("..", "with", "stop.txt")
        for where in ("../with/t.parquet", here / "with" / "t.parquet"):
            found = open_ranker(f"model1:{where}(lam=0)")
            assert found.query("slow cars")[0] == ["cars"]
            assert Path(analyzers.create(found.analyzer.id).id.split("stop=")[1].strip("')")).samefile(file)
        Path("stop.txt").write_text("cars\n")  # another one of this name, where the ranker is used
        assert open_ranker("model1:../with/t.parquet(lam=0)").query("slow cars")[0] == (
            ["cars"] if kept else ["slow"]
        )
        file.unlink()
        Path("stop.txt").unlink()
        with pytest.raises(WhyrankError, match=r"learned with chain.*stop.txt.*cannot be read.*analyzer="):
            open_ranker("model1:../with/t.parquet")
        assert not caplog.records


class TestFit:
    @pytest.fixture
    def sample(self):
        return open_collection("sample")

    @pytest.mark.parametrize("ranker", RANKERS)
    def test_few_words_with_the_same_analyzer_are_no_error(self, here, sample, caplog, ranker):
        TermTable.from_triples(["xx", "yy"], ["zz", "xx"], [0.5, 0.5], analyzer="lucene").save("t.tsv")
        open_ranker(f"{ranker}:t.tsv", Setting(sample))
        [message] = caplog.messages
        assert message.startswith(f"note: {ranker}: t.tsv: it knows 0% of the words of the ")
        assert "learned" not in message

    @pytest.mark.parametrize("ranker", RANKERS)
    def test_typed_texts_need_not_fit_a_collection(self, here, sample, caplog, ranker):
        TermTable.from_triples(["qheart"], ["qcardiac"], [0.5]).save("t.tsv")
        typed = Setting(sample, "whitespace", typed=True)
        assert open_ranker(f"{ranker}:t.tsv", typed).explain("qheart", "qcardiac").cells[0, 0] > 0
        assert not caplog.records
        with pytest.raises(WhyrankError, match="name the analyzer"):
            open_ranker(f"{ranker}:t.tsv", Setting(sample, "whitespace"))
        TermTable.from_triples(["qheart"], ["qcardiac"], [0.5], analyzer="lucene").save("t.tsv")
        open_ranker(f"{ranker}:t.tsv(analyzer=whitespace)", typed)
        assert [r.levelno for r in caplog.records] == [logging.WARNING]
        assert "learned with lucene and is looked up with whitespace" in caplog.text
