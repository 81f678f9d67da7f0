"""Randomness that is declared: a seed and what it is for, never the global generator."""

from __future__ import annotations

import hashlib

import numpy as np


def seed_for(seed: int, *purpose: str) -> int:
    """A 64-bit seed that depends on the declared seed and on what it is for, not on any order."""
    text = "\x1f".join((str(seed), *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def generator(seed: int, *purpose: str) -> np.random.Generator:
    """A numpy generator for one purpose."""
    return np.random.default_rng(seed_for(seed, *purpose))
