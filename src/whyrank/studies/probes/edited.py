"""Textual manipulation probes: each judged text against the same text with one thing changed.

MacAvaney et al., "ABNIRML: Analyzing the Behavior of Neural IR Models", TACL 2022 (and arXiv 2011.00696v1, 2020).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, Literal

from whyrank.core import Call, Checked, Natural, WhyrankError, check_arguments, seed_for
from whyrank.data import Collection
from whyrank.studies.contrasts import Contrasts, Pair, TextIds
from whyrank.studies.pools import Pool, Pools, Source
from whyrank.text.annotation import Annotator, find_pipeline, import_spacy
from whyrank.text.annotation.annotator import annotator
from whyrank.text.edits import Edit, Passage, edits, in_words, inputs_of, options_of

CONTROL = "re-space"
_PUBLISHED_SEED = 42


@dataclass(frozen=True)
class Edited(Checked):
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
    compat: Literal["abnirml"] | None = None
    analyzer: str = "lucene"
    pipeline: str = "en_core_web_sm"
    pairs: str = "judged"
    candidates: str | None = None
    seed: Natural = 0

    registered: ClassVar[str] = "edited"
    symmetric: ClassVar[bool] = False
    makes_texts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_arguments(self.name, self._edit, dict(self.options))

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
    def made_of(self) -> tuple[Edit]:
        """The edit, which may be somebody else's."""
        return (self._edit,)

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
        return self.respaces or bool({"annotation", "annotator"} & set(inputs_of(self._edit)))

    def contrasts(self, collection: Collection) -> Contrasts:
        """Every text with its edited form; what an edit leaves empty, unchanged or does not apply to is counted."""
        return self.contrasts_of(collection, self.text_ids(collection))

    def text_ids(self, collection: Collection) -> list[TextIds]:
        """Every text that there is to edit."""
        return self._pools(collection).text_ids

    def contrasts_of(self, collection: Collection, drawn: Iterable[TextIds]) -> Contrasts:
        """The contrasts of some texts; no other text is annotated or edited."""
        dropped: Counter[str] = Counter()
        return Contrasts.from_pairs(self._pairs(collection, frozenset(drawn), dropped), dropped=dropped)

    @property
    def _edit(self) -> Edit:
        found: Edit = edits.factory(self.name)
        return found

    def _pools(self, collection: Collection) -> Pools:
        return Pools.of(collection, Source(self.pairs, self.candidates, self.analyzer))

    def _pairs(self, collection: Collection, drawn: frozenset[TextIds], dropped: Counter[str]) -> Iterator[Pair]:
        pools, one_stream = self._pools(collection), self.compat and getattr(self._edit, "published_stream", False)
        rows = {  # where all texts share one random stream, none can be left out
            pool: [row for row, doc_id in enumerate(pool.doc_ids) if one_stream or (pool.query_id, doc_id) in drawn]
            for pool in pools
        }
        if self.annotates:
            annotator(self.pipeline).annotate([pool.texts[row] for pool, some in rows.items() for row in some])
        edit, options, generators = self._edit, dict(self.options), self._generators()
        for pool, some in rows.items():
            for row in some:
                text = pool.texts[row]
                others = partial(self._others, pool, text)
                parts = (pool.query, generators(text), pool.pools.analyzer, Annotator(self.pipeline), others)
                edited = Passage(text, *parts, self.compat, self.respaces).apply(edit, options)
                if (pool.query_id, pool.doc_ids[row]) not in drawn:
                    continue
                if edited is None and "others" in inputs_of(edit) and not others():
                    dropped["no non-relevant text of the query"] += 1
                elif edited is None:
                    dropped["not applicable"] += 1
                elif not edited.strip():
                    dropped["empty after the edit"] += 1
                elif edited == text:
                    dropped["unchanged"] += 1
                else:
                    doc_id, (grade, group) = pool.doc_ids[row], pool.judgement(row)
                    ids = {"query_id": pool.query_id, "doc_ids": (doc_id, doc_id)}
                    labels: dict[str, Any] = {**ids, "relevance": grade, "relevance_group": group}
                    yield Pair(pool.query, (edited, text), labels)

    def _generators(self) -> Callable[[str], random.Random]:
        """A generator for each text alone; the released code has one stream for all texts of some edits."""
        if not self.compat:
            return lambda text: random.Random(seed_for(self.seed, self.name, text))
        if getattr(self._edit, "published_stream", False):
            stream = random.Random(_PUBLISHED_SEED)
            return lambda text: stream
        return lambda text: random.Random(f"{_PUBLISHED_SEED}{text}")

    def _others(self, pool: Pool, text: str) -> Sequence[str]:
        """Texts of non-relevant documents of the query, sorted, so that their order does not decide what is drawn.

        The released code takes them as they come and does not leave out the text itself.
        """
        worst = pool.pools.collection.grades.nonrelevant
        texts = [other for other, grade in zip(pool.texts, pool.relevance, strict=True) if grade <= worst]
        return texts if self.compat else sorted({*texts} - {text})


_OWN = tuple(field.name for field in fields(Edited) if field.name not in ("name", "options"))


def missing(pipeline: str) -> str:
    """Why texts cannot be annotated with a pipeline; empty when they can."""
    try:
        find_pipeline(pipeline)
        import_spacy()
    except WhyrankError as error:
        return str(error)
    return ""


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
