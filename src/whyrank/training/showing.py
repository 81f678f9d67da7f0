"""What a person at a terminal sees of a training run while it goes on."""

from __future__ import annotations

from whyrank.core.progress import Progress


class Bar(Progress):
    """A progress line that makes room for other lines."""

    def clear(self) -> None:
        """Take the line away; the next step draws it again."""
        self.__exit__(None, None, None)
