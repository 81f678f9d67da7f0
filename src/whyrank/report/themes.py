"""What each study is about, in words for readers: its theme, a short name, the two texts, and what one would expect.

A study that no pattern names, such as that of a plugin, is described by its own sentence `positive`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

THEMES = {
    "Word order": "Does it notice in which order words stand?",
    "Length": "Does it prefer long texts or short ones, and texts that repeat themselves?",
    "Query words": "How much do the words of the query count, and does one more of them help?",
    "Word positions": "Does it matter where in the text the words of the query stand?",
    "Noise and typos": "Do spelling mistakes, punctuation, case and small words matter?",
    "Relevance": "Does it agree with what people judged relevant?",
    "Meaning": "Does it go by meaning, beyond the words of the query?",
    "Style": "Does it prefer one way of writing to another?",
    "Facts": "Does it prefer the right answer?",
    "Brands and names": "Does a brand, a country, a name or a year change the score of the same text?",
    "Other questions": "Studies that were added to this audit.",
}
OTHER = "Other questions"
GLOSSARY = {
    "ranker": "A program that gives a text a score for a query. In a list of results, higher scores stand higher.",
    "query": "What somebody typed into a search box.",
    "pair": "One question to a ranker: one query and two texts that differ in one thing. The ranker scores both and "
    "does not know that it is being studied.",
    "prefers": "Gives a score that is higher by more than a typical rank step. Smaller differences count as none.",
    "rank step": "The typical difference (delta) between the scores of neighbours in the ranker's own lists of "
    "results. It is the unit in which differences are given, and the smallest one that counts.",
    "original": "The text as it stands in the collection; the other text is a copy in which one thing was changed.",
    "rule": "A principle of retrieval (an axiom) that says which of two texts should win. Chance is how often it "
    "would be kept if a coin decided every pair that is not tied.",
    "interval": "The line around a dot: where the figure would lie in 95 of 100 samples of other queries. Pairs of "
    "one query are not independent, so intervals and tests are clustered by query and document.",
    "significant": "Unlikely to be chance: the test by query is below the level of the audit, corrected for the "
    "number of tests. Dots that are not filled are not significant.",
    "baseline": "The ranker that the others are compared with, pair by pair. Differences are those of scores (the "
    "share of pairs won by the text that the row names, less the share won by the other), of rules kept in "
    "percentage points, and of ranges in rank steps.",
    "bias": "The same text with one name exchanged for another. The range is the distance between the mean scores of "
    "the most and the least favoured name, in rank steps.",
    "control": "A copy of the text whose tokens are joined by blanks and nothing else, to show what the editing "
    "itself does.",
}
RANKERS = {  # by their call, without arguments
    "bm25": "A ranker that counts the words of the query in a text. Rare words count more, repeated ones less "
    "each time, and those of long texts less.",
    "ql": "Query likelihood, a ranker that counts words as BM25 does, and asks how likely a text makes the query.",
    "bm25t:bundled": "BM25 with a thesaurus of what the neural model takes for related: such words count too.",
    "cross:bundled": "A neural network that reads query and text together (a cross-encoder), and was trained to "
    "score as two larger ones do.",
}


ORIGINAL, OTHER_ONE = "the original", "the other one"


@dataclass(frozen=True)
class Words:
    """What to say of one study: of two texts, `first` is the one that a positive answer prefers.

    `setting` says what the texts have in common or what was done; `expected` is the sign of the answer that one would
    expect, 0 where neither text should win, None where opinions differ. A `trivial` study has an answer that
    nobody doubts.
    """

    theme: str
    label: str
    setting: str
    first: str
    second: str = OTHER_ONE
    expected: int | None = None
    trivial: bool = False

    @property
    def edited(self) -> bool:
        """Whether one text is a changed copy of the other."""
        return self.second == ORIGINAL


_PAIR = "Of two texts"
_LIKE = "Of two otherwise similar texts"
_SAME = "Of two texts that say the same"


def _edit(theme: str, label: str, setting: str, expected: int | None = 0, trivial: bool = False) -> Words:
    return Words(theme, label, setting, "the changed text", ORIGINAL, expected, trivial)


def _rule(theme: str, label: str, first: str, setting: str = _PAIR, expected: int | None = 1) -> Words:
    return Words(theme, label, setting, first, expected=expected)


_STUDIES = {
    "edited/shuffle-words": _edit("Word order", "words shuffled", "With shuffled words", -1),
    "edited/shuffle-words-in-sentences": _edit(
        "Word order", "words shuffled within sentences", "With words shuffled inside each sentence", -1
    ),
    "edited/shuffle-words-keep-noun-chunks": _edit(
        "Word order", "words shuffled, noun phrases kept", "With all but noun phrases shuffled", -1
    ),
    "edited/reverse-words": _edit("Word order", "words reversed", "With words in reverse order", -1),
    "edited/shuffle-sentences": _edit("Word order", "sentences shuffled", "With shuffled sentences", -1),
    "edited/reverse-sentences": _edit("Word order", "sentences reversed", "With sentences in reverse order", -1),
    "edited/swap-noun-chunks": _edit("Word order", "noun phrases swapped", "With noun phrases swapped", -1),
    "edited/shuffle-prepositions": _edit("Word order", "prepositions swapped", "With prepositions swapped", -1),
    "edited/repeat-document": _edit("Length", "text repeated", "With the whole text repeated"),
    "edited/delete-sentence": _edit("Length", "a sentence removed", "With a sentence removed", -1),
    "edited/add-nonrelevant-sentence": _edit(
        "Relevance", "off-topic sentence added", "With an irrelevant sentence added", -1
    ),
    "edited/prepend-query": _edit("Query words", "query put in front", "With the query put in front", 1, True),
    "edited/replace-with-query": _edit(
        "Query words", "text replaced by the query", "With the query as the text", 1, True
    ),
    "edited/doc2query": _edit("Query words", "likely queries added", "With likely queries added", 1),
    "edited/typos": _edit("Noise and typos", "spelling mistakes", "With spelling mistakes", -1),
    "edited/case-fold": _edit("Noise and typos", "lower case", "In lower case"),
    "edited/remove-punct": _edit("Noise and typos", "no punctuation", "Without punctuation", None),
    "edited/remove-stops": _edit("Noise and typos", "no function words", "Without function words", None),
    "edited/remove-stops-punct": _edit(
        "Noise and typos", "no function words, no punctuation", "Without function words and punctuation", None
    ),
    "edited/re-space": _edit("Noise and typos", "spacing changed (the control)", "With other spacing", 0, True),
    "edited/lemmatize": _edit("Noise and typos", "words in their base form", "With words in their base form"),
    "transferred/factuality": Words(
        "Facts", "right answer", _LIKE, "the one with the right answer", "the one with a wrong answer", 1
    ),
    "transferred/fluency": Words("Style", "fluent", _SAME, "the fluent one", "the one that is not fluent", 1),
    "transferred/fluency-spellchecked": Words(
        "Style", "fluent, not only spell-checked", _SAME, "the fluent one", "the one that is only spell-checked", 1
    ),
    "transferred/formality": Words("Style", "formal", _SAME, "the formal one", "the informal one", 0),
    "transferred/neutrality": Words("Style", "neutral in tone", _SAME, "the neutral one", "the biased one", 0),
    "transferred/simplicity": Words("Style", "simple", _SAME, "the simpler one", "the harder one", 0),
    "transferred/succinctness": Words("Length", "summary", "Of a text and its summary", "the summary", "the text"),
    "transferred/paraphrase": _rule("Meaning", "two wordings of one thing", "one", _SAME, 0),
    "axiom/AND": _rule("Query words", "all query words", "the one with all query words"),
    "axiom/M-AND": _rule("Query words", "more of the query covered", "the one with more of the query's words"),
    "axiom/TFC1": _rule(
        "Query words", "more query words, same length", "the one with more query words", "Of two equally long texts"
    ),
    "axiom/TFC2": _rule(
        "Query words", "first occurrences count most", "first occurrences of query words", "Of three texts"
    ),
    "axiom/TFC3": _rule(
        "Query words", "different query words, same count", "the one with more different query words", _LIKE
    ),
    "axiom/LB1": _rule("Query words", "one query word more", "the one with a further query word", _LIKE),
    "axiom/LB2": Words(
        "Query words",
        "new query word, not a repeated one",
        _LIKE,
        "the one with a new query word",
        "the one that repeats a query word",
        1,
    ),
    "axiom/TDC": _rule("Query words", "rare query word", "the one with the rarer query word", _LIKE),
    "axiom/M-TDC": _rule("Query words", "rare query words", "the one with rarer query words", _LIKE),
    "axiom/TF-LNC": _rule("Query words", "longer by query words", "the one that is longer by query words", _LIKE),
    "axiom/DIV": _rule(
        "Query words", "less overlap with the query", "the one that overlaps less with the query", expected=None
    ),
    "axiom/LNC1": _rule("Length", "fewer other words", "the one with fewer other words", _LIKE),
    "axiom/LNC2": Words(
        "Length",
        "text written several times",
        "With the text written several times",
        "the changed text",
        ORIGINAL,
        None,
    ),
    "axiom/PROX1": _rule(
        "Word positions", "query words close together", "the one whose query words stand closer together"
    ),
    "axiom/PROX2": _rule("Word positions", "query words early", "the one whose query words come earlier"),
    "axiom/PROX3": _rule("Word positions", "query as a phrase, early", "the one with the query as an early phrase"),
    "axiom/PROX4": _rule("Word positions", "query words in one group", "the one that groups the query words tightly"),
    "axiom/PROX5": _rule("Word positions", "query words near each other", "the one whose query words stand nearer"),
    "axiom/QPHRA": _rule("Word positions", "query as a phrase", "the one with the query as a phrase"),
    "axiom/TP": _rule("Word positions", "two query words close", "the one in which two query words stand closest"),
    "axiom/STMC1": _rule("Meaning", "other words near the query", "the one whose other words mean something similar"),
    "axiom/STMC2": _rule("Meaning", "query words before similar ones", "the one with more query words", _LIKE),
    "axiom/STMC3": _rule("Meaning", "similar words before query words", "the one with similar words", _LIKE, None),
    "axiom/REG": _rule(
        "Meaning", "the query word that stands apart", "the one with the most distinct query word", _LIKE
    ),
    "axiom/ANTI-REG": _rule(
        "Meaning", "the query word like the others", "the one with the most typical query word", _LIKE, None
    ),
    "bias/car-brand": _rule("Brands and names", "car brands", "a car brand", "car brand", 0),
    "bias/country": _rule("Brands and names", "countries", "a country", "country", 0),
    "bias/currency": _rule("Brands and names", "currencies", "a currency", "currency", 0),
    "bias/first-name": _rule("Brands and names", "first names", "a first name", "first name", 0),
    "bias/nationality": _rule("Brands and names", "nationalities", "a nationality", "nationality", 0),
    "bias/when-year": _rule("Brands and names", "years", "a year", "year", 0),
    "bias/postfix-letter": _rule(
        "Noise and typos", "a letter appended to a query word", "a letter", "last letter", 0
    ),
    "bias/*": _rule("Brands and names", "", "a name", "name", 0),
}
_MORE = {  # matched/MORE|EQUAL: theme, label, first and second text, what one would expect
    "length": ("Length", "longer", "the longer one", "the shorter one", 0),
    "overlap": ("Query words", "larger share of query words", "the one with the larger share of query words",
                "the one with the smaller share", 1),
    "tf": ("Query words", "more of a query word", "the one with more of a query word", "the one with less", 1),
    "sum-tf": ("Query words", "more query words", "the one with more query words", "the one with fewer", 1),
    "relevance": ("Relevance", "more relevant", "the more relevant one", "the less relevant one", 1),
}  # fmt: skip
_EQUAL = {
    "length": ("same length", "Of two equally long texts"),
    "overlap": ("same share of query words", "Of two texts with the same share of query words"),
    "tf": ("same counts of each query word", "Of two texts with the same query words"),
    "sum-tf": ("same number of query words", "Of two texts with as many query words"),
    "relevance": ("same relevance", "Of two equally relevant texts"),
}


@cache
def words_for(study: str) -> Words | None:
    """What to say of a study, by its name; None for one that is not known here."""
    name = study.partition("(")[0]
    family, _, rest = name.partition("/")
    more, _, equal = rest.partition("|")
    if family == "matched" and more in _MORE and equal in _EQUAL:
        (theme, label, first, second, expected), (alike, setting) = _MORE[more], _EQUAL[equal]
        return Words(theme, f"{label}, {alike}", setting, first, second, expected)
    return _STUDIES.get(name) or next((words for glob, words in _STUDIES.items() if fnmatchcase(name, glob)), None)


def theme_of(study: str) -> str:
    """The theme that a study belongs to."""
    words = words_for(study)
    return words.theme if words else OTHER


def label_of(study: str, full: bool = False) -> str:
    """A short name for readers: that of a known study, else its own; in full with its arguments."""
    words, (name, _, arguments) = words_for(study), study.partition("(")
    label = (words.label if words else "") or name.partition("/")[2] or name
    return f"{label} ({arguments}" if full and arguments else label
