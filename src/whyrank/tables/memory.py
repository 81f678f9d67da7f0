"""How much memory may be used: `8G`, a number of bytes, or half of what the machine has."""

from __future__ import annotations

import os
import re

from whyrank.core.errors import WhyrankError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def memory_limit(given: int | str | None) -> int:
    """The limit in bytes; without one half of the machine's memory."""
    if given is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    found = _SIZE.fullmatch(str(given).strip())
    if not found or isinstance(given, bool):
        raise WhyrankError(f"memory {given!r} is no size; write a number of bytes or one such as 500M or 8G")
    return int(float(found[1]) * _UNITS[found[2].upper()])
