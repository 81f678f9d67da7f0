"""Short names that are safe as file names and as element ids on any system."""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256

_UNSAFE = re.compile(r"[^a-z0-9]+")


def slug(*parts: str, limit: int = 48) -> str:
    """A readable name of lower-case letters, digits and dashes that ends in a hash of the full parts."""
    digest = sha256("".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    words = [_readable(part)[:limit].strip("-") for part in parts]
    return "-".join([*filter(None, words), digest])


def _readable(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return _UNSAFE.sub("-", plain.lower()).strip("-")
