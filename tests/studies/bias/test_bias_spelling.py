"""Words as the analyzer of a table writes them."""

from __future__ import annotations

from whyrank.studies.bias import correlation as bias_weights
from whyrank.text import analyzers


def test_an_analyzer_is_made_once_for_all_words(monkeypatch):
    made = []
    monkeypatch.setattr(analyzers, "create", lambda name: made.append(name) or original(name))
    bias_weights._made.cache_clear()
    bias_weights.spelled.cache_clear()
    words = [f"{first}{second}ing" for first in "abcdef" for second in "lmnop"]
    found = [bias_weights.spelled("lucene", word, query) for word in words for query in (True, False)]
    assert made == ["lucene"]
    plain = original("lucene")
    assert found[1::2] == [plain.terms(word)[0] for word in words]
    assert bias_weights.spelled("no-such", "Cars", True) == bias_weights.spelled("", "Cars", True) == "cars"


original = analyzers.create
