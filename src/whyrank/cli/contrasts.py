"""`whyrank contrasts`: the contrasts of a study, or the preferences of axioms, as a diagnostic data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyrank.cli.command import argument, refuse
from whyrank.cli.console import plural, say, tell_computed, tell_failures
from whyrank.cli.options import check_file, token_limit
from whyrank.cli.studies import PREFIX, StudyOptions, make_request, study_pattern
from whyrank.core import WhyrankError

if TYPE_CHECKING:
    from whyrank.data import Collection
    from whyrank.studies import Contrasts, Labels, Plan
    from whyrank.studies.axioms import Axiom

SUFFIXES = (".jsonl", ".parquet")


@dataclass(frozen=True, kw_only=True)
class ContrastsCommand(StudyOptions):
    """Write the contrasts of a study, with --ranker each contrast's scores and effect.

    Of several axioms: what each prefers, one column each, over all pairs of documents of each query.

    Attributes:
        study: a study's name or call string, such as 'matched/length|tf' or TFC1, or an expression: 'TFC1 & M-AND';
            several for axioms: 'axiom/PROX*'.
        features: of axioms, one row per document: its mean, largest and least preference over the others.
        out: a .jsonl or .parquet file; of one study also a folder, which `datasets` reads, with a card.
    """

    study: tuple[str, ...] = argument("STUDY")
    features: bool = False
    out: str

    def run(self) -> None:
        """Write the file."""
        from whyrank.studies import all_studies, check_target

        names = [study_pattern(study) for study in self.study]
        found = [name for each in names for name in all_studies().match(each)]
        if len(found) == 1 and not self.features:
            check_target(self.out)
            self._write_contrasts(found[0], names)
        elif all(name.startswith(PREFIX) for name in found):
            check_file(self.out, SUFFIXES, "preferences of axioms")
            self._write_preferences()
        else:
            what = f"contrasts writes one study at a time, or several axioms, and {len(found)} match"
            raise WhyrankError(f"{what}; name one: {found[0]}, ...")

    def _write_contrasts(self, name: str, given: Sequence[str]) -> None:
        from whyrank.studies import choose_studies, draw_contrasts, save

        columns: dict[str, Labels] = {}
        if self.ranker:
            plan, found, columns = self._score_contrasts(given)
            collection, notes, [study] = plan.collection, plan.notes, plan.studies.values()
        else:
            collection, studies, notes = choose_studies(make_request(self, given))
            [study] = studies.values()
            found = draw_contrasts(study, collection, self.limit, self.seed).contrasts
        for note in notes:
            say(f"note: {note}")
        about = f"The collection is {collection.name}. A ranker with a positive effect {study.positive}."
        save(found, self.out, columns, name, about)
        reasons = "".join(f"; {reason} {count:,}" for reason, count in sorted(found.dropped.items()) if count)
        counted = f"{plural(len(found), 'contrast')} of {self.study[0]}{reasons}"
        say(f"{counted}, fingerprint {found.fingerprint[:16]}: {self.out}")

    def _score_contrasts(self, given: Sequence[str]) -> tuple[Plan, Contrasts, dict[str, Labels]]:
        """The plan, and contrasts with a column of scores, differences and effects per ranker."""
        from whyrank.studies import answers, make_plan

        plan = make_plan(make_request(self, given))
        found = list(answers(plan))
        if len({answer.contrasts.fingerprint for answer in found}) > 1:
            what = f"{self.study[0]} chooses its texts by the scores of a ranker, so each has contrasts of its own"
            raise WhyrankError(f"{what}; give one --ranker at a time")
        columns: dict[str, Labels] = {}
        for answer in found:
            prefix, read = f"{answer.ranker} " if len(found) > 1 else "", answer.reading
            scored: dict[str, Labels] = {"scores": read.scores, "diff": read.diffs, "effect": read.effects}
            columns |= {prefix + name: column for name, column in scored.items()}
        tell_failures([failure for answer in found for failure in answer.failures])
        tell_computed(plan.rankers)
        return plan, found[0].contrasts, columns

    def _write_preferences(self) -> None:
        scoring = ("ranker", "compat", "tolerance", "delta", "delta_from", "limit")
        refuse(self, scoring, "is not for preferences of several axioms; leave it out, or name one study")
        given = {"analyzer": self.analyzer, "pairs": self.pairs, "candidates": self.candidates, "stats": self.stats}
        common = {name: value for name, value in given.items() if value is not None} | token_limit(self.max_tokens)
        chosen = chosen_axioms(self.study, common)
        opened = self.open_collection()
        if self.candidates:  # no such run is an error, whether pairs come from it or not
            self.open_run(opened, self.candidates)
        paired = chosen if self.pairs else _pair(chosen, opened, self.candidates)
        rows = _save(self.out, paired, opened, self.features)
        what = plural(rows, "document") if self.features else plural(rows, "pair")
        say(f"{what} by {plural(len(chosen), 'axiom')}: {self.out}")


def chosen_axioms(patterns: Sequence[str], common: Mapping[str, Any]) -> dict[str, Axiom]:
    """The axioms of names, expressions and patterns that compare two documents, by the names of their columns."""
    from whyrank.studies.axioms import axioms, check_pairs, column_name, is_pattern, parse_expression

    found: dict[str, Axiom] = {}
    for pattern in patterns:
        if not is_pattern(pattern):
            made = parse_expression(pattern, **common)
            named = {column_name(pattern, made): made}
        else:
            named = {}
            for name in axioms.match(PREFIX + pattern.removeprefix(PREFIX)):
                made = axioms.create(name, **common)
                try:
                    check_pairs(made)
                except WhyrankError as error:
                    say(f"note: left out: {error}")
                    continue
                if reason := getattr(made, "unavailable", ""):
                    say(f"note: left out, because {reason}: {name.removeprefix(PREFIX)}")
                    continue
                named[name.removeprefix(PREFIX)] = made
        found |= {name: axiom for name, axiom in named.items() if axiom not in found.values()}
    if not found:
        raise WhyrankError(f"no axiom that compares two documents matches {', '.join(map(repr, patterns))}")
    return found


def _pair(chosen: dict[str, Axiom], collection: Collection, run: str | None) -> dict[str, Axiom]:
    """The axioms, over the first documents of a run where nothing is judged."""
    from dataclasses import replace

    from whyrank.studies import unjudged_note, unjudged_options

    if collection.qrels or {axiom.pairs for axiom in chosen.values()} != {"judged"}:
        return chosen
    options = unjudged_options(collection, run)
    say(f"note: {unjudged_note(collection, options)}")
    return {name: replace(axiom, **options.get("axioms", {})) for name, axiom in chosen.items()}


def _save(out: str, axioms: Mapping[str, Axiom], collection: Collection, features: bool) -> int:
    """Write preferences as Parquet, or by way of that as JSON lines; gives the number of rows."""
    import json
    from tempfile import TemporaryDirectory

    import pyarrow.parquet as pq

    from whyrank.core import replacing
    from whyrank.studies.axioms import save_preferences

    if out.endswith(".parquet"):
        return save_preferences(out, axioms, collection, features)
    with TemporaryDirectory() as folder, replacing(out) as beside, open(beside, "w", encoding="utf-8") as lines:
        path = Path(folder) / "preferences.parquet"
        rows = save_preferences(path, axioms, collection, features)
        for batch in pq.ParquetFile(path).iter_batches():
            lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())
    return rows
