"""From a ranker's call string and the setting it is used in to a ranker that can score."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable
from weakref import WeakKeyDictionary

from whyrank.core.protocols import Ranker
from whyrank.core.registry import Registry
from whyrank.data import Collection, open_collection
from whyrank.rankers.background import Background
from whyrank.text import Analyzer, analyzers

rankers: Registry[Any] = Registry(
    "rankers",
    "ranker",
    {
        "bm25": "whyrank.rankers.bm25:BM25",
        "bm25t": "whyrank.rankers.bm25t:BM25T",
        "ql": "whyrank.rankers.ql:QL",
        "qlt": "whyrank.rankers.qlt:QLT",
        "cascade": "whyrank.rankers.cascade:Cascade",
        "doc2query": "whyrank.rankers.doc2query:Doc2Query",
        "fuse": "whyrank.rankers.fuse:Fuse",
        "http": "whyrank.rankers.http:HttpRanker",
        "https": "whyrank.rankers.http:HttpsRanker",
        "ltr": "whyrank.rankers.ltr:LTR",
        "model1": "whyrank.rankers.model1:Model1",
        "pyterrier": "whyrank.rankers.pyterrier:PyTerrierRanker",
        "python": "whyrank.rankers.callables:PythonRanker",
        "run": "whyrank.rankers.run:RunFile",
        "wmd": "whyrank.rankers.wmd:WMD",
        "bi": "whyrank.rankers.bi:BiEncoder",
        "cross": "whyrank.rankers.cross:CrossEncoder",
        "t5": "whyrank.rankers.t5:MonoT5",
        "vanilla": "whyrank.rankers.trained:Vanilla",
        "cedr-knrm": "whyrank.rankers.trained:CedrKnrm",
        "cedr-drmm": "whyrank.rankers.trained:CedrDrmm",
        "cedr-pacrr": "whyrank.rankers.trained:CedrPacrr",
        "knrm": "whyrank.rankers.trained:Knrm",
        "conv-knrm": "whyrank.rankers.trained:ConvKnrm",
        "epic": "whyrank.rankers.trained:Epic",
        "late": "whyrank.rankers.trained:Late",
        "sparse": "whyrank.rankers.trained:Sparse",
        "neural-model1": "whyrank.rankers.neural_model1:NeuralModel1",
        "bert-model1": "whyrank.rankers.neural_model1:BertModel1",
        "parm": "whyrank.rankers.parm:Parm",
    },
)
_computed: WeakKeyDictionary[Collection, dict[Analyzer, Background]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Setting:
    """Where a ranker is used: the collection, the default analyzer, the source of statistics, the precision.

    With `typed`, query and text come from elsewhere: the collection is there to count in, and nothing has to fit it.
    """

    collection: Collection | None = None
    analyzer: str = "lucene"
    stats: str | None = None
    precision: str | None = None
    typed: bool = False

    @property
    def read(self) -> Collection | None:
        """The collection whose queries and texts are scored."""
        return None if self.typed else self.collection

    def analyzer_for(self, own: str | None) -> Analyzer:
        """The ranker's own analyzer, else the default one."""
        return analyzers.create(str(own or self.analyzer))

    def background(self, analyzer: Analyzer, own: str | None) -> Background:
        """Statistics from the ranker's own source, the given source, or the collection at hand."""
        source = str(own or self.stats or "")
        if not source:
            return _of_collection(self.collection, analyzer) if self.collection else Background.empty(analyzer)
        if source.endswith(".parquet") or Path(source).is_file():
            return Background.load(source, analyzer)
        return _of_collection(open_collection(source), analyzer)


@runtime_checkable
class Bindable(Protocol):
    """A ranker's configuration that needs its setting before it can score."""

    def bind(self, setting: Setting) -> Ranker:
        """The ranker that scores in this setting."""
        ...


def open_ranker(spec: str, setting: Setting | None = None) -> Ranker:
    """Make the ranker that a call string describes, ready to score.

    Example:
        >>> collection = open_collection("sample")
        >>> bm25 = open_ranker("bm25(k1=1.2,b=0.75)", Setting(collection))
        >>> bm25.score(["berlin wall"], ["The wall fell in 1989."])  # doctest: +SKIP
    """
    setting = setting or Setting()
    made = rankers.create(spec, **({} if setting.precision is None else {"precision": setting.precision}))
    return made.bind(setting) if isinstance(made, Bindable) else cast(Ranker, made)


def _of_collection(collection: Collection, analyzer: Analyzer) -> Background:
    known = _computed.setdefault(collection, {})
    if analyzer not in known:
        known[analyzer] = Background.of(collection.docs, analyzer)
    return known[analyzer]
