"""The named analyzers of common search engines."""

from __future__ import annotations

from whyrank.core import Call
from whyrank.text import steps
from whyrank.text.analyzer import Analyzer, Step
from whyrank.text.chain import (
    INDRI,
    LUCENE,
    ascii_words,
    plain_words,
    read_stopwords,
    stop_file,
    unicode_words,
    whitespace_words,
)


def lucene() -> Analyzer:
    """Lucene's EnglishAnalyzer: Unicode words, possessives, lower case, 33 stop words, Porter."""
    return Analyzer.of("lucene", unicode_words, _english(steps.porter))


def krovetz() -> Analyzer:
    """As `lucene`, with the Krovetz stemmer."""
    return Analyzer.of("krovetz", unicode_words, _english(steps.krovetz()))


def terrier(stopwords: str = "") -> Analyzer:
    """Terrier's default: ASCII words within limits, Porter; stop words go from documents, stay in queries."""
    path = stop_file("terrier", stopwords, "WHYRANK_TERRIER_STOPWORDS")
    words, digest = read_stopwords(path)
    within: list[Step] = [steps.lower, steps.limits(max_length=20, max_digits=4, max_repeat=3)]
    on_docs: list[Step] = [*within, steps.stop(map(steps.lower, words)), steps.porter]
    on_queries: list[Step] = [*within, steps.porter]
    call = Call("terrier", arguments={"stopwords": path})
    return Analyzer.of(call, ascii_words, on_docs, query_steps=on_queries, digests=[digest])


def indri(stopwords: str = "") -> Analyzer:
    """Indri's usual: runs of letters and digits, lower case, its stop words removed everywhere, Krovetz."""
    path = stop_file("indri", stopwords, INDRI)
    words, digest = read_stopwords(path)
    on_both: list[Step] = [steps.lower, steps.stop(map(steps.lower, words)), steps.krovetz()]
    return Analyzer.of(Call("indri", arguments={"stopwords": path}), plain_words, on_both, digests=[digest])


def whitespace() -> Analyzer:
    """Splits on white space and does nothing else."""
    return Analyzer.of("whitespace", whitespace_words)


def _english(stem: Step) -> list[Step]:
    return [steps.possessive, steps.lower, steps.stop(LUCENE), stem]
