"""Fixtures of the scoring tests."""

from __future__ import annotations

import pytest

from whyrank.scoring import ScoreStore


@pytest.fixture
def store(tmp_path):
    """An empty score store."""
    with ScoreStore(tmp_path / "scores.sqlite") as opened:
        yield opened
