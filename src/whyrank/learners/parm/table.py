"""A term table from a trained PaRM: the weights of all pairs of two vocabularies, as `parm:FOLDER(query_terms=1000)`.

    made = build_table(PaRM("network", query_terms=100), ["sample"], "thesaurus.parquet")

Pairs are scored in blocks that lie in a folder beside the table until it is written; the same call goes on from
there.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch

from whyrank.core import LOCK, Executor, Ints, Share, Whole, WhyrankError, check_writable, exclusive
from whyrank.data import Collection, open_collection
from whyrank.learners.parm.data import ranges
from whyrank.learners.parm.pairs import (
    Blocks,
    Entries,
    PairScorer,
    PairTask,
    Say,
    TermSequences,
    score_blocks,
)
from whyrank.networks import BARE, ParmNetwork, digest, frame_terms, load, read_config
from whyrank.rankers import Described
from whyrank.rankers.lexical import Background
from whyrank.tables import SUFFIXES, TermTable, check_suffix
from whyrank.text import Analyzer, analyzers
from whyrank.training import device_name

QUERY_TERMS, DOC_TERMS = 10_000, 100_000


@dataclass(frozen=True)
class PaRM(Described):
    """The relevance thesaurus of a trained PaRM over the vocabulary of a collection: `parm:FOLDER`.

    `whyrank tables learn parm` trains the network as well.

    Attributes:
        resource: the folder of a parm network.
        query_terms: how many query terms at most.
        doc_terms: how many document terms at most.
        threshold: pairs with a smaller weight are left out.
        top: so many document terms of each query term at most, the best ones.
        from_queries: query terms are those of the collections' queries only.
        analyzer: makes the terms; by default the one that the network learned with, else lucene.
        queries_of: collections whose query terms are added to the query terms.
        doc_words: words that are added to the document terms, such as the values of a bias study.
        frame: what stands around terms, see `networks.parm`; by default what the network says, else nothing.
    """

    resource: str
    query_terms: Whole = QUERY_TERMS
    doc_terms: Whole = DOC_TERMS
    threshold: Share = 0.1
    top: Whole | None = None
    from_queries: bool = False
    analyzer: str | None = None
    queries_of: Sequence[str] = ()
    doc_words: Sequence[str] = ()
    frame: Literal["bare", "masks", "runs"] | None = None

    registered: ClassVar[str] = "parm"

    def learn(self, collection: Collection | None = None) -> TermTable:
        """The table of the network over the terms of a collection."""
        if collection is None:
            raise WhyrankError("parm needs the vocabulary of a collection; give one")
        with TemporaryDirectory() as folder:
            table = build_table(self, [collection], Path(folder) / "table.parquet", say=lambda _: None).table
        return replace(table, facts={**table.facts, "learner": self.name}, trusted=True)


class TermVocabulary(NamedTuple):
    """The terms of both sides of a table, those of most texts first; ties go by spelling."""

    query_terms: list[str]  # those of queries
    doc_terms: list[str]  # those of documents
    doc_counts: Ints  # how often each document term occurs
    audited: list[int]  # numbers of query terms that are kept with all document terms


def make_vocabulary(
    parm: PaRM, collections: Sequence[Collection], analyzer: Analyzer, audited: Sequence[str] = ()
) -> TermVocabulary:
    """The terms of the texts of collections as `parm` chooses them; the terms of audited words are query terms too.

    A text of two collections counts twice; query terms that no text has come last.
    """
    texts, occurrences = Counter[str](), Counter[str]()
    for collection in collections:
        counted = Background.of(collection.docs, analyzer)
        texts.update(dict(zip(counted.terms, counted.df.tolist(), strict=True)))
        occurrences.update(dict(zip(counted.terms, counted.cf.tolist(), strict=True)))
    if not texts:
        raise WhyrankError(f"no text has a word under {analyzer.id}; choose another --analyzer or collection")

    def by_frequency(terms: Iterable[str]) -> list[str]:
        return sorted(terms, key=lambda term: (-texts[term], term))

    def terms_of_queries(several: Sequence[Collection], option: str) -> set[str]:
        queries = [query for each in several for query in each.queries.values()]
        found = {analyzer.vocabulary.terms[i] for i in np.unique(analyzer.queries(queries).ids)} if queries else set()
        if not found:
            raise WhyrankError(f"the collections have no queries with words; leave out {option}")
        return found

    def audited_term(word: str) -> str:
        terms = analyzer.query_terms(word)
        if len(terms) != 1:
            found = "drops it" if not terms else f"makes {len(terms)} terms of it"
            raise WhyrankError(f"--audit {word!r}: the analyzer {analyzer.id} {found}; name one word that it keeps")
        return terms[0]

    every = by_frequency(texts)
    first = by_frequency(terms_of_queries(collections, "--from-queries")) if parm.from_queries else every
    others = [open_collection(name) for name in parm.queries_of]
    besides = terms_of_queries(others, "--queries-of") if others else set()
    kept = list(dict.fromkeys(audited_term(word) for word in audited))
    queries = by_frequency({*first[: parm.query_terms], *besides, *kept})
    more = (term for word in parm.doc_words for term in analyzer.terms(word))
    docs = by_frequency({*every[: parm.doc_terms], *more})
    doc_counts = np.array([occurrences[term] for term in docs], np.int64)
    return TermVocabulary(queries, docs, doc_counts, [queries.index(term) for term in kept])


class Built(NamedTuple):
    """A table, and that of the audited terms with all document terms where there are such."""

    table: TermTable
    audit: TermTable | None


def build_table(
    parm: PaRM, collections: Sequence[str | Collection], out: str | Path, device: str = "cpu", precision: str = "",
    audit: Sequence[str] = (), say: Say = print, block: int | None = None, executor: Executor | None = None,
) -> Built:  # fmt: skip
    """Score all pairs of the terms of collections, and write their table.

    Args:
        parm: the network, and which terms and pairs are kept.
        collections: collections whose terms are counted, or the names of such.
        out: where the table is written; that of audited terms lies beside it.
        device: where pairs are scored.
        precision: `fp32` or `bf16`; by default bf16 on a GPU.
        audit: words whose weights are kept for all document terms, in a second table.
        say: hears of the progress.
        block: pairs of a block, instead of what half a minute allows.
        executor: scores the blocks; this process by default. The table is the same.
    """
    check_out(out, bool(audit))
    folder = Path(parm.resource)
    network, known = load(folder, ParmNetwork.architecture), read_config(folder)
    analyzer, frame = parm.analyzer or known.get("analyzer") or "lucene", parm.frame or known.get("frame") or BARE
    found = [open_collection(each) for each in collections]
    terms = make_vocabulary(parm, found, analyzers.create(analyzer), audit)
    ids = network.query_ids(terms.query_terms), network.doc_ids(terms.doc_terms)
    queries, docs = (TermSequences.of(rows) for rows in frame_terms(*ids, network, frame))
    task = PairTask(queries, docs, parm.threshold, parm.top, tuple(terms.audited))
    chosen = precision or ("bf16" if device.startswith("cuda") else "fp32")
    own, work = digest(folder), Path(f"{out}.blocks")
    with exclusive(f"{work}{LOCK}"):
        blocks = Blocks(work, task.identity(own, chosen))
        scorer = PairScorer(network, task.queries, task.docs, device, chosen)
        score_blocks(task, scorer, blocks, say, block, executor)
        entries = blocks.entries()
        facts: dict[str, Any] = {
            "learner": "parm", **analyzers.create(analyzer).facts, "collection": ", ".join(c.name for c in found),
            "collections": [getattr(each, "name", each) for each in collections], "threshold": parm.threshold,
            "from_queries": parm.from_queries, **({} if frame == BARE else {"frame": frame}),
            **({"queries_of": list(parm.queries_of)} if parm.queries_of else {}),
            **({"doc_words": len(parm.doc_words)} if parm.doc_words else {}), "network": own,
            **{name: known[name] for name in ("learner", "ranker", "target", "alignment") if name in known},
            **({"network_seed": known["seed"]} if "seed" in known else {}),
            "scored": {
                "device": device_name(device), "torch": torch.__version__, "implementation": scorer.implementation,
                "precision": chosen, "tokens": scorer.tokens, "pairs": task.pairs,
                "seconds": round(entries.seconds, 2),
                "pairs_per_second": round(task.pairs / max(entries.seconds, 1e-9)),
            },
            "pairs": len(terms.query_terms) * len(terms.doc_terms),
        }  # fmt: skip
        audit_table = _audit_table(task, terms, entries, facts) if task.audited else None
        made = Built(_table(task, terms, entries, facts), audit_table)
        made.table.save(out)
        if made.audit is not None:
            made.audit.save(beside(out, ".audit", keep=True))
        shutil.rmtree(work)
    return made


def check_out(out: str | Path, audited: bool = False) -> None:
    """Raise an error where a table, or that of audited terms beside it, cannot be written."""
    check_suffix(out)
    for path in (out, *([beside(out, ".audit", keep=True)] if audited else [])):
        check_writable(path)


def beside(out: str | Path, name: str, keep: bool = False) -> Path:
    """What lies beside a table: `thesaurus.audit.parquet` (its suffix is kept) or `thesaurus.parm`."""
    suffix = next(suffix for suffix in sorted(SUFFIXES, key=len, reverse=True) if str(out).endswith(suffix))
    return Path(str(out)[: -len(suffix)] + name + (suffix if keep else ""))


def _table(task: PairTask, terms: TermVocabulary, entries: Entries, facts: dict[str, Any]) -> TermTable:
    """The entries of terms. A query term is not tied to itself: rankers count that as a match already."""
    rows, columns, weights = term_entries(task, entries)
    other = np.array(terms.query_terms, object)[rows] != np.array(terms.doc_terms, object)[columns]
    cut = {} if task.top is None else {"top": task.top}
    table = TermTable.from_codes(
        terms.query_terms, terms.doc_terms, rows[other], columns[other], weights[other].astype(np.float32),
        facts | {"self_pairs": int((~other).sum())} | cut, terms.doc_counts,
    )  # fmt: skip
    return table if task.top is None else table.prune(top_query=task.top)


def term_entries(task: PairTask, entries: Entries) -> tuple[Ints, Ints, Any]:
    """Entries of token sequences as entries of terms (rows, columns, weights): several terms may share a sequence."""
    found: list[Ints] = []
    entry = np.arange(len(entries.queries))
    for side, sequences in ((task.queries, entries.queries), (task.docs, entries.docs)):
        order, sizes, own = np.argsort(side.of_term, kind="stable"), side.counts, sequences[entry]
        found = [np.repeat(column, sizes[own]) for column in found]
        found.append(order[ranges((np.cumsum(sizes) - sizes)[own], sizes[own])])
        entry = np.repeat(entry, sizes[own])
    return found[0], found[1], entries.weights[entry]


def _audit_table(task: PairTask, terms: TermVocabulary, entries: Entries, facts: dict[str, Any]) -> TermTable:
    """All document terms of the audited query terms, whatever their weights."""
    names, docs = [terms.query_terms[q] for q in task.audited], len(terms.doc_terms)
    rows, columns = np.repeat(np.arange(len(names)), docs), np.tile(np.arange(docs), len(names))
    weights = [entries.slices[int(task.queries.of_term[q])][task.docs.of_term] for q in task.audited]
    own = {"threshold": 0.0, "audited": names, "pairs": len(rows)}
    return TermTable.from_codes(
        names, terms.doc_terms, rows, columns, np.concatenate(weights).astype(np.float32), facts | own,
        terms.doc_counts,
    )  # fmt: skip
