"""Probes share one cache, so that texts are annotated once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for the whole run; worker processes of one run share it."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if base.name.startswith("popen-") else base) / "probe-cache"


@pytest.fixture(autouse=True)
def private_cache(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of a cache for each test: no test here counts scores."""
    monkeypatch.setenv("WHYRANK_CACHE", str(shared_cache))
