"""Texts with queries added that they may answer, ranked by any ranker: `doc2query:MODEL`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from whyrank.core import Floats, Names, Natural, Progress, Ranker, TextStore, Whole, cache_folder, parse_call
from whyrank.rankers.base import Described, distinct
from whyrank.rankers.http import hide_values
from whyrank.rankers.neural import Computing, by_length, check_folder, digest_of, model_folder
from whyrank.rankers.normalisation import query_scale
from whyrank.rankers.opening import Setting, is_cacheable, open_ranker, tie_tolerance
from whyrank.text import MAX_INPUT, MAX_NEW, generate, load

_NAMES = Names("makers", "expansions", "maker", "queries", "TEXT")
_LAYOUT = _NAMES.layout("cache of generated queries", 0x77726E71)
_TOKENS = {"cpu": 1 << 13, "cuda": 1 << 17}  # of a batch, read and written


@dataclass(frozen=True)
class Doc2Query(Described):
    """A ranker over text + " " + n generated queries, by default BM25.

    MODEL is a hub id or a folder: a sequence-to-sequence model reads the text, a causal model a prompt with it. The
    queries are sampled (top-k 10, at most 64 tokens) in batches on `device`, by default CUDA where there is one. The
    random generator of a text depends on `seed` and the text, not on its batch. Queries are kept on disk by text,
    model, n and seed. Only texts that are scored are expanded, all of a collection where it retrieves. Analyzer and
    statistics (document frequencies, number of documents, average length) are those of the collection without
    expansion; `ranker='bm25(stats=FILE)'` takes them from elsewhere.

    Nogueira and Lin, "From doc2query to docTTTTTquery", 2019.

    Attributes:
        resource: a hub id or a folder of a generating model.
        n: queries that are added to each text.
        seed: of the generation.
        ranker: call string of the ranker that scores the expanded texts.
        device: cpu or cuda; by default cuda where there is one.
    """

    resource: str
    n: Whole = 4
    seed: Natural = 0
    ranker: str = "bm25"
    device: str | None = None

    registered: ClassVar[str] = "doc2query"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "ranker", str(parse_call(hide_values(self.ranker))))

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
        return is_cacheable(self.ranker)

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
        return cast(Floats, self.ranker.score(queries, [expanded[code] for code in codes.tolist()]))

    def expanded(self, texts: Sequence[str]) -> list[str]:
        """Each text with its generated queries behind it."""
        known = self._store.find(self._maker, texts) if texts else {}
        missing = [text for text in dict.fromkeys(texts) if text not in known and text.strip()]
        with Progress("writing queries", len(missing)) as progress:
            for some in self._batches(missing) if missing else ():
                written = generate(some, self._folder, self.call.n, self.call.seed, self._computing.device)
                known |= (found := dict(zip(some, written, strict=True)))
                self._store.keep(self._maker, found.items())
                progress.step(len(some))
        return [" ".join([text, *known.get(text, [])]) for text in texts]

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """Texts of like length, as many as go into one batch; a token is taken to have four bytes."""
        sizes = np.array([len(text.encode("utf-8", "replace")) // 4 for text in texts], np.int64)
        cells = self.call.n * (np.minimum(sizes, MAX_INPUT) + MAX_NEW)
        for rows in by_length(cells, _TOKENS["cuda" if self._computing.on_gpu else "cpu"]):
            yield [texts[i] for i in rows]

    @cached_property
    def _computing(self) -> Computing:
        load(self._folder)  # says what is missing before anything is imported from it
        return Computing.of(self.call.device, "exact")

    @cached_property
    def _maker(self) -> str:
        return f"doc2query 3 model={digest_of(Path(self._folder))} n={self.call.n} seed={self.call.seed}"

    @cached_property
    def _folder(self) -> str:
        folder = model_folder(self.call.resource)
        check_folder(folder)
        return str(folder)

    @cached_property
    def _store(self) -> ExpansionStore:
        return ExpansionStore(cache_folder() / "expansions.sqlite")


class ExpansionStore(TextStore[list[str]]):
    """All queries that were ever generated, by the identity of their maker and the digest of the text."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _LAYOUT, _NAMES)

    def encode(self, value: list[str]) -> str:
        """Queries as JSON."""
        return json.dumps(value)

    def decode(self, text: str, stored: Any, identity: str) -> list[str]:
        """Queries from JSON."""
        try:
            found = json.loads(stored)
        except ValueError:
            found = None
        if not isinstance(found, list):
            raise self.layout.damage_error(self.path)
        return [str(query) for query in found]
