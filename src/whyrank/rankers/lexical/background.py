"""Background statistics: what a lexical ranker knows about the language of a collection."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from os import PathLike

import numpy as np

from whyrank.core import BadInput, Ints, replacing
from whyrank.data import read_parquet, write_parquet
from whyrank.rankers.base import analyse
from whyrank.text import Analyzer, Tokens


@dataclass(frozen=True, eq=False)
class Background:
    """Document and collection frequencies of every term, the number of documents and of tokens.

    Any text can be scored against it, in the collection or not. The digest covers all of it and the analyzer.
    """

    analyzer: str
    terms: Sequence[str]
    df: Ints
    cf: Ints
    n_docs: int
    n_tokens: int

    @classmethod
    def of(cls, docs: Mapping[str, str], analyzer: Analyzer) -> Background:
        """Count the terms of all documents, a chunk at a time."""
        total = np.zeros((2, 0), np.int64)
        for tokens in analyse(docs, analyzer, "counting terms"):
            more = np.array(count(tokens, len(analyzer.vocabulary)))
            more[:, : total.shape[1]] += total  # the vocabulary only grows
            total = more
        (df, cf), names = total, analyzer.vocabulary.terms
        used = sorted(np.flatnonzero(cf).tolist(), key=names.__getitem__)
        return cls(analyzer.identity, [names[i] for i in used], df[used], cf[used], len(docs), int(cf.sum()))

    @classmethod
    def empty(cls, analyzer: Analyzer) -> Background:
        """No collection at all: every term is equally rare and every text of average length."""
        return cls(analyzer.identity, [], np.zeros(0, np.int64), np.zeros(0, np.int64), 0, 0)

    @property
    def average_length(self) -> float:
        """Mean number of tokens per document; 1 without documents."""
        return self.n_tokens / self.n_docs if self.n_tokens else 1.0

    def frequencies(self, terms: Sequence[str]) -> tuple[Ints, Ints]:
        """Document and collection frequency of each term; 0 for a term that is not in the collection."""
        rows = np.array([self._rows.get(term, -1) for term in terms], dtype=np.int64)
        known = rows >= 0
        df, cf = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        df[known], cf[known] = self.df[rows[known]], self.cf[rows[known]]
        return df, cf

    @cached_property
    def digest(self) -> str:
        """SHA-256 (16 hex digits) over the analyzer and every count."""
        head = json.dumps([self.analyzer, self.n_docs, self.n_tokens, *self.terms])
        found = sha256(head.encode("utf-8", "surrogatepass"))
        for counts in (self.df, self.cf):
            found.update(np.ascontiguousarray(counts, dtype="<i8").tobytes())
        return found.hexdigest()[:16]

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {term: i for i, term in enumerate(self.terms)}

    def save(self, path: str | PathLike[str]) -> None:
        """Write the statistics as Parquet: term, df, cf, and the totals as metadata."""
        import pyarrow as pa

        facts = {"analyzer": self.analyzer, "n_docs": str(self.n_docs), "n_tokens": str(self.n_tokens)}
        table = pa.table({"term": pa.array(self.terms, pa.string()), "df": self.df, "cf": self.cf})
        with replacing(path) as beside:
            write_parquet(table.replace_schema_metadata({"whyrank.statistics": json.dumps(facts)}), beside)

    @classmethod
    def load(cls, path: str | PathLike[str], analyzer: Analyzer | None = None) -> Background:
        """Read saved statistics; they must have been counted with the analyzer that is to use them."""
        import pyarrow as pa

        remedy = "make one with 'whyrank data stats --out FILE'"
        try:
            table = read_parquet(path, remedy)
        except (OSError, pa.ArrowException) as error:
            raise BadInput(path, f"not a statistics file ({error})", remedy) from None
        noted = (table.schema.metadata or {}).get(b"whyrank.statistics")
        if noted is None:
            raise BadInput(path, "not a statistics file (another Parquet file)", remedy)
        facts = json.loads(noted)
        if analyzer is not None and facts["analyzer"] != analyzer.identity:
            remedy = f"use --analyzer {facts['analyzer'].split('#')[0]!r}, or count again with 'whyrank data stats'"
            raise BadInput(path, f"counted with analyzer {facts['analyzer']}, not {analyzer.identity}", remedy)
        df, cf = (table[name].to_numpy().astype(np.int64) for name in ("df", "cf"))
        return cls(facts["analyzer"], table["term"].to_pylist(), df, cf, int(facts["n_docs"]), int(facts["n_tokens"]))


def count(tokens: Tokens, size: int) -> tuple[Ints, Ints]:
    """Document and collection frequency of every term id below `size`."""
    docs = np.repeat(np.arange(len(tokens.offsets) - 1, dtype=np.int64), np.diff(tokens.offsets))
    unique = np.unique(docs * size + tokens.ids) % size if len(docs) else docs
    return np.bincount(unique, minlength=size), np.bincount(tokens.ids, minlength=size)
