"""From a ranker's call string and the setting it is used in to a ranker that can score."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast
from weakref import WeakKeyDictionary

import numpy as np

from whyrank.core import Ranker, Registry, WhyrankError, parse_call, split_name
from whyrank.data import Collection, open_collection
from whyrank.rankers.fields import reads_fields, score_with_fields, wants_fields
from whyrank.rankers.http import hide_values
from whyrank.rankers.lexical import Background
from whyrank.rankers.modules import TransformerRanker
from whyrank.rankers.neural.loaded import LoadedModel, kind_of
from whyrank.text import Analyzer, analyzers

rankers: Registry[Any] = Registry(
    "rankers",
    "ranker",
    {
        "bm25": "whyrank.rankers.lexical.ranker:BM25",
        "bm25t": "whyrank.rankers.lexical.thesaurus:BM25T",
        "ql": "whyrank.rankers.lexical.ranker:QL",
        "qlt": "whyrank.rankers.lexical.thesaurus:QLT",
        "cascade": "whyrank.rankers.cascade:Cascade",
        "doc2query": "whyrank.rankers.doc2query:Doc2Query",
        "fuse": "whyrank.rankers.fuse:Fuse",
        "http": "whyrank.rankers.http.ranker:HttpRanker",
        "https": "whyrank.rankers.http.ranker:HttpsRanker",
        "ltr": "whyrank.rankers.ltr.ranker:LTR",
        "model1": "whyrank.rankers.lexical.model1:Model1",
        "pyterrier": "whyrank.rankers.modules:PyTerrierRanker",
        "python": "whyrank.rankers.modules:PythonRanker",
        "run": "whyrank.rankers.run:RunFile",
        "wmd": "whyrank.rankers.wmd:WMD",
        "bi": "whyrank.rankers.neural.pretrained:BiEncoder",
        "cross": "whyrank.rankers.neural.pretrained:CrossEncoder",
        "t5": "whyrank.rankers.neural.pretrained:MonoT5",
        "vanilla": "whyrank.rankers.neural.trained:Vanilla",
        "cedr-knrm": "whyrank.rankers.neural.trained:CedrKnrm",
        "cedr-drmm": "whyrank.rankers.neural.trained:CedrDrmm",
        "cedr-pacrr": "whyrank.rankers.neural.trained:CedrPacrr",
        "knrm": "whyrank.rankers.neural.trained:Knrm",
        "conv-knrm": "whyrank.rankers.neural.trained:ConvKnrm",
        "epic": "whyrank.rankers.neural.trained:Epic",
        "late": "whyrank.rankers.neural.trained:Late",
        "sparse": "whyrank.rankers.neural.trained:Sparse",
        "neural-model1": "whyrank.rankers.neural.trained:NeuralModel1",
        "bert-model1": "whyrank.rankers.neural.trained:BertModel1",
        "parm": "whyrank.rankers.neural.trained:Parm",
    },
)
_backgrounds: WeakKeyDictionary[Collection, dict[Analyzer, Background]] = WeakKeyDictionary()


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
            collection = self.collection
        elif is_statistics_file(source):
            return Background.load(source, analyzer)
        else:
            collection = open_collection(source)
        if collection is None:
            return Background.empty(analyzer)
        known = _backgrounds.setdefault(collection, {})
        if analyzer not in known:
            known[analyzer] = Background.of(collection.docs, analyzer)
        return known[analyzer]


def is_statistics_file(source: str) -> bool:
    """Whether a source of statistics is a file, and no collection."""
    return source.endswith(".parquet") or Path(source).is_file()


def open_ranker(spec: str, setting: Setting | None = None) -> Ranker:
    """Make the ranker that a call string describes, ready to score; `prod=CALL` gives it the name `prod`.

    Example:
        >>> import whyrank
        >>> from whyrank.rankers import Setting
        >>> bm25 = open_ranker("bm25(k1=1.2,b=0.75)", Setting(whyrank.open_collection("sample")))
        >>> bm25.score(["berlin wall"] * 2, ["The wall fell in 1989.", "Whales sing."]).round(2).tolist()
        [2.5, 0.0]
    """
    setting, (name, call) = setting or Setting(), split_name(spec)
    made = rankers.create(call, **({} if setting.precision is None else {"precision": setting.precision}))
    bound = with_fields(made.bind(setting) if hasattr(made, "bind") else made)
    return cast(Ranker, NamedRanker(bound, name)) if name else bound


class NamedRanker:
    """A ranker under a name that somebody chose; in all else, its identity and class included, it is that ranker."""

    def __init__(self, unnamed: Ranker, name: str) -> None:
        self.unnamed, self.name = unnamed, name

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.unnamed)

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "unnamed":  # not there yet, while it is copied
            raise AttributeError(attribute)
        return getattr(self.unnamed, attribute)

    def __repr__(self) -> str:
        return repr(self.unnamed)

    def __reduce__(self) -> tuple[type, tuple[Ranker, str]]:
        return type(self), (self.unnamed, self.name)


class FieldsRanker(NamedRanker):
    """A ranker of somebody's own whose `score` has the argument `fields`."""

    wants_fields = True

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Any:
        """Score with the fields that are attached to the texts."""
        return score_with_fields(self.unnamed.score, queries, docs)


def with_fields(ranker: Ranker) -> Ranker:
    """The ranker itself, or one that gives it the fields that its `score` has an argument for."""
    return cast(Ranker, FieldsRanker(ranker, ranker.name)) if reads_fields(ranker.score) else ranker


@dataclass(frozen=True)
class FunctionRanker:
    """A function of queries and texts as a ranker; what it depends on is not known, so its scores are not stored."""

    function: Callable[..., Any]
    arithmetic: ClassVar[str] = "theirs"
    cacheable: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The name of the function; of another callable, such as a `partial`, that of its class."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    @cached_property
    def wants_fields(self) -> bool:
        """Whether the function has the argument `fields`."""
        return reads_fields(self.function)

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Any:
        """Call the function."""
        if self.wants_fields:
            return np.asarray(score_with_fields(self.function, queries, docs))
        return np.asarray(self.function(queries, docs))


def as_ranker(given: object, setting: Setting | None = None) -> Ranker:
    """The ranker that a call string, a function or an object stands for.

    Objects are rankers, models of sentence-transformers, and PyTerrier transformers.
    """
    if isinstance(given, str):
        return open_ranker(given, setting)
    if kind_of(given) is not None:
        return LoadedModel(given)
    if isinstance(given, type):
        raise WhyrankError(f"ranker {given.__name__} is a class; give an object of it")
    if isinstance(given, Ranker):
        return with_fields(given)
    if callable(getattr(given, "transform", None)):
        return TransformerRanker(given)
    if callable(given):
        return FunctionRanker(given)
    ways = "or give a call string, a function, a model of sentence-transformers or a PyTerrier transformer"
    shown = " ".join(repr(given).split())
    raise WhyrankError(f"ranker {shown:.200} needs a name and a method score(queries, docs); {ways}")


def tie_tolerance(ranker: Ranker) -> float:
    """The `tie_tolerance` of a ranker: scores that differ by no more are equal; 0 where it declares none."""
    found = getattr(ranker, "tie_tolerance", 0.0)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < math.inf:
        raise WhyrankError(f"ranker {ranker.name!r}: tie_tolerance must be a number, 0 or more, not {found!r}")
    return float(found)


def batch_size_of(ranker: Ranker) -> int:
    """The batch size that a ranker declares, else 32."""
    return getattr(ranker, "batch_size", None) or 32


def is_cacheable(ranker: Ranker) -> bool:
    """Whether the scores of a ranker may be reused in a later run."""
    return bool(getattr(ranker, "cacheable", True))


# Rankers made of other rankers, which are call strings in the call string.


class Composite:
    """A ranker made of others: its batches suit all of them, and its scores are cacheable when all of theirs are."""

    parts: tuple[Ranker, ...]

    @property
    def batch_size(self) -> int:
        """The smallest batch size of the parts."""
        return min(map(batch_size_of, self.parts))

    @property
    def cacheable(self) -> bool:
        """Whether scores may be reused in a later run."""
        return all(map(is_cacheable, self.parts))

    @property
    def wants_fields(self) -> bool:
        """Whether any of the parts reads fields."""
        return any(map(wants_fields, self.parts))


def is_strings(given: object, least: int) -> bool:
    """Whether a value is a list of at least so many strings."""
    return isinstance(given, list | tuple) and len(given) >= least and all(isinstance(each, str) for each in given)


def specs(what: str, given: Any, least: int = 2) -> list[str]:
    """The call strings of a list in their canonical notation."""
    if not is_strings(given, least):
        many = "two or more rankers" if least == 2 else "rankers"
        raise WhyrankError(f"{what}: of must be a list of {many}, such as of=['bm25','ql']")
    return [str(parse_call(hide_values(each))) for each in given]


def open_rankers(given: Sequence[str], setting: Setting) -> tuple[Ranker, ...]:
    """The rankers of some call strings, all in the same setting."""
    return tuple(open_ranker(spec, setting) for spec in given)


def as_rankers(given: object, setting: Setting) -> list[Ranker]:
    """The rankers that are given: one, a list, or a mapping from their names; each has a name of its own."""
    if isinstance(given, Mapping):
        found = [cast(Ranker, NamedRanker(as_ranker(each, setting), name)) for name, each in given.items()]
    else:
        found = [as_ranker(each, setting) for each in (given if isinstance(given, list | tuple) else [given])]
    names = [ranker.name for ranker in found]
    if not names or len(set(names)) < len(names):
        ways = "give one or more, each with a name of its own; NAME=RANKER, or a mapping, names them"
        raise WhyrankError(f"rankers {', '.join(names) or 'none'}: {ways}")
    return found
