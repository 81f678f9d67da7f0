"""`whyrank tables surprises`: what is odd in a term table, how significant it is, and what the ranker says to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whyrank.cli.command import argument, refuse
from whyrank.cli.console import Cell, p_value, plural, say, show_rows, star
from whyrank.cli.options import Scoring, check_file, open_collection, open_rankers
from whyrank.core import Share, Whole, WhyrankError

if TYPE_CHECKING:
    from whyrank.learners.surprises import Discovery, Surprise

ROOM = 70  # characters of a study that are shown
_CAPTION = """value: the value against its class, over query terms; spread: a class for one query term
appended: a character at the end of a word; evidence: terms together in n documents, by chance in 'others'
* p < {alpha:g} after correction ({correction}) over {tests:,} tests"""


@dataclass(frozen=True, kw_only=True)
class SurprisesCommand:
    """Rank a table for surprises, each with its test and the study to run on it.

    Of each kind the strongest are shown, and --confirm runs the studies of these.

    Attributes:
        table: a term table: .parquet, .arrow, .tsv or .tsv.gz.
        collection: for corpus evidence, and for the studies of --confirm.
        ranker: the ranker of --confirm.
        confirm: run the studies on the ranker, to see which surprises it confirms.
        vectors: word vectors, for classes of near terms.
        pipeline: for entity types in the collection; spaCy's if installed, or none.
        values: a class of your own: a file, or a+b+c.
        show: how many rows to show.
        limit: at most N contrasts per study (of a bias study N templates), drawn at random.
        alpha: level of significance, after correction.
        correction: over the whole table: holm, bonferroni, bh or none.
        seed: seed of everything random.
        store: where scores are kept; 'none' keeps nothing. Default: the user's cache folder.
        out: a .json file with all that was tested.
        json: print JSON on standard output.
    """

    table: str = argument("TABLE")
    collection: str | None = None
    ranker: str | None = None
    confirm: bool = False
    vectors: str | None = None
    pipeline: str | None = None
    values: str | None = None
    show: Whole = 5
    limit: Whole | None = None
    alpha: Share = 0.05
    correction: str = "bh"
    seed: int = 0
    store: str | None = None
    out: str | None = None
    json: bool = False

    def run(self) -> None:
        """Search, run the studies where that is wanted, print and write."""
        from whyrank.learners.surprises import Looking, absent_entries, confirm, surprises
        from whyrank.tables import open_table
        from whyrank.text.vectors import open_vectors

        self._check()
        opened, vectors = open_table(self.table, check=True), open_vectors(self.vectors) if self.vectors else None
        texts = open_collection(self.collection) if self.collection else None
        pipeline = self._open_pipeline()
        found = surprises(opened, Looking(vectors, pipeline, self.values, texts, self.correction, seed=self.seed))
        shown = found.first(self.show)
        if self.confirm and self.ranker and texts is not None:
            significant = [each for each in shown if each.p_adjusted < self.alpha and each.study]
            [ranker] = open_rankers([self.ranker], texts, str(opened.facts.get("analyzer") or "lucene"))
            engine = Scoring(store=self.store).engine()
            shown = confirm(significant, ranker, texts, engine, opened, self.alpha, self.seed, self.limit)
        self._give(found, shown)
        if absent := absent_entries(opened):
            say(f"note: {absent} are not in this table; how low a weight is cannot be judged")
        for line in (*found.notes, *found.unjudged):
            say(f"note: {line}")
        outcome = f"; {_answers(shown)}" if self.confirm else ""
        count = plural(len(found.significant(self.alpha)), "surprise")
        say(f"{count} in {len(found.surprises):,} tests{outcome}: {self.table}")
        if self.confirm and shown and all(each.outcome.startswith("not answered") for each in shown):
            what = "has no finite score for any text; take one that scores any text"
            raise WhyrankError(f"ranker {self.ranker!r} {what}")

    def _check(self) -> None:
        from whyrank.core import adjust

        adjust([], self.correction)
        if not self.confirm:
            refuse(self, ("ranker",), "is for --confirm, which puts the studies to it")
            refuse(self, ("limit",), "is for --confirm: the most templates of a study")
        elif not (self.ranker and self.collection):
            raise WhyrankError(
                "--confirm needs --ranker SPEC and --collection SPEC: the ranker, and the texts to make templates of"
            )
        check_file(self.out, [".json"], "surprises")
        if self.pipeline not in (None, "none") and self.collection is None:
            remedy = "give them with --collection SPEC"
            raise WhyrankError(f"--pipeline {self.pipeline} finds entity types in texts; {remedy}")

    def _open_pipeline(self) -> str | None:
        """The pipeline that finds entity types in texts: the given one, else the English one if installed."""
        from whyrank.text.annotation import ENGLISH, find_pipeline

        if self.pipeline == "none" or (self.pipeline is None and self.collection is None):
            return None
        try:
            find_pipeline(self.pipeline or ENGLISH)
        except WhyrankError as error:
            if self.pipeline:
                raise
            say(f"note: no classes by entity type: {error}")
            return None
        return self.pipeline or ENGLISH

    def _give(self, found: Discovery, shown: Sequence[Surprise]) -> None:
        """Print what is shown, and write it with all that was tested."""
        from whyrank.core import write_text

        notes = {"unjudged": found.unjudged, "notes": found.notes}
        record = {"surprises": [s.as_dict() for s in shown], **notes, "tests": len(found.surprises)}
        if self.out:
            every = {"tested": [s.as_dict() for s in found.surprises]}
            write_text(self.out, json.dumps(record | every, indent=1) + "\n")
        if self.json:
            print(json.dumps(record, indent=1))
            return
        answers = {None: "", True: "yes: ", False: "no: "}
        columns: dict[str, Cell] = {
            "kind": "kind", "class": "group", "query term": lambda s: s.query_term or "all",
            "value": "value", "weight": ("weight", ".4g"), "others": ("others", ".4g"), "n": ("n", ","),
            "p": ("p_value", "p"),
            "p adj.": lambda s: p_value(s.p_adjusted) + star(s.p_adjusted, self.alpha),
            "confirmed": lambda s: answers[s.confirmed] + s.outcome or "–",
            "study": lambda s: s.study if len(s.study) <= ROOM else s.study[: ROOM - 1] + "…",
        }  # fmt: skip
        caption = _CAPTION.format(alpha=self.alpha, correction=self.correction, tests=len(found.surprises))
        show_rows("", shown, columns, 4, caption)


def _answers(shown: Sequence[Surprise]) -> str:
    """How many are confirmed, of those that were tested, and how many could not be."""
    answered = [s for s in shown if s.confirmed is not None]
    silent = len(shown) - len(answered)
    lacking = "no templates in the collection, no scores, no test or no study"
    confirmed = f"{sum(s.confirmed is True for s in answered)} of {len(answered)} asked about are confirmed"
    return f"{confirmed}; {silent} {'has' if silent == 1 else 'have'} {lacking}" if silent else confirmed
