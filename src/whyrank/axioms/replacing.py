"""One word of a text replaced by another, such that an analyzer sees one token replaced by another and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from whyrank.core.protocols import Codes
from whyrank.core.seeds import generator
from whyrank.text import Analyzer
from whyrank.text.pieces import Slot, word_of

TRIES = 20
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Replacer:
    """Puts words in the place of a word of a text that is one token and none of the terms `kept`."""

    analyzer: Analyzer
    kept: frozenset[int]
    seed: int = 0

    def replaced(self, text: str, tokens: Codes, words: Mapping[int, str]) -> tuple[str, ...] | None:
        """The text with one of its words replaced by each of `words` (token -> spelling), in their order.

        Which word goes is drawn by the seed and the text; it is the same for all of them. None when 20 words were
        tried in vain.
        """
        tried = 0
        for slots in self._drawn(text):
            usable = [slot for slot in slots if self._is_one_token(text[slot.start : slot.end])]
            for slot in usable:
                texts = tuple(text[: slot.start] + word + text[slot.end :] for word in words.values())
                if self._differ_in_one(tokens, texts, list(words)):
                    return texts
            tried += bool(usable)
            if tried == TRIES:
                break
        return None

    def _drawn(self, text: str) -> Iterator[list[Slot]]:
        """Where the words are, in random order: without the punctuation at their edges, then with it."""
        found = list(_WORD.finditer(text))
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        for i in generator(self.seed, "word to replace", digest).permutation(len(found)):
            yield _slots(found[i])

    def _is_one_token(self, word: str) -> bool:
        ids = self.analyzer.docs([word]).ids
        return len(ids) == 1 and int(ids[0]) not in self.kept

    def _differ_in_one(self, tokens: Codes, texts: Sequence[str], wanted: Sequence[int]) -> bool:
        """Whether each text has the tokens given, but for the wanted one in the same place of all texts."""
        found = self.analyzer.docs(texts)
        if (np.diff(found.offsets) != len(tokens)).any():
            return False
        rows = found.ids.reshape(len(texts), len(tokens))
        places = np.flatnonzero((rows != tokens).any(axis=0))
        if len(places) != 1 or int(tokens[places[0]]) in self.kept:
            return False
        return bool(rows[:, places[0]].tolist() == list(wanted))


def spellings(analyzer: Analyzer, text: str) -> dict[int, str]:
    """How the text spells each token that a word of it stands for alone; the first spelling counts."""
    found: dict[int, str] = {}
    for match in _WORD.finditer(text):
        for slot in _slots(match):
            ids = analyzer.docs([text[slot.start : slot.end]]).ids
            if len(ids) == 1:
                found.setdefault(int(ids[0]), text[slot.start : slot.end])
    return found


def _slots(match: re.Match[str]) -> list[Slot]:
    """The word without the punctuation at its edges, and with it; nothing for punctuation alone."""
    word = word_of(match[0])
    inner = Slot(match.start() + len(word.before), match.end() - len(word.after))
    return list(dict.fromkeys([inner, Slot(*match.span())])) if word.core else []
