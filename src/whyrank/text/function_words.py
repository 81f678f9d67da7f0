"""English words that bind other words together, and the ends of contractions: what `words` and `lemmas` leave out."""

from __future__ import annotations

_DETERMINERS = """
a all an another any both each either every few half less many more most much neither no one several some such that
the these this those
"""
_PRONOUNS = """
anybody anyone anything everybody everyone everything he her hers herself him himself his i it its itself me mine my
myself nobody nothing oneself our ours ourselves she somebody someone something their theirs them themselves they us
we you your yours yourself yourselves
"""
_QUESTIONS = "how what whatever when whenever where wherever whether which whichever who whoever whom whose why"
_AUXILIARIES = """
am are be been being ca can could did do does doing done had has have having is may might must ought shall should
sha was were will wo would
"""
_PREPOSITIONS = """
aboard about above across after against along alongside amid among amongst around as at atop before behind below
beneath beside besides between beyond by despite down during except for from in inside into like near of off on onto
out outside over past per regarding since than through throughout till to toward towards under underneath unlike
until unto up upon via with within without
"""
_CONJUNCTIONS = (
    "although and because but hence however if lest nor or otherwise so therefore though thus unless while yet"
)
_ADVERBS = """
again almost already also always anyway ever else even further here indeed just maybe moreover nearly never not now
often once only perhaps quite rather really same still then there too very
"""

FUNCTION_WORDS = frozenset(
    " ".join((_DETERMINERS, _PRONOUNS, _QUESTIONS, _AUXILIARIES, _PREPOSITIONS, _CONJUNCTIONS, _ADVERBS)).split()
)
"""Determiners, pronouns, question words, auxiliaries, prepositions, conjunctions and adverbs that say little."""

_ENDS = ("n{}t", "{}ll", "{}s", "{}ve", "{}re", "{}d", "{}m")
CONTRACTIONS = frozenset(end.format(mark) for end in _ENDS for mark in ("'", "\u2019", "\uff07")) | {"nt"}
"""What a linguistic tokeniser cuts off: n't, 'll, 's, 've, 're, 'd, 'm, with any of three apostrophes."""
