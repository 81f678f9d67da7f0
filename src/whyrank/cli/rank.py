"""`whyrank rank`: a TREC run from a ranker, or from an axiom and the candidates of another run."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from whyrank.cli.command import refuse
from whyrank.cli.console import plural, say, tell_computed, tell_failures
from whyrank.cli.options import Input, RankerOptions, Scoring, token_limit
from whyrank.core import Whole, WhyrankError, printable

if TYPE_CHECKING:
    from whyrank.core import Ranker
    from whyrank.data import Collection, Run
    from whyrank.studies.axioms import Axiom


@dataclass(frozen=True, kw_only=True)
class RankCommand(Scoring, RankerOptions, Input):
    """Retrieve from the collection with BM25, or re-rank the candidates of a run with any ranker or axiom.

    --depth is how many documents are retrieved, or with --axiom re-ranked.

    Attributes:
        ranker: a ranker's call string, such as bm25(k1=1.2); bm25 by default.
        axiom: re-rank the candidates by an axiom in place of a ranker, such as 'TFC1' or '(TFC1 & M-AND) | -DIV'.
        aggregation: from preferences of an axiom to an order: kwiksort (default), tournament.
        max_tokens: axioms cut texts to so many tokens, to count and to score; 512, or none.
        candidates: a run file, or the name of a run of the collection.
        depth: documents per query.
        seed: seed of everything random.
        out: where the run is written; standard output by default.
        metadata: begin it with a header of ir_metadata; trec_eval and others may want it removed.
    """

    ranker: tuple[str, ...] = ()
    axiom: str | None = None
    aggregation: str | None = None
    max_tokens: str | None = None
    candidates: str | None = None
    depth: Whole = 1000
    seed: int = 0
    out: str | None = None
    metadata: bool = False

    def run(self) -> None:
        """Rank and write."""
        from whyrank.data import run_lines, write_run
        from whyrank.scoring import run_metadata

        self._check()
        if self.axiom is None:
            collection = self.open_collection()
            [ranker] = self.open_rankers(self.ranker or ["bm25"], collection)
            run, tag, method = self._by_ranker(ranker, collection), ranker.name, repr(ranker)
        else:
            from whyrank.studies.axioms import rerank

            axiom, tag, method = self._open_axiom(self.axiom), self.axiom, self.axiom
            collection = self.open_collection()
            given = self.open_run(collection, self.candidates or "")
            run = rerank(axiom, collection, given, self.aggregation or "kwiksort", self.seed, self.depth)
        words = ["whyrank", *(tag if "://" in word else word for word in sys.argv[1:])]  # an address may hold a key
        header = run_metadata(tag, collection, method, self.candidates, words) if self.metadata else None
        if self.out:
            write_run(self.out, run, tag, header)
        else:
            shown = printable if sys.stdout.isatty() else str  # in a file, ids stay as they are
            sys.stdout.writelines(shown(line) + "\n" for line in run_lines(run, tag, header))
        lines, queries = plural(sum(map(len, run.values())), "line"), plural(len(run), "query", "queries")
        say(f"{lines} for {queries} by {tag}" + (f": {self.out}" if self.out else ""))

    def _check(self) -> None:
        """Raise an error for options that do not go together."""
        if self.axiom is None:
            refuse(
                self,
                ("aggregation", "max_tokens"),
                "is for the order that an axiom prefers; name one with --axiom EXPR",
            )
            if len(self.ranker) > 1:
                raise WhyrankError("rank takes one --ranker at a time")
            return
        scoring = ["ranker", "precision", *(each.name for each in fields(Scoring))]
        refuse(self, scoring, "is for scores, and --axiom orders candidates without scoring them; leave out one")
        if not self.candidates:
            raise WhyrankError("--axiom re-ranks the documents of a run; name it with --candidates RUN")

    def _open_axiom(self, text: str) -> Axiom:
        """The axiom of an expression; an error for one that compares no two documents."""
        from whyrank.studies.axioms import Axiom, check_pairs, parse_expression

        made = parse_expression(text, analyzer=self.analyzer, stats=self.stats, **token_limit(self.max_tokens))
        check_pairs(made)
        if made.pairs != Axiom.pairs:
            where = f"the documents of --candidates, up to --depth; leave out pairs={made.pairs}"
            raise WhyrankError(f"--axiom takes {where}")
        return made

    def _by_ranker(self, ranker: Ranker, collection: Collection) -> Run:
        from whyrank.scoring import rerank, retrieve

        given = self.open_run(collection, self.candidates) if self.candidates else None
        if given is not None:
            run, failures = rerank(self.engine(), ranker, collection, given)
        else:
            run, failures = retrieve(self.engine(), ranker, collection, self.depth, self.analyzer, self.stats)
        tell_failures(failures)
        if failures and not any(run.values()):
            what = "has no finite score for any document, so there is no run; mend the ranker"
            raise WhyrankError(f"{ranker.name!r} {what}")
        tell_computed([ranker])
        _tell_undecided(run)
        return run


def _tell_undecided(run: Run) -> None:
    """Say which queries give no order, such as those whose words the ranker drops or does not know."""
    alike = [q for q, scores in run.items() if len(scores) > 1 and len(set(scores.values())) == 1]
    if alike:
        few = ", ".join(alike[:5]) + ", ..." * (len(alike) > 5)
        whose = "its documents" if len(alike) == 1 else "their documents"
        queries = f"{plural(len(alike), 'query', 'queries')} ({few})"
        say(f"note: {queries}: all of {whose} have the same score; perhaps the ranker knows no word of the query")
