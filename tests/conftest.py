"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long one example takes says nothing here: the first one may import or compile, and tests run side by side.
settings.register_profile("whyrank", deadline=None)
settings.load_profile("whyrank")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test asks the network for a model


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real collections that WHYRANK_DATA names."""
    given = os.environ.get("WHYRANK_DATA")
    if not given or not Path(given).is_dir():
        pytest.skip("set WHYRANK_DATA to a folder of real collections to run this test")
    return Path(given)


@pytest.fixture(autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a cache folder of its own, so that no test is answered by another's scores."""
    monkeypatch.setenv("WHYRANK_CACHE", str(tmp_path_factory.mktemp("cache")))
