"""What is released: one wheel that holds every file of the package and stays small enough to send."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


def test_the_wheel_is_complete_and_small(tmp_path):
    source, out = tmp_path / "source", tmp_path / "wheels"
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", source / "src", ignore=unwanted)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    out.mkdir()
    built = subprocess.run(
        [sys.executable, "-c", BUILD, out], cwd=source, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    wheel = out / built.stdout.splitlines()[-1]
    assert wheel.stat().st_size < 30e6
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = (path.relative_to(source / "src") for path in (source / "src").rglob("*") if path.is_file())
    assert {str(path) for path in files if ".egg-info" not in str(path)} <= packed
