"""The postfix-letter study: a letter appended to a word that the query and a relevant text share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from whyrank.core import UnknownName, call_of, check_text, check_whole, generator
from whyrank.data import Collection
from whyrank.studies import Contrasts
from whyrank.studies.bias.filters import Scorer, filtered
from whyrank.studies.bias.grid import CLUSTERS, Grid
from whyrank.studies.bias.slots import PLAIN, SLOT, Slotted
from whyrank.studies.bias.templates import Template
from whyrank.studies.bias.values import values_of
from whyrank.text import LUCENE

_WORD = re.compile(r"(?<![\w-])[A-Za-z]{3,}(?![\w-])")
_QUESTION = """
how what when where which who why does did can you your has have had from its
"""
_CARRIER = LUCENE | frozenset(_QUESTION.split())


@dataclass(frozen=True)
class PostfixLetter:
    """What a letter at the end of a shared word does to the score of a relevant text, per letter.

    Attributes:
        values: the letters, or any endings: as of `bias/substitution`.
        filters: call strings of filters, with `|` between them.
        cluster: pairs that are not independent: those of one `doc`, those of one `query`, `both` kinds, or none but
            the `pair` itself.
        most: at most so many pairs of a query and a text, drawn at random.
        seed: of the draws: of the pairs, and of one shared word for each.
    """

    values: str = "letters"
    filters: str = ""
    cluster: str = "both"
    most: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        for what in ("values", "filters"):
            check_text(what, getattr(self, what))
        check_whole("most", self.most, 1)
        check_whole("seed", self.seed, 0)
        if self.cluster not in CLUSTERS:
            raise UnknownName("cluster of templates", self.cluster, CLUSTERS)

    @property
    def id(self) -> str:
        """Call string."""
        return call_of(self, "bias/postfix-letter")

    @property
    def positive(self) -> str:
        """What +1 means, in a contrast of two letters."""
        return "scores a text differently with another letter appended to a word of the query"

    @property
    def symmetric(self) -> bool:
        """No letter is the favoured one."""
        return True

    def contrasts(self, collection: Collection) -> Contrasts:
        """Every pair with every two letters; filters that ask a ranker let all pass."""
        return self.grid(collection).contrasts()

    def grid(self, collection: Collection, scores: Scorer | None = None) -> Grid:
        """The texts with a letter appended to every occurrence of the word."""
        found = sorted(self._templates(collection), key=lambda t: (t.query_id, t.doc_id))
        templates, dropped = filtered(found, self.filters, scores)
        if len(templates) > self.most:
            drawn = generator(self.seed, "bias", "pairs").choice(len(templates), self.most, replace=False)
            dropped["not drawn"] = len(templates) - self.most
            templates = [templates[i] for i in sorted(drawn.tolist())]
        return Grid(templates, values_of(self.values), self.cluster, None, True, None, dropped)

    def _templates(self, collection: Collection) -> Iterator[Template]:
        for query_id, judged in collection.qrels.items():
            query = collection.queries.get(query_id, "")
            for doc_id, grade in judged.items():
                if query and grade >= collection.grades.relevant and doc_id in collection.docs:
                    yield from self._template(query_id, query, doc_id, collection.docs[doc_id])

    def _template(self, query_id: str, query: str, doc_id: str, text: str) -> Iterator[Template]:
        """One template, or none where no word is shared."""
        words = {word.lower() for word in _WORD.findall(query)} - _CARRIER
        shared = sorted(words & {word.lower() for word in _WORD.findall(text)})
        if shared and SLOT not in text:
            term = shared[int(generator(self.seed, "bias", query_id, doc_id).integers(len(shared)))]
            yield Template(query, _cut(text, term), query_id, doc_id, term=term)


def _cut(text: str, term: str) -> Slotted:
    """A slot behind every occurrence of a word."""
    ends = [m.end() for m in _WORD.finditer(text) if m[0].lower() == term]
    edges = [0, *ends, len(text)]
    return Slotted(tuple(text[a:b] for a, b in pairwise(edges)), (PLAIN,) * len(ends))
