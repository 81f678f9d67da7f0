"""Explain a ranker: exactly where it shows its matrix, else as a black box by leaving words out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from whyrank.core import Range, WhyrankError, check, name_of
from whyrank.data import Collection, open_collection
from whyrank.explain.blackbox import BlackBox
from whyrank.explain.counterfactual import Search
from whyrank.explain.exact import exact_shares
from whyrank.explain.explanation import Explanation, Part
from whyrank.explain.occlusion import ROUNDING, Occlusion
from whyrank.explain.words import words_of
from whyrank.rankers import RunRanker, Setting, as_ranker, tie_tolerance
from whyrank.rankers.fields import wants_fields
from whyrank.rankers.lexical import Explaining
from whyrank.scoring import Engine, default_engine

LEAST_CALLS = 10


def explain(
    ranker: object, query: str, doc: str, other: str | None = None, *,
    collection: Collection | str | None = None, calls: int = 200, seed: int = 0, engine: Engine | None = None,
) -> Explanation:  # fmt: skip
    """Explain why a ranker gives a text its score, or with two texts why one is above the other.

    Args:
        ranker: a call string, an object with `name` and `score(queries, docs)`, or a function of queries and texts.
        query: the query.
        doc: the text.
        other: another text, for the gap score(doc) - score(other).
        collection: where lexical rankers count terms.
        calls: most distinct texts that are scored.
        seed: of the words that are left out at random.
        engine: scores, and keeps the scores; by default in the user's cache folder, as the command line does.

    Example:
        >>> found = explain("bm25", "melting point of mercury", "Mercury melts at -38.83 °C.", collection="sample")
        >>> [part.text for part in found.parts if part.share > 0]
        ['Mercury', 'melts']
    """
    docs = [doc] if other is None else [doc, other]
    for given in (query, *docs):
        if not isinstance(given, str):
            raise WhyrankError(f"explain takes texts, not {given!r}")
    check("calls", calls, Annotated[int, Range(LEAST_CALLS)])
    where = None if collection is None else open_collection(collection)
    opened = as_ranker(ranker, Setting(where, typed=True))
    if any(isinstance(each, RunRanker) for each in (opened, *getattr(opened, "parts", ()))):
        raise WhyrankError(f"ranker {name_of(opened)!r} cannot score changed texts: a run scores its own pairs alone")
    box = BlackBox(opened, query, engine or default_engine(), calls)
    scores, exact = box.whole(docs), isinstance(opened, Explaining)
    parts: Sequence[Part]
    if isinstance(opened, Explaining):
        found = [exact_shares(opened, query, text, i) for i, text in enumerate(docs)]
        parts, notes = (
            [part for each in found for part in each.parts],
            [note for each in found for note in each.notes],
        )
    else:
        occlusion = Occlusion(box, docs, scores, seed)
        total = sum(len(words_of(text)) for text in docs)
        occlusion.remove_each(calls // 2 if other is not None else box.left if total <= box.left else calls * 7 // 10)
        parts, long = occlusion.parts(), len(occlusion.units) < total
        notes = [f"{total:,} words are too many to leave out one by one: some are phrases"] * long
    edit, fit = None, None
    if other is not None and abs(scores[0] - scores[1]) <= tie_tolerance(opened):
        notes.append("the texts tie: there is no order to turn round")
    elif other is not None:
        edit = Search(box, docs, scores, tie_tolerance(opened), box.left - (0 if exact else calls // 5)).run(parts)
        notes += [f"no edit that turns the order round was found among {box.used:,} texts"] * (edit is None)
    if not exact:
        fit, parts = occlusion.remove_some(box.left), occlusion.parts()
        notes += ["there is no word to leave out"] * (not total)
        notes += ["too few changed texts to tell how far the shares can be trusted"] * (fit is None and total > 0)
        notes += [f"{box.failed:,} changed texts have no finite score and are left out"] * bool(box.failed)
    notes += ["the ranker reads fields of documents, and texts that are explained have none"] * wants_fields(opened)
    explained = scores[0] - (scores[1] if other is not None else 0.0)
    rest = explained - math.fsum(part.share for part in parts)
    rest = 0.0 if math.isclose(rest + explained, explained, abs_tol=ROUNDING * max(map(abs, scores))) else rest
    return Explanation(
        name_of(opened), query, tuple(docs), tuple(scores), "exact" if exact else "occlusion", tuple(parts), rest,
        box.used, fit, edit, "; ".join(dict.fromkeys(notes)),
    )  # fmt: skip
