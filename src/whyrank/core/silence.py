"""Models loaded without a word."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def silent(messages: Any) -> Iterator[None]:
    """No progress bars and no reports of transformers, whose `utils.logging` is given."""
    shown, level = messages.is_progress_bar_enabled(), messages.get_verbosity()
    messages.disable_progress_bar()
    messages.set_verbosity_error()
    try:
        yield
    finally:
        messages.set_verbosity(level)
        if shown:
            messages.enable_progress_bar()
