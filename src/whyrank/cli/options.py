"""Options that several commands share, with what they open: collection, rankers, engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from whyrank.cli.command import option_name
from whyrank.cli.console import keeps, say
from whyrank.core import Whole

if TYPE_CHECKING:
    from whyrank.core import Ranker
    from whyrank.data import Collection, Run
    from whyrank.scoring import Engine

BUNDLED_RANKERS = ("bm25", "ql")


@dataclass(frozen=True, kw_only=True)
class Input:
    """The collection; options that name files stand for the collection `files(...)`.

    Attributes:
        collection: a folder, PATH:SPLIT, a BEIR folder, irds:ID, files(...), or 'sample'.
        strict: empty texts, and judgements or runs of unknown documents or queries, are errors.
        docs: documents in a CSV, TSV, JSONL or Parquet file, in place of --collection; columns that are not named are
            recognised by their names.
        doc_text: columns of their text, such as 'title,description'.
        doc_id: column of their ids.
        queries: queries in such a file.
        query_text: column of their text.
        query_id: column of their ids.
        qrels: judgements in such a file, or in TREC's format.
        qrels_columns: columns of query, document and grade, such as 'query,sku,grade'.
    """

    collection: str = "sample"
    strict: bool = False
    docs: str | None = None
    doc_text: str | None = None
    doc_id: str | None = None
    queries: str | None = None
    query_text: str | None = None
    query_id: str | None = None
    qrels: str | None = None
    qrels_columns: str | None = None

    files: ClassVar[tuple[str, ...]] = (
        "docs",
        "doc_text",
        "doc_id",
        "queries",
        "query_text",
        "query_id",
        "qrels",
        "qrels_columns",
    )

    def __post_init__(self) -> None:
        """Turn files and columns into the call string of a collection."""
        from whyrank.core import Call, WhyrankError

        given = {name: value for name in self.files if (value := getattr(self, name)) is not None}
        if not given:
            return
        if self.docs is None:
            raise WhyrankError(f"{option_name(next(iter(given)))} needs --docs FILE, the file with the documents")
        if self.collection not in ("sample", ("sample",), (), None):
            raise WhyrankError("--docs and --collection name two collections; give one of them")
        if self.qrels_columns is not None and self.qrels is None:
            raise WhyrankError("--qrels-columns needs --qrels FILE, the file with the judgements")
        spec = str(Call("files", None, given))
        made: Any = (spec,) if isinstance(self.collection, tuple) else spec
        for name, value in {**dict.fromkeys(given), "collection": made}.items():
            object.__setattr__(self, name, value)

    def open_collection(self, spec: str | None = None) -> Collection:
        """Open the collection, or another one, and say what was odd in it."""
        return open_collection(spec or self.collection, self.strict)

    def open_run(self, collection: Collection, name: str) -> Run:
        """Open a run of the collection or a run file, and say what was odd in it."""
        from whyrank import data

        run, notes = data.open_run(collection, name, self.strict)
        for note in notes:
            say(f"note: {note}")
        return run


@dataclass(frozen=True, kw_only=True)
class Lexical:
    """How words are counted.

    Attributes:
        analyzer: how words are counted: lucene, krovetz, terrier(stopwords=FILE), whitespace, ...
        stats: background statistics of lexical rankers and axioms, if not the collection's own; a collection or a
            file of `data stats`.
    """

    analyzer: str = "lucene"
    stats: str | None = None


@dataclass(frozen=True, kw_only=True)
class RankerOptions(Lexical):
    """How rankers are opened.

    Attributes:
        precision: how neural rankers compute that do not say it themselves: exact, or fast, which is bf16 where the
            hardware has it.
    """

    precision: str | None = None

    def open_rankers(self, specs: Sequence[str], collection: Collection, typed: bool = False) -> list[Ranker]:
        """Open some rankers over a collection, the lexical ones when none are named."""
        return open_rankers(specs, collection, self.analyzer, self.stats, self.precision, typed)


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How pairs are scored.

    Attributes:
        executor: serial, processes, ray, or a call string such as processes(workers=4).
        ray_address: the Ray cluster of the executor ray, such as ray://host:10001 or auto; without one, it starts a
            cluster on this machine.
        batch_size: pairs per call of the ranker.
        store: where scores are kept; 'none' keeps nothing. Default: the user's cache folder.
        fresh: delete the stored scores of these rankers, and score again.
        timeout: seconds allowed for a batch; a pair that takes longer by itself has no score.
    """

    executor: str = "serial"
    ray_address: str | None = None
    batch_size: Whole | None = None
    store: str | None = None
    fresh: bool = False
    timeout: float | None = None

    def engine(self) -> Engine:
        """An engine with the user's score store, another one, or none; a time limit needs a process to kill."""
        from dataclasses import replace

        from whyrank.core import Processes, Ray, Serial, WhyrankError
        from whyrank.core import executor as executor_named
        from whyrank.scoring import Engine, ScoreStore

        if self.store != "none":
            keeps("scored pairs")
        store = None if self.store == "none" else ScoreStore(self.store)
        made = executor_named(self.executor)
        if self.ray_address is not None:
            if not isinstance(made, Ray):
                raise WhyrankError(f"--ray-address needs the executor ray, not {self.executor}")
            made = replace(made, address=self.ray_address)
        if self.timeout is not None:
            made = Processes(1) if isinstance(made, Serial) else made
            if not isinstance(made, Processes):
                raise WhyrankError(f"--timeout needs the executor serial or processes, not {self.executor}")
            made = replace(made, timeout=self.timeout)
        return Engine(store, made, self.batch_size, self.fresh, warn=lambda text: say(f"warning: {text}"))


def open_collection(spec: str, strict: bool = False) -> Collection:
    """Open a collection and say what was odd in it."""
    from whyrank import data

    collection = data.open_collection(spec, strict)
    for note in collection.notes:
        say(f"note: {collection.name}: {note}")
    return collection


def open_rankers(
    specs: Sequence[str],
    collection: Collection | None,
    analyzer: str,
    stats: str | None = None,
    precision: str | None = None,
    typed: bool = False,
) -> list[Ranker]:
    """Open some rankers, the lexical ones when none are given; `NAME=SPEC` names one, `typed` as in `Setting`."""
    from whyrank.core import WhyrankError, check
    from whyrank.rankers import Setting, open_ranker
    from whyrank.rankers.neural import Precision

    check("--precision", precision, Precision | None)
    setting = Setting(collection, analyzer, stats, precision, typed)
    found = [open_ranker(spec, setting) for spec in specs or BUNDLED_RANKERS]
    names = [ranker.name for ranker in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise WhyrankError(f"ranker {twice[0]!r} is given twice")
    return found


def check_file(out: str | None, suffixes: Sequence[str], what: str) -> None:
    """Raise an error for a file whose name ends otherwise, or that cannot be written."""
    from whyrank.core import BadInput, check_writable

    if out is not None:
        if not out.endswith(tuple(suffixes)):
            raise BadInput(out, f"{what} cannot be written so", f"end the name in {' or '.join(suffixes)}")
        check_writable(out)


def token_limit(given: str | None) -> dict[str, int | None]:
    """The argument `max_tokens` of axioms that `--max-tokens` stands for; none where the option is left out."""
    from whyrank.core import WhyrankError

    if given is None:
        return {}
    if given == "none":
        return {"max_tokens": None}
    if not (given.isascii() and given.isdigit() and int(given)):
        raise WhyrankError(f"--max-tokens {given!r}: give a whole number, 1 or more, or none")
    return {"max_tokens": int(given)}
