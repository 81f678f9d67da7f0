"""Textual manipulation probes: each judged text against the same text with one thing changed.

MacAvaney et al., "ABNIRML: Analyzing the Behavior of Neural IR Models", TACL 2022 (and arXiv 2011.00696v1, 2020).
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from whyrank.core import Call, UnknownName, WhyrankError, check_flag, check_text, check_whole, seed_for
from whyrank.data import Collection
from whyrank.studies.contrasts import Contrasts, Pair
from whyrank.studies.pools import Pool, Pools, Source
from whyrank.text.annotation import Annotator, find_pipeline, import_spacy
from whyrank.text.annotation.annotator import annotator
from whyrank.text.edits import Edit, Passage, asks, edits, in_words, options_of

# What a probe would need that this machine does not have.


def missing(pipeline: str) -> str:
    """Why texts cannot be annotated with a pipeline; empty when they can."""
    try:
        find_pipeline(pipeline)
        import_spacy()
    except WhyrankError as error:
        return str(error)
    return ""


CONTROL = "re-space"
_OWN = ("respace", "compat", "analyzer", "pipeline", "pairs", "candidates", "seed")
_COMPAT = ("abnirml",)
_PUBLISHED_SEED = 42


@dataclass(frozen=True)
class Edited:
    """Every text of a pool against its edited form, the edited form first.

    Attributes:
        name: the edit.
        options: options of the edit, as pairs of name and value.
        respace: edit the parser's tokens joined by blanks, as published, instead of the text as it stands.
        compat: `abnirml` reproduces the released code, slips and random streams included.
        analyzer: whose stop words are stop words.
        pipeline: the spaCy pipeline that annotates, where an edit needs it.
        pairs: `judged`, or `top:K` of the run `candidates`.
        seed: of all that is random; each text has a generator of its own.
    """

    name: str
    options: tuple[tuple[str, Any], ...] = ()
    respace: bool = False
    compat: str | None = None
    analyzer: str = "lucene"
    pipeline: str = "en_core_web_sm"
    pairs: str = "judged"
    candidates: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.compat not in (None, *_COMPAT):
            raise UnknownName("compat mode of edited probes", str(self.compat), _COMPAT)
        check_flag("respace", self.respace)
        check_whole("seed", self.seed, 0)
        for name in ("analyzer", "pipeline", "pairs", "candidates"):
            check_text(name, getattr(self, name))

    @property
    def id(self) -> str:
        """Call string."""
        defaults = Edited(self.name)
        own = {key: getattr(self, key) for key in _OWN if getattr(self, key) != getattr(defaults, key)}
        return str(Call(f"edited/{self.name}", None, {**dict(self.options), **own}))

    @property
    def positive(self) -> str:
        """What +1 means."""
        return f"prefers the text {in_words(self._edit)}"

    @property
    def symmetric(self) -> bool:
        """An edited probe has a direction."""
        return False

    @property
    def control_study(self) -> Edited | None:
        """The study that shows what joining tokens by blanks does on its own."""
        if self.name == CONTROL:
            return None
        return Edited(CONTROL, (), False, None, self.analyzer, self.pipeline, self.pairs, self.candidates)

    @property
    def unavailable(self) -> str:
        """What the edit would need that it does not have; empty when nothing is missing."""
        lacking = getattr(self._edit, "lacking", None)
        reason = lacking(dict(self.options)) if lacking else ""
        return reason or (missing(self.pipeline) if self.annotates else "")

    @property
    def respaces(self) -> bool:
        """Whether the edit works on tokens joined by blanks."""
        return self.respace or (bool(self.compat) and getattr(self._edit, "published_tokens", False))

    @property
    def annotates(self) -> bool:
        """Whether texts have to be annotated."""
        return self.respaces or bool({"annotation", "annotator"} & set(asks(self._edit)))

    def contrasts(self, collection: Collection) -> Contrasts:
        """Every text with its edited form; what an edit leaves empty, unchanged or does not apply to is counted."""
        run = _Run(self, collection)
        return Contrasts.from_pairs(run.pairs(), dropped=run.dropped)

    @property
    def _edit(self) -> Edit:
        found: Edit = edits.factory(self.name)
        return found


@dataclass(frozen=True, eq=False)
class _Run:
    """One study on one collection."""

    study: Edited
    collection: Collection
    dropped: Counter[str] = field(default_factory=Counter)

    def pairs(self) -> Iterator[Pair]:
        pools = Pools.of(self.collection, Source(self.study.pairs, self.study.candidates, self.study.analyzer))
        if self.study.annotates:
            annotator(self.study.pipeline).annotate(pools.texts)
        for pool in pools:
            for row in range(len(pool.doc_ids)):
                yield from self._pair(pool, row)

    def _pair(self, pool: Pool, row: int) -> Iterator[Pair]:
        text = pool.texts[row]
        edited = self._passage(pool, row).ask(self._edit, dict(self.study.options))
        reason = _reason(text, edited)
        if edited is None and "others" in asks(self._edit) and not self._others(pool, row):
            reason = "no non-relevant text of the query"
        if reason:
            self.dropped[reason] += 1
        else:
            yield Pair(pool.query, (str(edited), text), self._labels(pool, row))

    def _passage(self, pool: Pool, row: int) -> Passage:
        return Passage(
            pool.texts[row],
            pool.query,
            self._rng(pool.texts[row]),
            pool.pools.analyzer,
            Annotator(self.study.pipeline),
            lambda: self._others(pool, row),
            self.study.compat,
            self.study.respaces,
        )

    def _rng(self, text: str) -> random.Random:
        """A generator for this text alone; the released code has one stream for all texts of some edits."""
        if self.study.compat and getattr(self._edit, "published_stream", False):
            return self._stream
        if self.study.compat:
            return random.Random(f"{_PUBLISHED_SEED}{text}")
        return random.Random(seed_for(self.study.seed, self.study.name, text))

    def _others(self, pool: Pool, row: int) -> Sequence[str]:
        """Texts of non-relevant documents of the query, sorted, so that their order does not decide what is drawn.

        The released code takes them as they come and does not leave out the text itself.
        """
        worst = self.collection.grades.nonrelevant
        texts = [text for text, grade in zip(pool.texts, pool.relevance, strict=True) if grade <= worst]
        return texts if self.study.compat else sorted({*texts} - {pool.texts[row]})

    def _labels(self, pool: Pool, row: int) -> dict[str, Any]:
        grade, doc_id = float(pool.relevance[row]), pool.doc_ids[row]
        judged = not math.isnan(grade)
        group = self.collection.grades.group(int(grade)) if judged else "unjudged"
        relevance = int(grade) if judged else math.nan
        labels = {"query_id": pool.query_id, "doc_ids": (doc_id, doc_id)}
        return {**labels, "relevance": relevance, "relevance_group": group}

    @cached_property
    def _edit(self) -> Edit:
        return self.study._edit

    @cached_property
    def _stream(self) -> random.Random:
        return random.Random(_PUBLISHED_SEED)


class EditedFamily:
    """A probe for every registered edit."""

    def names(self) -> Iterable[str]:
        """Ids such as `edited/shuffle-words`."""
        return [f"edited/{name}" for name in edits.names()]

    def arguments(self, name: str) -> Sequence[str]:
        """What a probe accepts: its own arguments and the options of its edit."""
        return (*_OWN, *options_of(edits.factory(name.removeprefix("edited/"))))

    def make(self, name: str, **arguments: Any) -> Edited:
        """The probe with this id."""
        own = {key: value for key, value in arguments.items() if key in _OWN}
        options = tuple(sorted((key, value) for key, value in arguments.items() if key not in _OWN))
        return Edited(name.removeprefix("edited/"), options, **own)


family = EditedFamily()


def _reason(text: str, edited: str | None) -> str:
    """Why a question cannot be asked; empty when it can."""
    if edited is None:
        return "not applicable"
    if not edited.strip():
        return "empty after the edit"
    return "unchanged" if edited == text else ""
