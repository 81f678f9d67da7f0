"""What is left when a command is stopped: each says it where it begins to keep something."""

from __future__ import annotations

SCORES = "scores that were stored are kept"
TRAINING = "checkpoints of the training are kept"
BLOCKS = "blocks that are scored are kept"
_left: list[str] = []


def keeps(what: str) -> None:
    """From now on a stop leaves this, and the same command goes on from there."""
    _left.append(f"{what}, and the same command goes on from there")


def keeps_nothing(remedy: str) -> None:
    """From now on a stop leaves nothing; `remedy` says how it would."""
    _left.append(f"nothing is kept; {remedy}")


def left() -> str:
    """What a stop leaves now."""
    return _left[-1] if _left else "nothing was kept so far"
