"""A package that is installed for real adds one of each thing, and its broken part harms nobody."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("plugin")
HERE = Path(__file__).parent
BROKEN = "probe 'toy/broken' from package 'whyrank-toy-plugin' does not load"


@pytest.fixture(scope="session")
def installed(tmp_path_factory) -> Path:
    """The folder that the toy plugin is installed in, by pip and without a network."""
    if not all(map(find_spec, ("pip", "setuptools"))):
        pytest.skip("install pip and setuptools to run this test")
    source, target = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("installed")
    shutil.copytree(HERE, source)  # building leaves files beside the source
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    done = python("pip", "install", "--quiet", *offline, "--target", target, source)
    assert done.returncode == 0, done.stderr
    return target


def python(module: str, *arguments: object, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a module in a process of its own, with one more folder to import from."""
    folders = [str(path)] if path else []
    given = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders + given)}
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)


def whyrank(*arguments: object, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    return python("whyrank.cli.main", *arguments, path=path)


def test_the_list_shows_what_the_package_brings_and_not_its_broken_part(installed):
    done = whyrank("list", "--json", path=installed)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rankers"]["toy-overlap"] == "Number, or share, of the query's words that occur in the text."
    assert found["characteristics"]["digits"] == "more digits"
    assert found["analyzers"]["toy-letters"] == "Runs of letters in lower case, up to a length."
    assert found["collections"]["toy"] == "Two queries and six documents about rooms."
    assert "axiom/toy-short" in found["axioms"]
    assert "toy/exclamation" in found["probes"]
    assert {"matched/digits|length", "matched/relevance|digits"} <= set(found["probes"])
    assert "toy/broken" not in found["probes"]
    assert done.stderr.count(BROKEN) == 1


@pytest.fixture(scope="session")
def answered(installed) -> subprocess.CompletedProcess[str]:
    """Probes of the package, by glob and by call string, put to its ranker and to one of ours."""
    asked = ["matched/digits|length", "toy/*"]
    asked += ["matched/digits|length(analyzer='toy-letters(longest=9)')", "toy/exclamation(mark='?')"]
    rankers = ["--ranker", "toy-overlap", "--ranker", "bm25"]
    options = ["--collection", "toy", "--delta", "0", "--json", "--store", "none"]
    return whyrank("audit", *asked, *rankers, *options, path=installed)


def test_probes_of_the_package_run_end_to_end(answered):
    assert answered.returncode == 0, answered.stderr
    found = json.loads(answered.stdout)
    assert [f["ranker"] for f in found] == ["toy-overlap", "bm25"] * 4
    assert {f["collection"] for f in found} == {"toy"}
    matched, marked, by_letters, asked = found[::2]
    assert (matched["study"], marked["study"]) == ("matched/digits|length", "toy/exclamation")
    assert (marked["meaning"], asked["meaning"]) == tuple(
        f"prefers the text without {mark!r} at its end" for mark in "!?"
    )
    # without stop words d4 and d6 have three words each, and both have the kitchen of the query
    assert counts(matched) == (1, 0, 1, 0)
    # as letters d1 and d3 have three words each, and "room is upstairs" beats "room and room"
    assert counts(by_letters) == (1, 1, 0, 0)
    # "upstairs!" is no word of the query any more in two of the six texts
    assert counts(marked) == counts(asked) == (6, 2, 4, 0)


def test_axioms_of_the_package_run_end_to_end(installed):
    rankers = ["--ranker", "toy-overlap", "--ranker", "bm25"]
    options = ["--collection", "toy", "--json", "--store", "none"]
    done = whyrank("audit", "toy-short", "toy-short(length=1)", *rankers, *options, path=installed)
    assert done.returncode == 0, done.stderr
    whole, near = json.loads(done.stdout)[::2]
    assert (whole["study"], near["study"]) == ("axiom/toy-short", "axiom/toy-short(length=1)")
    assert (whole["meaning"], whole["conclusion"]) == ("prefers the shorter text", "strict")
    # without stop words d2 is shorter than d1, d1 than d3, and d5 than d4 and d6; d1 and d2 have the same words of q1
    assert counts(whole) == (5, 4, 1, 0)
    # d3 has two words more than d2
    assert counts(near) == (4, 3, 1, 0)


def test_a_table_learner_of_the_package_is_a_command(installed, tmp_path):
    out = tmp_path / "t.tsv"
    options = ["--weight", "0.5", "--without", "is", "--without", "the", "--upper", "-c", "toy"]
    done = whyrank("tables", "learn", "toy-pairs", *options, "--out", out, path=installed)
    assert done.returncode == 0, done.stderr
    shown = whyrank("tables", "show", out, "UPSTAIRS", "--json", path=installed)
    assert sorted(json.loads(shown.stdout)["UPSTAIRS"]["doc_terms"]) == [
        ["101", 0.5],
        ["ROOM", 0.5],
        ["UPSTAIRS", 0.5],
    ]
    told = whyrank("tables", "learn", "toy-pairs", "--help", path=installed).stdout
    assert all(words in told for words in ("Every word of a query", "--weight", "the weight of each entry"))
    assert "toy-pairs" in whyrank("tables", "learn", "--help", path=installed).stdout
    assert whyrank("tables", "learn", "toy-pairs", "--out", out).returncode == 2, "without the package"


def counts(finding: dict) -> tuple[int, ...]:
    return tuple(finding[name] for name in ("n", "positive", "neutral", "negative"))


def test_the_broken_part_is_left_out_with_one_warning(answered, installed):
    assert answered.stderr.count(BROKEN) == 1
    done = whyrank("audit", "toy/broken", "--collection", "toy", path=installed)
    assert done.returncode == 2
    assert "unknown probe or axiom or bias study 'toy/broken'" in done.stderr


def test_the_package_keeps_the_contracts(installed):
    done = python("pytest", "-q", "-p", "no:cacheprovider", HERE / "toy_contracts.py", path=installed)
    assert done.returncode == 0, done.stdout
    assert "failed" not in done.stdout
