"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from whyrank.cli.main import main

# How long one example takes says nothing here: the first one may import or compile, and tests run side by side.
# Where CI is set, the examples are the same in every run, as in the profile that Hypothesis has for that.
settings.register_profile("whyrank", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("whyrank")
NUMBERS = count()
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test asks the network for a model


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real collections that WHYRANK_DATA names."""
    given = os.environ.get("WHYRANK_DATA")
    if not given or not Path(given).is_dir():
        pytest.skip("set WHYRANK_DATA to a folder of real collections to run this test")
    return Path(given)


@pytest.fixture(scope="session")
def annotations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where texts are annotated once for the whole run, by all its processes."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / "annotations"
    folder.mkdir(exist_ok=True)
    return folder / "annotations.sqlite"


@pytest.fixture(autouse=True)
def private_cache(
    annotations: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each test has a cache folder of its own but for annotations, so that no test is answered by another's scores."""
    folder = tmp_path_factory.getbasetemp() / "caches" / str(next(NUMBERS))
    folder.mkdir(parents=True)
    (folder / annotations.name).symlink_to(annotations)
    monkeypatch.setenv("WHYRANK_CACHE", str(folder))


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """Ctrl-C is an exception, whether the tests were started in the background or an interrupted command ran before."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)


@pytest.fixture
def whyrank(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process; gives exit code, standard output and standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["whyrank", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run
