"""Fixtures of the scoring tests."""

from __future__ import annotations

import multiprocessing

import pytest

from whyrank.scoring import ScoreStore


@pytest.fixture
def no_workers_left():
    """Nothing runs on when a test is over."""
    yield
    assert multiprocessing.active_children() == []


@pytest.fixture
def store(tmp_path):
    """An empty score store."""
    with ScoreStore(tmp_path / "scores.sqlite") as opened:
        yield opened
