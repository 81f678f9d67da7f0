"""Which rankers `whyrank audit` asks when none are named, with and without the packages of neural models."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from refusals import one_line
from whyrank.cli import audit
from whyrank.cli.audit import AuditCommand
from whyrank.rankers import open_ranker
from whyrank.scoring import ScoreStore
from whyrank.scoring.engine import identity_of
from whyrank.studies import Catalogue
from whyrank.studies.axioms import axioms

TEXTS = {
    "d1": "Boil an egg for seven minutes. Then cool it in cold water.",
    "d2": "Egg, egg and egg again. Our shop sells only the egg.",
    "d3": "Seven minutes of boiling give a soft yolk. Ten give a firm one.",
}


@pytest.fixture
def kitchen(tmp_path):
    """A collection of one query and three texts."""
    folder = tmp_path / "kitchen"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in TEXTS.items()))
    (folder / "queries.tsv").write_text("q1\thow long to boil an egg\n")
    (folder / "qrels.txt").write_text("q1 0 d1 2\nq1 0 d2 0\nq1 0 d3 1\n")
    return folder


@pytest.fixture
def without(monkeypatch):
    """Make a package look as if it were not installed."""

    def hide(*names):
        monkeypatch.setattr(audit, "find_spec", lambda name: None if name in names else find_spec(name))

    return hide


@pytest.fixture
def axioms_alone(monkeypatch):
    """An audit of few studies, which need no parser."""
    monkeypatch.setattr("whyrank.studies.catalogue.everything", lambda: Catalogue(axioms))


def asked(out) -> dict[str, set[str]]:
    """The rankers in the findings, with the studies that each was asked."""
    found: dict[str, set[str]] = {}
    for finding in json.loads(out):
        found.setdefault(finding["ranker"], set()).add(finding["study"])
    return found


@pytest.mark.usefixtures("axioms_alone")
def test_the_neural_ranker_is_asked_all_that_the_others_are(whyrank, kitchen, tmp_path):
    pytest.importorskip("transformers")
    store, query = tmp_path / "s.sqlite", "how long to boil an egg"
    code, out, err = whyrank("audit", "-c", kitchen, "--out", tmp_path / "r", "--json", "--store", store)
    assert code == 0, err
    assert "whyrank[models]" not in err
    studies = asked(out)
    assert list(studies) == ["bm25", "ql", "cross:bundled"]
    assert studies["bm25"] == studies["ql"] == studies["cross:bundled"]
    assert all(ranker in (tmp_path / "r" / "report.html").read_text() for ranker in studies)
    model = open_ranker("cross:bundled")
    with ScoreStore(store) as opened:
        kept = opened.get(identity_of(model), query, TEXTS.values())
    expected = model.score([query] * len(TEXTS), list(TEXTS.values()))
    assert [kept[text] for text in TEXTS.values()] == pytest.approx(list(expected), abs=1e-5)


@pytest.mark.parametrize("package", ["torch", "transformers", "tokenizers", "safetensors"])
def test_without_its_packages_one_note_says_how_to_get_it(without, package):
    without(package)
    asked, [note] = AuditCommand(tolerance="0").with_defaults()
    assert asked.ranker == ("bm25", "ql")
    assert note.startswith("cross:bundled")
    assert f"needs {package}; " in note
    assert note.endswith("pip install 'whyrank[models]'")


@pytest.mark.usefixtures("axioms_alone")
def test_without_its_packages_the_audit_runs(whyrank, kitchen, tmp_path, without):
    without("torch")
    code, out, err = whyrank("audit", "-c", kitchen, "--out", tmp_path / "r", "--json")
    assert (code, list(asked(out))) == (0, ["bm25", "ql"]), err
    assert "pip install 'whyrank[models]'" in err


def test_rankers_that_are_named_are_all_that_is_asked(without):
    without("torch")
    asked, notes = AuditCommand(ranker=("ql",), tolerance="0").with_defaults()
    assert (asked.ranker, notes) == (("ql",), [])


def test_a_result_folder_is_written_where_no_study_is_named():
    assert [AuditCommand(study=names).with_defaults()[0].out for names in ((), ("TFC1",))] == [
        "whyrank-results",
        None,
    ]


def test_a_neural_ranker_that_is_named_must_be_there(whyrank, kitchen, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "pip install 'whyrank[models]'" in one_line(whyrank("audit", "-c", kitchen, "-r", "cross:bundled"))


def test_whether_it_is_there_is_found_out_without_importing_it():
    code = (
        "import sys; from whyrank.cli.audit import AuditCommand; "
        "print(len(AuditCommand().with_defaults()[0].ranker), [m for m in ('torch', 'transformers', 'tokenizers') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    count = 3 if find_spec("torch") and find_spec("transformers") else 2
    assert found.stdout == f"{count} []\n"


@pytest.mark.slow
def test_the_demo(whyrank, tmp_path):
    """What `make demo` runs: every study of the sample, for three rankers."""
    pytest.importorskip("transformers")
    [command] = re.findall(r"whyrank (audit .*) --out", (Path(__file__).parents[2] / "Makefile").read_text())
    code, out, err = whyrank(*command.split(), "--out", tmp_path / "demo-report", "--json")
    assert code == 0, err
    studies = asked(out)
    assert [name.partition("(")[0] for name in studies] == ["bm25", "ql", "cross:bundled"]
    assert min(map(len, studies.values())) > 70
    assert all(finding["nonfinite"] == 0 for finding in json.loads(out))
