"""What is released: a source distribution, and of it one wheel that has every file of the package and stays small."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_{}(sys.argv[1]))"


def build(kind, source, out):
    run = [sys.executable, "-c", BUILD.format(kind), out]
    built = subprocess.run(run, cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return out / built.stdout.splitlines()[-1]


def test_the_wheel_of_the_source_distribution_is_complete_and_small(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, source / folder, ignore=unwanted)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, source)
    out.mkdir()
    archive = build("sdist", source, out)
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    assert not (unpacked / "tests").exists()
    assert {"CITATION.cff", "CHANGELOG.md", "LICENSE", "README.md"} <= {path.name for path in unpacked.iterdir()}
    wheel = build("wheel", unpacked, out)
    assert wheel.stat().st_size < 30e6
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = (path.relative_to(source / "src") for path in (source / "src").rglob("*") if path.is_file())
    assert {str(path) for path in files if ".egg-info" not in str(path)} == names


def test_whatever_make_installs_for_the_demo_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [
        *project["dependencies"],
        *project["optional-dependencies"]["models"],
        *project["optional-dependencies"]["nlp"],
    ]
    pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    assert {re.split("[>=]", each)[0] for each in needed} <= pinned
