"""Tokenisers: from a text to its raw tokens."""

from __future__ import annotations

import re

from whyrank.text.unicode_words import unicode_words

__all__ = ["ascii_words", "plain_words", "unicode_words", "whitespace_words"]

ascii_words = re.compile(r"[A-Za-z0-9]+").findall
"""Maximal runs of ASCII letters and digits: Terrier's English tokeniser."""

plain_words = re.compile(r"[^\W_]+").findall
"""Maximal runs of letters and digits of any script, without any punctuation inside."""

whitespace_words = str.split
"""What stands between white space."""
