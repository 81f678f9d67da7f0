"""A term table from a PaRM: every pair of two vocabularies, or those that a cascade proposes.

    pass  # INNER
    made = build_table(Build("network", ["sample"], "lucene", query_terms=100), "thesaurus.parquet")

Three steps, so that the second can run on a machine that has torch alone: `prepare_build`, then
`python -m whyrank.learners.parm.pairs.main FOLDER`, then `collect_build`.
"""

from __future__ import annotations

import gzip
import json
import shutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import (
    LOCK,
    BadInput,
    Ints,
    WhyrankError,
    call_of,
    check_flag,
    check_number,
    check_place,
    check_text,
    check_whole,
    exclusive,
    list_checksums,
    replacing,
)
from whyrank.data import Collection, open_collection
from whyrank.learners.parm.pairs import (
    ARCHITECTURE,
    NETWORK,
    RESULTS,
    TASK,
    TERMS,
    Entries,
    How,
    Results,
    Say,
    Settings,
    Task,
    audits,
    distinct,
    load_task,
    open_parm,
    read_log,
    save_task,
    score_folder,
    told_by,
)
from whyrank.networks import BARE, CONFIG, TOKENS, WEIGHTS, Pieces, around, frame_of, is_network, read_config, save
from whyrank.rankers.lexical import Background
from whyrank.tables import SUFFIXES, TermTable, check_suffix
from whyrank.text import Analyzer, analyzers

# The vocabulary of a term table: terms of collections under an analyzer, the most frequent ones first.

QUERY_TERMS, DOC_TERMS = 10_000, 100_000
_Counted = tuple[int, int]  # texts and occurrences of a term


class TermCounts(NamedTuple):
    """Terms, in how many texts each occurs and how often, the most frequent by texts first; ties go by spelling."""

    terms: list[str]
    texts: Ints
    occurrences: Ints

    def first(self, n: int) -> TermCounts:
        """The most frequent ones."""
        return TermCounts(self.terms[:n], self.texts[:n], self.occurrences[:n])


class TermVocabulary(NamedTuple):
    """Query terms and document terms, each with the number of texts that have it."""

    queries: TermCounts
    docs: TermCounts
    audited: list[int]


def term_counts(collections: Sequence[Collection], analyzer: Analyzer) -> TermCounts:
    """All terms of some collections; a text of two collections counts twice."""
    totals: dict[str, _Counted] = {}
    for collection in collections:
        counted = Background.of(collection.docs, analyzer)
        for term, df, cf in zip(counted.terms, counted.df.tolist(), counted.cf.tolist(), strict=True):
            before = totals.get(term, (0, 0))
            totals[term] = before[0] + df, before[1] + cf
    return _ordered(totals)


def make_vocabulary(
    collections: Sequence[Collection], analyzer: Analyzer | str, query_terms: int = QUERY_TERMS,
    doc_terms: int = DOC_TERMS, from_queries: bool = False, audited: Sequence[str] = (),
    queries_of: Sequence[Collection] = (), doc_words: Sequence[str] = (),
) -> TermVocabulary:  # fmt: skip
    """The terms of a table.

    Args:
        collections: their texts are counted.
        analyzer: makes the terms, and drops stop words where it does.
        query_terms: so many, the most frequent in the texts.
        doc_terms: so many on the document side.
        from_queries: query terms are those of the collections' queries only.
        audited: words whose terms are query terms in any case.
        queries_of: collections whose queries have all their terms among the query terms, on top of the others.
        doc_words: words whose terms are document terms, on top of the others, whether a text has them or not.
    """
    check_whole("query_terms", query_terms, 1)
    check_whole("doc_terms", doc_terms, 1)
    made = analyzers.create(analyzer) if isinstance(analyzer, str) else analyzer
    counted = term_counts(collections, made)
    if not counted.terms:
        raise WhyrankError(f"no text has a word under {made.id}; choose another --analyzer or collection")
    asked = _of_queries(collections, made, counted) if from_queries else counted
    needed = _asked(queries_of, made, "--queries-of") if queries_of else set()
    queries = _with(asked.first(query_terms), counted, [*needed, *(_term(made, word) for word in audited)])
    places = {term: i for i, term in enumerate(queries.terms)}
    kept = list(dict.fromkeys(places[_term(made, word)] for word in audited))
    more = dict.fromkeys(term for word in doc_words for term in made.terms(word))
    return TermVocabulary(queries, _with(counted.first(doc_terms), counted, list(more)), kept)


def _of_queries(collections: Sequence[Collection], analyzer: Analyzer, counted: TermCounts) -> TermCounts:
    """The terms of queries, the most frequent in the texts first; those of no text last."""
    own = _asked(collections, analyzer, "--from-queries")
    return _with(_only(counted, own), counted, sorted(own))


def _asked(collections: Sequence[Collection], analyzer: Analyzer, option: str) -> set[str]:
    """The terms of the queries of some collections."""
    texts = [query for collection in collections for query in collection.queries.values()]
    names = analyzer.vocabulary.terms
    own = {names[i] for i in np.unique(analyzer.queries(texts).ids)} if texts else set()
    if not own:
        raise WhyrankError(f"the collections have no queries with words; leave out {option}")
    return own


def _only(counted: TermCounts, terms: set[str]) -> TermCounts:
    places = [i for i, term in enumerate(counted.terms) if term in terms]
    return TermCounts([counted.terms[i] for i in places], counted.texts[places], counted.occurrences[places])


def _with(chosen: TermCounts, counted: TermCounts, terms: Sequence[str]) -> TermCounts:
    """Some terms besides, each in its place by frequency."""
    known = _vocabulary_counts(counted)
    return _ordered(_vocabulary_counts(chosen) | {term: known.get(term, (0, 0)) for term in terms})


def _vocabulary_counts(counted: TermCounts) -> dict[str, _Counted]:
    both = zip(counted.texts.tolist(), counted.occurrences.tolist(), strict=True)
    return dict(zip(counted.terms, both, strict=True))


def _ordered(totals: Mapping[str, _Counted]) -> TermCounts:
    terms = sorted(totals, key=lambda term: (-totals[term][0], term))
    columns = np.array([totals[term] for term in terms], np.int64).reshape(-1, 2)
    return TermCounts(terms, columns[:, 0], columns[:, 1])


def _term(analyzer: Analyzer, word: str) -> str:
    terms = analyzer.query_terms(word)
    if len(terms) != 1:
        found = "drops it" if not terms else f"makes {len(terms)} terms of it"
        raise WhyrankError(f"--audit {word!r}: the analyzer {analyzer.id} {found}; name one word that it keeps")
    return terms[0]


SPELLED, DEFAULT = "spelled.json.gz", "lucene"
_OURS = {TASK, TERMS, SPELLED, TOKENS, RESULTS}
_LONGEST = 32, 221  # pieces of terms, where no network says
_REMEDY = "make the folder again with `whyrank tables build NETWORK --prepare FOLDER`"


@dataclass(frozen=True)
class Build:
    """What a table is built from.

    Attributes:
        network: the folder of a parm network.
        collections: collections whose terms are counted, or the names of such.
        analyzer: makes the terms; by default the one that the network learned with, else lucene.
        query_terms: how many query terms at most.
        doc_terms: how many document terms at most.
        from_queries: query terms are those of the collections' queries only.
        audit: words whose weights are kept for all document terms.
        settings: threshold and method; `audited` is filled in.
        queries_of: collections, or names of such, whose queries' terms are query terms besides.
        doc_words: words whose terms are document terms besides, such as the values of a bias study.
        frame: what stands around terms, see `networks.frames`; by default what the network says, else nothing.
    """

    network: str | Path
    collections: Sequence[str | Collection]
    analyzer: str | None = None
    query_terms: int = QUERY_TERMS
    doc_terms: int = DOC_TERMS
    from_queries: bool = False
    audit: Sequence[str] = ()
    settings: Settings = field(default_factory=Settings)
    queries_of: Sequence[str | Collection] = ()
    frame: str | None = None
    doc_words: Sequence[str] = ()


class Built(NamedTuple):
    """A table, and that of the audited terms with all document terms where there are such."""

    table: TermTable
    audit: TermTable | None


def build_table(
    build: Build, out: str | Path, how: How | None = None, top: int | None = None, say: Say = print
) -> Built | None:
    """Build and write a table in one go; None where the time was up before the end.

    Blocks lie in a folder beside the table until it is written; the same call goes on from there.
    """
    check_out(out, bool(build.audit))
    read_config(Path(build.network))
    work = work_folder(out)
    with exclusive(f"{work}{LOCK}"):
        _forget_unscored(work)
        prepare_build(build, work, copy=False)
        if not score_folder(work, work / RESULTS, Path(build.network), how or How(), say):
            return None
        made = collect_build(work, top)
        write_built(made, out)
        shutil.rmtree(work)
        return made


def check_out(out: str | Path, audited: bool = False) -> None:
    """Raise an error where a table, or the audited slice beside it, cannot be written."""
    check_suffix(out)
    check_place(out)
    if audited:
        check_place(audit_file(out))


def work_folder(out: str | Path) -> Path:
    """Where the blocks of an unfinished table lie."""
    return Path(f"{out}.blocks")


def _forget_unscored(work: Path) -> None:
    """Remove what a run left that ended before its first block: a wrong option shall not block the right one."""
    ours = (work / TASK).exists() and {each.name for each in work.iterdir()} <= _OURS
    if ours and not any((work / RESULTS).glob("*")):
        shutil.rmtree(work)


def prepare_build(build: Build, folder: Path, copy: bool = True, bits: int = 32) -> Task:
    """Write all that scoring needs to a folder; an error where another task lies there.

    What is there already is not written again. The task comes last, so that a folder with one is whole.

    Args:
        build: what is built.
        folder: a new one, or one of the same task.
        copy: whether the network is copied, so that the folder can travel. Without it, a folder with the tokenizer
            of the network that will score is enough.
        bits: of the copied weights: 32, or 16, which halves what has to travel.
    """
    settings, source = build.settings.checked(), Path(build.network)
    build = _settled(build, told_by(source) if is_network(source) else {})
    read, frame = _readers(source, copy), frame_of(str(build.frame))
    found, asking = _opened(build.collections), _opened(build.queries_of)
    terms = make_vocabulary(
        found, str(build.analyzer), build.query_terms, build.doc_terms, build.from_queries, build.audit, asking,
        build.doc_words,
    )  # fmt: skip
    asked = distinct(around(read.query(terms.queries.terms), frame.query, read.mask))
    told = distinct(around(read.doc(terms.docs.terms), frame.doc, read.mask))
    task = Task(asked, told, Settings(**asdict(settings) | {"audited": tuple(terms.audited)}))
    same = _holds(folder, task)
    _put(folder / SPELLED, _spell(terms, _facts(build, [c.name for c in found])))
    if copy:
        _copy(source, folder / NETWORK, bits)
    else:
        _put(folder / TOKENS, Pieces(source).content)
    if not same:
        save_task(folder, task)
    return task


def collect_build(folder: Path, top: int | None = None, results: Path | None = None) -> Built:
    """The table of scored blocks; `top` keeps the best so many document terms of each query term, as the task may.

    A query term is not tied to itself: rankers count that as a match already. The audited slices have it.
    """
    task, (terms, facts) = load_task(folder), _spelled(folder / SPELLED)
    if (len(terms.queries.terms), len(terms.docs.terms)) != (len(task.queries.of_term), len(task.docs.of_term)):
        raise BadInput(folder / SPELLED, "has other terms than the rest of the folder", _REMEDY)
    place = results or folder / RESULTS
    log = read_log(place)
    identity = log.pop("identity", "")
    if identity != task.identity(str(log.get("network")), str(log.get("precision"))):
        raise BadInput(
            place, "holds the results of another vocabulary or of other settings", "score the folder again"
        )
    rounds = log.get("certificate", {}).get("rounds", 1)
    sizes = len(task.queries.sequences), len(task.docs.sequences)
    entries = Results(place, identity).whole(*sizes, audits(task).tolist(), rounds)
    facts |= {"network": log.pop("network"), **_trained(log.pop("trained", {}))}
    if "certificate" in log:
        facts["certificate"] = log.pop("certificate")
    facts |= {"scored": log, "pairs": len(terms.queries.terms) * len(terms.docs.terms)}
    facts.pop("top", None)  # the audited slice has no such cut
    table = _cut(task, terms, entries, facts, [each for each in (top, task.settings.top) if each is not None])
    return Built(table, _audit_table(task, terms, entries, facts) if task.settings.audited else None)


def _cut(
    task: Task, terms: TermVocabulary, entries: Entries, facts: dict[str, Any], tops: Sequence[int]
) -> TermTable:
    """The table with the best document terms of each query term, as many as the least of `tops` says."""
    if not tops:
        return _table(task, terms, entries, facts)
    return _table(task, terms, entries, facts | {"top": min(tops)}).pruned(top_query=min(tops))


def write_built(made: Built, out: str | Path) -> None:
    """Write a table, and the audited slice beside it."""
    check_out(out, made.audit is not None)
    made.table.save(out)
    if made.audit is not None:
        made.audit.save(audit_file(out))


def audit_file(out: str | Path) -> Path:
    """Where the slice of audited terms lies: `thesaurus.audit.parquet` beside `thesaurus.parquet`."""
    suffix = next(suffix for suffix in sorted(SUFFIXES, key=len, reverse=True) if str(out).endswith(suffix))
    return Path(str(out)[: -len(suffix)] + ".audit" + suffix)


def _table(task: Task, terms: TermVocabulary, entries: Entries, facts: dict[str, Any]) -> TermTable:
    rows, columns, weights = expanded(task, entries)
    names = np.array(terms.queries.terms, object)[rows] != np.array(terms.docs.terms, object)[columns]
    own = {"threshold": task.settings.threshold, "self_pairs": int((~names).sum())}
    return TermTable.from_codes(
        terms.queries.terms, terms.docs.terms, rows[names], columns[names], weights[names].astype(np.float32),
        facts | own, terms.docs.occurrences,
    )  # fmt: skip


def expanded(task: Task, entries: Entries) -> tuple[Any, Any, Any]:
    """Entries of sequences as entries of terms: several terms may share a sequence."""
    members = [np.argsort(side.of_term, kind="stable") for side in (task.queries, task.docs)]
    counts = [side.counts for side in (task.queries, task.docs)]
    found: list[Any] = []
    place = np.arange(len(entries.queries))
    for sequences, order, size in zip((entries.queries, entries.docs), members, counts, strict=True):
        starts, of = np.cumsum(size) - size, sequences[place]
        repeats = size[of]
        inside = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        found = [np.repeat(column, repeats) for column in found]
        found.append(order[np.repeat(starts[of], repeats) + inside])
        place = np.repeat(place, repeats)
    return found[0], found[1], entries.weights[place]


def _audit_table(task: Task, terms: TermVocabulary, entries: Entries, facts: dict[str, Any]) -> TermTable:
    """All document terms of the audited query terms, whatever their weights."""
    audited = list(task.settings.audited)
    rows = np.repeat(np.arange(len(audited)), len(terms.docs.terms))
    columns = np.tile(np.arange(len(terms.docs.terms)), len(audited))
    slices = [entries.slices[int(task.queries.of_term[q])][task.docs.of_term] for q in audited]
    names = [terms.queries.terms[q] for q in audited]
    own = {"threshold": 0.0, "audited": names, "pairs": len(rows)}
    of_all = {name: fact for name, fact in facts.items() if name != "certificate"}  # a slice lacks nothing
    return TermTable.from_codes(
        names, terms.docs.terms, rows, columns, np.concatenate(slices).astype(np.float32), of_all | own,
        terms.docs.occurrences,
    )  # fmt: skip


def _settled(build: Build, told: Mapping[str, Any]) -> Build:
    """With what the network tells, where the build does not say it itself."""
    analyzer, frame = build.analyzer or told.get("analyzer"), build.frame or told.get("frame")
    return replace(build, analyzer=analyzer or DEFAULT, frame=frame or BARE)


def _opened(collections: Sequence[str | Collection]) -> list[Collection]:
    return [each if isinstance(each, Collection) else open_collection(each) for each in collections]


def _holds(folder: Path, task: Task) -> bool:
    """Whether a folder holds this task; False for none, a new one and one whose writer was stopped before the end.

    A folder with anything else is left alone. Blocks of another task are told by their own identity.
    """
    if folder.exists() and not folder.is_dir():
        raise BadInput(folder, "is a file, not a folder", "name another place")
    names = {each.name for each in folder.glob("*") if (each.name[0], each.suffix) != (".", ".tmp")}
    if not names or (names & {SPELLED, TERMS} and names <= _OURS - {TASK} | {NETWORK}):
        return False
    try:
        theirs = load_task(folder).identity("", "")
    except BadInput:
        raise BadInput(folder, "is a folder with other things in it", "remove it or name a new one") from None
    if theirs != task.identity("", ""):
        raise BadInput(
            folder, "holds the blocks of another vocabulary or of other settings", "remove it to start anew"
        )
    return True


def _put(path: Path, content: bytes) -> None:
    """Write a file in one step, unless it has this content."""
    if not path.is_file() or path.read_bytes() != content:
        with replacing(path) as beside:
            beside.write_bytes(content)


class _Readers(NamedTuple):
    """What makes pieces of query terms and of document terms, and the number of [MASK]."""

    query: Callable[[Sequence[str]], Any]
    doc: Callable[[Sequence[str]], Any]
    mask: int


def _readers(source: Path, whole: bool) -> _Readers:
    if whole or (is_network(source) and read_config(source).get("architecture") == ARCHITECTURE):
        network = open_parm(source)
        return _Readers(network.query_ids, network.doc_ids, network.pieces.special["mask"])
    pieces = Pieces(source)
    plain = partial(pieces.ids, most=_LONGEST[0]), partial(pieces.ids, most=_LONGEST[1])
    return _Readers(*plain, pieces.special["mask"])


def _copy(source: Path, place: Path, bits: int) -> None:
    if bits == 32:
        for name in (CONFIG, WEIGHTS, TOKENS):
            _put(place / name, (source / name).read_bytes())
        list_checksums(place, (place / name for name in (CONFIG, WEIGHTS, TOKENS)))
        return
    save(open_parm(source), place, bits, **told_by(source))


def _trained(told: Mapping[str, Any]) -> dict[str, Any]:
    """What the network tells about whom it learned from."""
    found = {name: told[name] for name in ("learner", "ranker", "target", "alignment") if name in told}
    return found | ({"network_seed": told["seed"]} if "seed" in told else {})


def _facts(build: Build, collections: Sequence[str]) -> dict[str, Any]:
    """How the table can be made again."""
    settings = asdict(build.settings)
    return {
        "learner": "parm", **analyzers.create(str(build.analyzer)).facts, "collection": ", ".join(collections),
        "collections": [getattr(each, "name", each) for each in build.collections],
        "from_queries": build.from_queries, **({} if build.frame == BARE else {"frame": build.frame}),
        **({"queries_of": [getattr(each, "name", each) for each in build.queries_of]} if build.queries_of else {}),
        **{name: settings[name] for name in ("method", "seed", "threshold")},
        **({"doc_words": len(build.doc_words)} if build.doc_words else {}),
    }  # fmt: skip


def _spell(terms: TermVocabulary, facts: dict[str, Any]) -> bytes:
    named = (("query", terms.queries), ("doc", terms.docs))
    sides = {name: [side.terms, side.texts.tolist(), side.occurrences.tolist()] for name, side in named}
    return gzip.compress(json.dumps({**sides, "audited": terms.audited, "facts": facts}).encode(), mtime=0)


def _spelled(path: Path) -> tuple[TermVocabulary, dict[str, Any]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8", errors="surrogatepass") as file:
            held = json.load(file)
        sides = [_counts(*held[name]) for name in ("query", "doc")]
        return TermVocabulary(sides[0], sides[1], held["audited"]), held["facts"]
    except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error) as error:
        raise BadInput(path, f"cannot be read ({error})", _REMEDY) from None


def _counts(terms: list[str], texts: list[int], occurrences: list[int]) -> TermCounts:
    return TermCounts(terms, np.array(texts, np.int64), np.array(occurrences, np.int64))


# The table of a trained PaRM as a learner by name: `parm:FOLDER(query_terms=1000)`.


@dataclass(frozen=True)
class Parm:
    """The relevance thesaurus of a trained PaRM over the vocabulary of a collection: `parm:FOLDER`.

    `whyrank tables learn parm` trains the network, and `whyrank tables build` is the same with more settings, in
    blocks that outlive a stop. `analyzer` is by default the one that the network learned with.
    """

    resource: str
    query_terms: int = 10_000
    doc_terms: int = 100_000
    threshold: float = 0.1
    top: int | None = None
    from_queries: bool = False
    analyzer: str | None = None

    def __post_init__(self) -> None:
        check_text("parm: analyzer", self.analyzer)
        check_flag("parm: from_queries", self.from_queries)
        check_number("parm: threshold", self.threshold, 0, 1)
        for name in ("query_terms", "doc_terms", *(["top"] if self.top is not None else [])):
            check_whole(f"parm: {name}", getattr(self, name), 1)

    @property
    def name(self) -> str:
        """Call string."""
        return call_of(self, "parm")

    def learn(self, collection: Collection | None = None) -> TermTable:
        """The table of the network over the terms of a collection."""
        from whyrank.learners.parm.pairs import Settings

        pass  # INNER

        if collection is None:
            raise WhyrankError("parm needs the vocabulary of a collection; give one")
        size, settings = (self.query_terms, self.doc_terms), Settings(threshold=self.threshold)
        build = Build(self.resource, [collection], self.analyzer, *size, self.from_queries, settings=settings)
        with TemporaryDirectory() as folder:
            made = build_table(build, Path(folder) / "table.parquet", top=self.top, say=lambda _: None)
        assert made is not None, "without a time limit a table is built to its end"
        return replace(made.table, facts={**made.table.facts, "learner": self.name}, trusted=True)
