"""The walks in docs/architecture.md: a command enters the modules that they name, in their order."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import whyrank as package

ROOT = Path(package.__file__).parent
PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
PARM = ("tables learn parm --target bm25 --network p --out p.parquet -c sample --query-terms 5 --doc-terms 20 "
        "--threshold 0.01 --device cpu --store none --seed 5")  # fmt: skip
COMMANDS = {
    "whyrank audit": "audit matched/length|tf bias/car-brand -r bm25 --limit 2 --out res",
    "whyrank tables learn parm": PARM,
    "whyrank fidelity": "fidelity -t ql -s bm25 --depth 5",
    "whyrank rank": "rank -r fuse(of=['bm25','ql']) --depth 2 --out run.txt",
}


def walk(title: str) -> list[str]:
    """The modules that begin the lines of a list."""
    section = PAGE.partition(f"### `{title}`\n")[2].partition("\n#")[0]
    return re.findall(r"^[0-9]+\. `([a-z0-9_/]+\.py)`", section, re.MULTILINE)


@contextmanager
def entering(wanted: list[str]) -> Iterator[list[str]]:
    """The modules that are still to be entered: each is taken off when one of its functions is called in its turn."""
    left = [str(ROOT / name) for name in wanted]

    def watch(frame, event, _):
        if event == "call" and left and frame.f_code.co_filename == left[0] and frame.f_code.co_flags & 1:
            left.pop(0)  # a function: the bodies of modules and classes have no local variables of this kind

    sys.setprofile(watch)
    try:
        yield left
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("title", [pytest.param(t, marks=pytest.mark.slow) if "parm" in t else t for t in COMMANDS])
def test_a_command_passes_through_the_modules_in_order(title, whyrank, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    modules = walk(title)
    assert len(modules) > 5
    assert len(set(modules)) == len(modules)
    with entering(modules) as left:
        code, _, err = whyrank(*COMMANDS[title].split(" "))
    assert code == 0, err
    assert [Path(name).relative_to(ROOT).as_posix() for name in left] == []
