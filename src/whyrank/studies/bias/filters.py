"""Filters of templates: which of them a study keeps, and why the others go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from whyrank.core import Checked, Flags, Floats, Whole, WhyrankError
from whyrank.data import read_lines
from whyrank.rankers import module_of
from whyrank.scoring import one_line
from whyrank.studies.bias import bias_filters
from whyrank.studies.bias.templates import Template
from whyrank.studies.bias.values import ValueClass, values_of

Scorer = Callable[[Sequence[Template]], Floats]


class Filter(Protocol):
    """Says which templates stay; `scores` gives the ranker's score of each as it was found, None without a ranker."""

    def keep(self, templates: Sequence[Template], scores: Scorer | None) -> Flags:
        """A flag per template."""
        ...


def apply_filters(
    templates: Sequence[Template], filters: str, scores: Scorer | None
) -> tuple[list[Template], dict[str, int]]:
    """The templates that stay after filters (call strings with `|` between them), and how many each took away."""
    left, dropped = list(templates), {}
    for text in (each.strip() for each in filters.split("|") if each.strip()):
        filter_: Filter = bias_filters.create(text)
        kept = np.asarray(filter_.keep(left, scores), dtype=bool) if left else np.ones(0, bool)
        dropped[f"by {text}"] = int(np.count_nonzero(~kept))
        left = [template for template, keep in zip(left, kept.tolist(), strict=True) if keep]
    return left, {reason: count for reason, count in dropped.items() if count}


@dataclass(frozen=True)
class OneValue:
    """Texts in which no value of the class stays, in any case of letters."""

    def keep(self, templates: Sequence[Template], scores: Scorer | None) -> Flags:
        """Those without values outside of their slots."""
        return np.array([not template.others for template in templates])


@dataclass(frozen=True)
class Without:
    """Texts without some words: a list, a file, or words joined by a plus; as whole words, or as parts of them."""

    words: str
    parts: bool = False

    def keep(self, templates: Sequence[Template], scores: Scorer | None) -> Flags:
        """Those that have none of the words outside of their slots."""
        words, texts = values_of(self.words), [template.slotted.around for template in templates]
        if self.parts:
            folded = [word.lower() for word in words]
            return np.array([not any(word in text.lower() for word in folded) for text in texts])
        forbidden = ValueClass(words)
        return np.array([not forbidden.named(text) for text in texts])


@dataclass(frozen=True)
class Relevant(Checked):
    """Texts that the ranker scores above a number, or among the best of a query, as they were found.

    Without a ranker, as where contrasts are only written, every template stays; so do templates that are not of the
    collection.
    """

    above: float | None = None
    rank: Whole | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.above is None and self.rank is None:
            raise WhyrankError("bias filter 'relevant' needs above=SCORE or rank=K")

    def keep(self, templates: Sequence[Template], scores: Scorer | None) -> Flags:
        """Those with a high enough score."""
        kept, found = np.ones(len(templates), bool), np.array([template.doc_id != "" for template in templates])
        if scores is None or not found.any():
            return kept
        chosen = [template for template in templates if template.doc_id]
        values = scores(chosen)
        kept[found] = np.isfinite(values)
        if self.above is not None:
            kept[found] &= values > self.above
        if self.rank is not None:
            kept[found] &= _ranks(chosen, values) <= self.rank
        return kept


@dataclass(frozen=True)
class Judge:
    """Texts that a function says yes to: `python:MODULE:NAME`, called with lists of queries and of texts."""

    resource: str

    def keep(self, templates: Sequence[Template], scores: Scorer | None) -> Flags:
        """Those that the function says yes to."""
        name = f"bias filter 'python:{self.resource}'"
        try:
            module = module_of("python", self.resource)
        except WhyrankError as error:
            raise WhyrankError(str(error).replace("ranker", "bias filter", 1)) from None
        function: Any = getattr(module, self.resource.rpartition(":")[2], None)
        if not callable(function):
            raise WhyrankError(f"{name}: there is no such function")
        try:
            said = list(function([t.query for t in templates], [t.original for t in templates]))
        except Exception as error:  # whatever a function of the user's raises
            raise WhyrankError(f"{name} failed: {one_line(f'{type(error).__name__}: {error}')}") from error
        if len(said) != len(templates):
            counts = f"{len(said)} answers to {len(templates)} texts"
            raise WhyrankError(f"{name} gave {counts}; return one yes or no per text")
        if any(isinstance(answer, float) and np.isnan(answer) for answer in said):
            raise WhyrankError(f"{name} answered nan; return one yes or no per text")
        return np.array([bool(answer) for answer in said])


@dataclass(frozen=True)
class Keep:
    """Texts that a file names: a document id a line, or query id, tab, document id."""

    resource: str

    def keep(self, templates: Sequence[Template], scores: Scorer | None) -> Flags:
        """Those that are named."""
        lines = {tuple(line.text.strip().split("\t")) for line in read_lines(Path(self.resource))}
        return np.array([(t.doc_id,) in lines or (t.query_id, t.doc_id) in lines for t in templates])


def _ranks(templates: Sequence[Template], scores: Floats) -> Floats:
    """The rank of each template among those of its query, 1 for the highest score; equal scores keep their order."""
    ranks = np.zeros(len(templates))
    queries = np.array([template.query for template in templates], dtype=object)
    for query in dict.fromkeys(queries.tolist()):
        here = np.flatnonzero(queries == query)
        order = np.argsort(-np.where(np.isfinite(scores[here]), scores[here], -np.inf), kind="stable")
        ranks[here[order]] = np.arange(1, len(here) + 1)
    return ranks
