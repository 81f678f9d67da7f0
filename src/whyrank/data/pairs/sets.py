"""Pair sets: text pairs with named roles, opened from files, layouts or the bundled sample."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from whyrank.core import BadInput, Call, Registry, UnknownName, WhyrankError, find_file, parse_call, suggestion
from whyrank.data.pairs.rows import TextPair, read_pairs
from whyrank.data.records import read_records
from whyrank.data.tallies import Tally, without_surrogates

KINDS: Mapping[str, tuple[str, ...]] = {
    "paraphrase": ("a", "b"),
    "fluency": ("fluent", "source"),
    "formality": ("formal", "informal"),
    "simplicity": ("simple", "source"),
    "neutrality": ("neutral", "biased"),
    "succinctness": ("summary", "body"),
    "factuality": ("question", "answer", "passage"),
}
"""The roles that every set of a kind has; a query strategy may need more, such as `title` or `question`."""

_NAME = re.compile(r"[A-Za-z][\w-]+")  # a single letter before a colon is a drive


@dataclass(frozen=True, repr=False)
class PairSet:
    """Text pairs with named roles, in the order of their source.

    Attributes:
        name: stands in tables.
        roles: the roles that every row has.
        rows: the pairs, with their texts in the order of the roles' names.
        source: the spec that it was opened with.
        digest: hash of roles, ids and texts; the same whether a file is compressed or not.
        notes: problems that were not fatal.
    """

    name: str
    roles: frozenset[str]
    rows: tuple[TextPair, ...] = field(compare=False)
    source: str
    digest: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, pairs: Iterable[TextPair], name: str = "pairs", source: str = "") -> PairSet:
        """Make a pair set from pairs that all have the roles of the first."""
        source = source or name
        rows, roles = list[TextPair](), list[str]()
        mended = Tally("pairs with lone surrogates (each replaced by U+FFFD)")
        for pair in pairs:
            roles = roles or sorted(pair.texts)
            if not roles:
                raise WhyrankError(f"{source}: pair {pair.id!r} has no texts")
            if pair.texts.keys() != set(roles):
                found = ", ".join(sorted(pair.texts))
                what = f"pair {pair.id!r} has the roles {found}, the first one {', '.join(roles)}"
                raise WhyrankError(f"{source}: {what}")
            texts = {role: without_surrogates(pair.texts[role]) for role in roles}
            rows.append(TextPair(without_surrogates(pair.id), texts))
            if rows[-1] != pair:
                mended.add(rows[-1].id)
        if not roles:
            raise WhyrankError(f"{source}: there are no pairs in it; a pair set needs one at least")
        digest = _digest(roles, rows)
        return cls(name, frozenset(roles), tuple(rows), source, digest, tuple(mended.notes(source)))

    def __iter__(self) -> Iterator[TextPair]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"PairSet({self.name!r}, {len(self):,} pairs of {', '.join(sorted(self.roles))})"

    def need(self, *roles: str) -> None:
        """Raise an error that names the missing roles, and those there are, unless all of these are there."""
        missing = [role for role in roles if role not in self.roles]
        if missing:
            there = ", ".join(sorted(self.roles))
            remedy = f"name a column of it with ({missing[0]}=COLUMN), or take another pair set"
            raise WhyrankError(f"{self.source}: the roles {', '.join(missing)} are missing; it has {there}; {remedy}")


def _digest(roles: Sequence[str], rows: Sequence[TextPair]) -> str:
    """First 16 hex digits of the SHA-256 of the roles, of where each id and text ends, and of ids and texts."""
    encoded = [text.encode() for row in rows for text in (row.id, *row.texts.values())]
    found = hashlib.sha256("\0".join(roles).encode())
    found.update(np.cumsum([len(text) for text in encoded], dtype="<i8").tobytes())
    for text in encoded:
        found.update(text)
    return found.hexdigest()[:16]


def open_pairs(spec: str, kind: str | None = None) -> PairSet:
    """Open a pair set.

    `spec` is one of these; with a `kind` the roles of that kind must be there:

    - `sample`: the bundled set of the kind;
    - a JSON lines, TSV or CSV file, plain or `.gz`, whose fields are the roles; `FILE(ROLE=COLUMN,...)` names
      columns that are called something else: `pairs.tsv(a=sentence1,b=sentence2)`;
    - `LAYOUT:PATH`, with options in brackets: a published data set as it is distributed, such as
      `jfleg:PATH(keep_newline=True)`;
    - a folder in one of these layouts, known by the names of its files (see `pair_layouts.detect`).
    """
    if kind is not None and kind not in KINDS:
        raise UnknownName("kind of pairs", kind, KINDS)
    try:
        found = _sample(kind) if spec.strip() == "sample" else _open(_call(spec.strip()))
    except (OSError, RuntimeError) as error:  # a name too long, a folder without permission, no such ~user
        raise WhyrankError(f"pair set {spec!r} cannot be read ({error})") from error
    found.need(*KINDS[kind] if kind else ())
    return found


def _sample(kind: str | None) -> PairSet:
    if kind is None:
        raise WhyrankError(f"there is a sample for each kind of pairs; say which: {', '.join(KINDS)}")
    with resources.as_file(resources.files("whyrank.data") / "sample" / "pairs" / f"{kind}.jsonl") as path:
        return replace(_file(path, {}), name=f"sample/{kind}", source="sample")


def _call(spec: str) -> Call:
    """The call `file:PATH(arguments)`; a path may have blanks and brackets, which names may not."""
    if not spec:
        raise WhyrankError("a pair set needs a path; write a file, LAYOUT:PATH, or sample")
    if Path(spec).expanduser().exists():
        return Call("file", spec)
    try:
        return parse_call(f"file:{spec}")
    except WhyrankError as error:
        raise WhyrankError(str(error).replace("file:", "", 1)) from None


def _open(call: Call) -> PairSet:
    """Open the layout, file or folder of a call `file:SPEC(arguments)`."""
    text = call.resource or ""
    layout, colon, rest = text.partition(":")
    path = Path(text).expanduser()
    if not path.exists() and (layout in pair_layouts or (colon and _NAME.fullmatch(layout))):
        return _open_layout(Call(layout, rest or None, call.arguments))
    if path.is_dir():
        return _open_layout(Call(detect(path), text, call.arguments))
    if not path.exists():
        near = suggestion(text, pair_layouts.names())
        raise WhyrankError(f"no file or folder {text!r} exists; write a file, LAYOUT:PATH ({near}), or sample")
    for role, column in call.arguments.items():
        if not isinstance(column, str | int) or isinstance(column, bool):
            raise WhyrankError(f"{text!r}: {role}={column!r} names no column; write ROLE=COLUMN")
    columns = {role: str(column) for role, column in call.arguments.items()}
    return replace(_file(path, columns), source=str(Call("file", text, columns)).removeprefix("file:"))


def _open_layout(call: Call) -> PairSet:
    found = pair_layouts.build(call)
    if not isinstance(found, PairSet):
        raise WhyrankError(
            f"pair layout {call.name!r} is registered but gave {type(found).__name__}; tell its author"
        )
    return replace(found, source=str(call))


def _file(path: Path, columns: Mapping[str, str]) -> PairSet:
    return PairSet.of(read_pairs(path, columns), path.name.partition(".")[0] or path.name, str(path))


# The layouts of published data sets: their readers, and how a folder in one of them is known.


def layout(read: Callable[..., Iterator[TextPair]]) -> Callable[..., PairSet]:
    """Make a reader of pairs open a pair set, which is named after the reader and the file or folder."""

    @wraps(read)
    def open_layout(resource: str, **options: Any) -> PairSet:
        path = existing(resource)
        name = path.resolve().name if path.is_dir() else path.name.partition(".")[0]
        title = read.__name__ if name == read.__name__ else f"{read.__name__}:{name}"
        return PairSet.of(read(path, **options), title, str(path))

    return open_layout


def existing(resource: str) -> Path:
    """The file or folder of a layout, which must be there."""
    path = Path(resource).expanduser()
    if not path.exists():
        raise BadInput(path, "there is no such file or folder", "write LAYOUT:PATH")
    return path


_SENTENCES, _ARTICLES = ("msrp", "wnc", "jfleg", "turkcorpus", "asset", "gyafc"), ("xsum", "cnndm", "nq")
_FILES: Mapping[str, tuple[str, ...]] = {
    "msrp": ("msr_paraphrase_*.txt*",),
    "wnc": ("biased.full*", "WNC/biased.full*", "bias_data/WNC/biased.full*"),
    "jfleg": ("dev/dev.src*", "test/test.src*"),
    "turkcorpus": ("*.8turkers.tok.norm*",),
    "asset": ("asset.*.orig*", "dataset/asset.*.orig*"),
    "gyafc": ("Entertainment_Music", "Family_Relationships", "GYAFC_Corpus"),
    "xsum": ("*.summary", "*/*.summary"),
    "cnndm": ("*.story", "*/*.story", "*/*/*.story"),
    "nq": ("biencoder-nq-*.json*",),
}
_FIELDS: Mapping[str, set[str]] = {
    "msrp": {"label", "sentence1", "sentence2"},
    "wnc": {"biased", "neutral"},
    "jfleg": {"src", "spellchecked", "refs"},
    "turkcorpus": {"norm", "refs"},
    "xsum": {"text", "summary"},
}
_TABLES = ("train.tsv", "test.tsv", "dev.jsonl", "tune.jsonl", "test.jsonl", "articles.jsonl")

pair_layouts: Registry[PairSet] = Registry(
    "pair_layouts",
    "pair layout",
    {name: f"whyrank.data.pairs.sentences:{name}" for name in _SENTENCES}
    | {name: f"whyrank.data.pairs.articles:{name}" for name in _ARTICLES},
)


def detect(folder: Path) -> str:
    """The layout of a folder, known by a file name that only one data set has, else by the fields of its first row.

    That row is in the first of train.tsv, test.tsv, dev.jsonl, tune.jsonl, test.jsonl, articles.jsonl.
    """
    for name, patterns in _FILES.items():
        if any(any(folder.glob(pattern)) for pattern in patterns):
            return name
    table = find_file(folder, *_TABLES)
    first = next(read_records(table), None) if table else None
    for name, fields in _FIELDS.items():
        if first is not None and fields <= set(first.fields):
            return name
    remedy = f"name a file, or write LAYOUT:PATH ({', '.join(pair_layouts.names())})"
    raise BadInput(folder, "the folder has the files of no known layout", remedy)
