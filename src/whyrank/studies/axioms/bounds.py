"""Axioms on the lower bound of term frequency: having a query term at all must count."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from whyrank.core import Codes, Flags, Floats, WhyrankError, generator
from whyrank.data import Collection, open_run
from whyrank.studies.axioms.axiom import LongQuery, OfAnyLength, Precondition, allowance
from whyrank.studies.axioms.duplicates import Made, Synthetic
from whyrank.studies.axioms.view import View
from whyrank.text import Analyzer
from whyrank.text.edits import word_of

TRIES = 20  # words of a text that LB2 tries to replace
_ROUNDING = 1e-9  # differences of logarithms that are equal on paper may differ by less


@dataclass(frozen=True, kw_only=True)
class LB1(OfAnyLength):
    """Of two texts that are alike for the rest of the query, the one with a query term that the other lacks wins.

    Original: if S(Q, D1) = S(Q, D2) and a term w not in Q has c(w, D1) > 0 and c(w, D2) = 0, then
    S(Q + w, D1) > S(Q + w, D2).
    Adapted: w is a term of the query itself. All other query terms are equally frequent in both texts, whose
    lengths differ by at most `length` tokens (10): so they count as alike for the rest of the query. With
    `scores=RUN` they count as alike where their scores in that run are at most `margin` (10%) apart. D1 then has a
    query term that D2 lacks, and D2 has none that D1 lacks.
    Formula: |Q| >= 2, | |D1| - |D2| | <= 10, there is a w in Q with c(w, D1) > 0 and c(w, D2) = 0, for all other q in
    Q c(q, D1) = c(q, D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Lv and Zhai, "Lower-bounding term frequency normalization", CIKM 2011.

    Attributes:
        scores: a run (its name or file) whose scores say which texts are alike; `None`: their counts and lengths do.
        margin: how far scores of that run may differ: a number, or a share of the larger such as `10%`.
    """

    length: float | str | None = 10
    scores: str | None = None
    margin: float | str = "10%"

    name = "LB1"
    conditions = (LongQuery(2),)
    not_filled = ("compat", "margin")  # a margin of matched probes is another thing
    favours = "the text with a query term that the other lacks, all else alike"

    def preconditions(self) -> tuple[Precondition, ...]:
        """Two query terms, and similar length or similar scores."""
        return super().preconditions() if self.scores is None else (*self.conditions, self._similar_scores)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """A query term is in `a` only; the others are equally frequent, or with a run, none is in `b` only."""
        if self.scores is None:
            one = (view.counts[a] != view.counts[b]).sum(axis=1) == 1
            return np.asarray(one & (view.distinct[a] == view.distinct[b] + 1))
        lacking = (view.present[b] & ~view.present[a]).any(axis=1)
        return np.asarray(~lacking & (view.distinct[a] > view.distinct[b]))

    def preference(self, query: str, first: str, second: str, collection: Collection | None = None) -> int:
        """As for every axiom; an error with `scores`, because a run scores the documents of a collection."""
        if self.scores is not None:
            raise WhyrankError("LB1 with scores=RUN says nothing of two texts alone; leave scores out for that")
        return super().preference(query, first, second, collection)

    def _similar_scores(self, view: View, a: Codes, b: Codes) -> Flags:
        """Both documents are in the run, with scores at most `margin` apart."""
        collection, name = view.pool.pools.collection, str(self.scores)
        run = view.views.once(("run", name), lambda: open_run(collection, name).run)
        scores = run.get(view.pool.query_id, {})
        found = np.array([scores.get(doc_id, np.nan) for doc_id in view.pool.doc_ids], dtype=np.float64)
        one, two = (np.where(np.isfinite(found), found, np.nan)[side] for side in (a, b))
        return np.asarray(np.abs(one - two) <= allowance("margin", self.margin, np.maximum(np.abs(one), np.abs(two))))


@dataclass(frozen=True, kw_only=True)
class LB2(Synthetic):
    """A query term that a text lacks adds more to it than one more of a query term that it has.

    Original: for a query of two equally discriminating terms q1 and q2 and two texts with equal scores that have q1
    and lack q2, replacing a word of the one (not in the query) by q2 gives a higher score than replacing a word of
    the other by q1.
    Adapted: both texts are made from one document D, of which the same word t is replaced, by q2 and by q1, as the
    query spells them. The query may have more terms; inverse document frequencies may differ by `idf` (10% of the
    larger). Of several such pairs of terms the one with the most similar frequencies is taken. The word is drawn by
    `seed`; the analyzer must see one token replaced and nothing else, or another word is tried.
    Formula: q1, q2 in Q, |idf(q1) - idf(q2)| <= 10% of the larger, c(q1, D) > 0, c(q2, D) = 0, t in D, t not in Q,
    D1 = D with q2 for t, D2 = D with q1 for t.
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Lv and Zhai, "Lower-bounding term frequency normalization", CIKM 2011.

    Attributes:
        idf: how far the rarity of two terms may differ: a number, or a share of the larger such as `10%`.
    """

    idf: float | str = "10%"

    name = "LB2"
    favours = "the text with one more distinct query term, over one with a query term repeated"
    compares = "two changed forms of one text"

    def sources(self, view: View) -> Codes:
        """The documents that have one and lack the other of two query terms of similar rarity."""
        gaps = self._gaps(view)
        found = [i for i, has in enumerate(view.present) if np.isfinite(gaps[has][:, ~has]).any()]
        return np.array(found, dtype=np.int32)

    def texts(self, view: View, documents: Codes) -> Iterator[Made | str]:
        """Each document with the missing term, and with one more of the other."""
        spelled, gaps = _query_spellings(view), self._gaps(view)
        analyzer, kept = view.pool.pools.analyzer, frozenset(view.term_ids.tolist())
        for i in documents.tolist():
            # a term that the document has and one that it lacks: the most similar two, then the first in the query
            has, lacks = np.flatnonzero(view.present[i]), np.flatnonzero(~view.present[i])
            row, column = divmod(int(gaps[np.ix_(has, lacks)].argmin()), len(lacks))
            had, missing = int(has[row]), int(lacks[column])
            words = {int(view.term_ids[term]): spelled[int(view.term_ids[term])] for term in (missing, had)}
            texts = replace_word(analyzer, view.pool.texts[i], view.tokens(i), words, kept, self.seed)
            ids = [f"{view.pool.doc_ids[i]}+{view.terms[term]}" for term in (missing, had)]
            yield Made((texts[0], texts[1]), (ids[0], ids[1])) if texts else "no word to replace"

    def _gaps(self, view: View) -> Floats:
        """How far the idf of two query terms lies apart; infinite where it is too far or a term has no spelling."""
        one, two = view.idf[:, None], view.idf[None, :]
        gaps = np.abs(one - two)
        usable = np.array([token in _query_spellings(view) for token in view.term_ids.tolist()], dtype=bool)
        similar = gaps <= allowance("idf", self.idf, np.maximum(one, two)) + _ROUNDING
        return np.where(similar & usable[:, None] & usable, np.round(gaps / _ROUNDING), np.inf)


def _query_spellings(view: View) -> dict[int, str]:
    analyzer = view.pool.pools.analyzer
    return view.once("spellings", lambda: spellings(analyzer, view.pool.query))


# One word of a text replaced by another, such that an analyzer sees one token replaced by another and no more.

_WORD = re.compile(r"\S+")


def replace_word(
    analyzer: Analyzer, text: str, tokens: Codes, words: Mapping[int, str], kept: frozenset[int], seed: int = 0
) -> tuple[str, ...] | None:
    """The text with one of its words replaced by each of `words` (token -> spelling), in their order.

    The word that goes is one token, and none of the terms `kept`. It is drawn by the seed and the text, and is the
    same for all of `words`; None when 20 words were tried in vain.
    """
    found, tried = list(_WORD.finditer(text)), 0
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    for i in generator(seed, "word to replace", digest).permutation(len(found)):
        usable = [(start, end) for start, end, token in _alone(analyzer, found[i]) if token not in kept]
        for start, end in usable:
            texts = tuple(text[:start] + word + text[end:] for word in words.values())
            if _differ_in_one(analyzer, tokens, texts, list(words), kept):
                return texts
        tried += bool(usable)
        if tried == TRIES:
            break
    return None


def spellings(analyzer: Analyzer, text: str) -> dict[int, str]:
    """How the text spells each token that a word of it stands for alone; the first spelling counts."""
    found: dict[int, str] = {}
    for match in _WORD.finditer(text):
        for start, end, token in _alone(analyzer, match):
            found.setdefault(token, text[start:end])
    return found


def _alone(analyzer: Analyzer, match: re.Match[str]) -> Iterator[tuple[int, int, int]]:
    """Start, end and token of a word without the punctuation at its edges, and with it, where it is one token."""
    word = word_of(match[0])
    inner = match.start() + len(word.before), match.end() - len(word.after)
    for start, end in dict.fromkeys([inner, match.span()]) if word.core else ():
        ids = analyzer.docs([match.string[start:end]]).ids
        if len(ids) == 1:
            yield start, end, int(ids[0])


def _differ_in_one(
    analyzer: Analyzer, tokens: Codes, texts: Sequence[str], wanted: Sequence[int], kept: frozenset[int]
) -> bool:
    """Whether each text has the tokens given, but for the wanted one at the same position of all texts."""
    found = analyzer.docs(texts)
    if (np.diff(found.offsets) != len(tokens)).any():
        return False
    rows = found.ids.reshape(len(texts), len(tokens))
    positions = np.flatnonzero((rows != tokens).any(axis=0))
    if len(positions) != 1 or int(tokens[positions[0]]) in kept:
        return False
    return bool(rows[:, positions[0]].tolist() == list(wanted))
