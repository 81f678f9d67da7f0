"""Texts with queries added that they may answer, ranked by any ranker: `doc2query:MODEL`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from whyrank.core.callstrings import parse_call
from whyrank.core.checks import check_whole
from whyrank.core.errors import WhyrankError
from whyrank.core.files import cache_folder
from whyrank.core.progress import track
from whyrank.core.protocols import Floats, Ranker
from whyrank.core.registry import call_of
from whyrank.rankers.expansions import ExpansionStore
from whyrank.rankers.grouping import distinct
from whyrank.rankers.http import hide_values
from whyrank.rankers.nesting import all_cacheable, tie_tolerance
from whyrank.rankers.opening import Setting, open_ranker
from whyrank.rankers.query_scales import query_scale
from whyrank.rankers.weights import check_folder, digest_of, model_folder


@dataclass(frozen=True)
class Doc2Query:
    """A ranker over text + " " + n generated queries, by default BM25.

    MODEL is a hub id or a folder: a sequence-to-sequence model reads the text, a causal model a prompt with it. The
    queries are sampled (top-k 10, at most 64 tokens), seeded by `seed` and the text, and kept on disk by text, model,
    n and seed. Only texts that are scored are expanded, all of a collection where it retrieves: analyzer and
    statistics (document frequencies, number of documents, average length) are those of the collection as it is, not
    expanded; `ranker='bm25(stats=FILE)'` takes them from elsewhere.

    Nogueira and Lin, "From doc2query to docTTTTTquery", 2019.
    """

    resource: str
    n: int = 4
    seed: int = 0
    ranker: str = "bm25"

    def __post_init__(self) -> None:
        check_whole("doc2query: n", self.n, 1)
        check_whole("doc2query: seed", self.seed, 0)
        if not isinstance(self.ranker, str):
            raise WhyrankError(f"doc2query: ranker must be a call string, not {self.ranker!r}")
        object.__setattr__(self, "ranker", str(parse_call(hide_values(self.ranker))))

    @property
    def name(self) -> str:
        """Call string."""
        return call_of(self, "doc2query")

    def bind(self, setting: Setting) -> ExpandingRanker:
        """Open the ranker behind it in the setting."""
        return ExpandingRanker(self, open_ranker(self.ranker, setting))


@dataclass(frozen=True, repr=False, eq=False)
class ExpandingRanker:
    """Expands each text before another ranker scores it."""

    call: Doc2Query
    ranker: Ranker
    batch_size = 256

    @property
    def name(self) -> str:
        """Call string."""
        return self.call.name

    @property
    def scale(self) -> str:
        """What the scores are, in words."""
        return str(getattr(self.ranker, "scale", ""))

    @property
    def tie_tolerance(self) -> float:
        """That of the ranker behind it."""
        return tie_tolerance(self.ranker)

    @property
    def cacheable(self) -> bool:
        """Whether scores may be reused in a later run."""
        return all_cacheable([self.ranker])

    def __repr__(self) -> str:
        return f"{self._maker} ranker={self.ranker!r}"

    def __getstate__(self) -> dict[str, Any]:
        """Without the open file: a worker opens its own."""
        return {key: value for key, value in self.__dict__.items() if key != "_store"}

    def query_scale(self, query: str) -> float:
        """What scores are divided by for a query, in a fuse that normalises so: that of the ranker behind it."""
        return query_scale(self.ranker, query)

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Scores of the expanded texts."""
        texts, codes = distinct(docs)
        expanded = self.expanded(texts)
        found: Floats = self.ranker.score(queries, [expanded[code] for code in codes.tolist()])
        return found

    def expanded(self, texts: Sequence[str]) -> list[str]:
        """Each text with its generated queries behind it."""
        known = self._store.find(self._maker, texts) if texts else {}
        missing = [text for text in texts if text not in known]
        for text in track(missing, "writing queries", len(missing)):
            known[text] = self._generated(text)
            self._store.add(self._maker, text, known[text])
        return [" ".join([text, *known[text]]) for text in texts]

    def _generated(self, text: str) -> list[str]:
        from whyrank.text.generation import generate, load

        if not text.strip():
            return []  # there is nothing to ask about
        load(self._folder)  # says what is missing before anything is imported from it
        valid = text.encode("utf-8", "replace").decode()  # no tokenizer takes lone surrogates
        return generate(valid, self._folder, self.call.n, self.call.seed)

    @cached_property
    def _maker(self) -> str:
        return f"doc2query 2 model={digest_of(Path(self._folder))} n={self.call.n} seed={self.call.seed}"

    @cached_property
    def _folder(self) -> str:
        folder = model_folder(self.call.resource)
        check_folder(folder)
        return str(folder)

    @cached_property
    def _store(self) -> ExpansionStore:
        return ExpansionStore(cache_folder() / "expansions.sqlite")
