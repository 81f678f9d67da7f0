"""Fixtures of the scoring tests."""

from __future__ import annotations

import pytest

from whyrank.core import Processes
from whyrank.scoring import ScoreStore


@pytest.fixture
def no_workers_left():
    """The worker processes of a test end with it."""
    yield
    Processes().close()


@pytest.fixture
def store(tmp_path):
    """An empty score store."""
    with ScoreStore(tmp_path / "scores.sqlite") as opened:
        yield opened
