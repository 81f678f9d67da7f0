"""The layouts of published pair sets by name, and how a folder in one of them is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from whyrank.core import BadInput, Call, Registry, UnknownName, WhyrankError, parse_call, suggestion
from whyrank.data.lines import find_file
from whyrank.data.pairs.rows import KINDS, PackedPairs, TextPair, check_ids, pack, read_pairs, read_records

# Pair sets: texts that differ in one thing, such as a sentence and its correction, and their readers.

__all__ = ["KINDS", "PairSet", "TextPair", "open_pairs", "pair_layouts"]

_NAME = re.compile(r"[A-Za-z][\w-]+")  # a single letter before a colon is a drive


@dataclass(frozen=True, repr=False)
class PairSet:
    """Text pairs with named roles, in the order of their source.

    Attributes:
        name: stands in tables.
        roles: the roles that every row has.
        rows: the pairs; they can be iterated over again and again, and take the memory of their texts.
        source: the spec that it was opened with.
        digest: hash of roles, ids and texts; the same whether a file is compressed or not.
        notes: problems that were not fatal.
    """

    name: str
    roles: frozenset[str]
    rows: Sequence[TextPair] = field(compare=False)
    source: str
    digest: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, pairs: Iterable[TextPair], name: str = "pairs", source: str = "") -> PairSet:
        """Make a pair set from pairs that all have the same roles; they are taken as a stream."""
        rows, notes = pack(pairs, source or name)
        return cls(name, frozenset(rows.roles), rows, source or name, rows.digest(), tuple(notes))

    def __iter__(self) -> Iterator[TextPair]:
        """The pairs."""
        return iter(self.rows)

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.rows)

    def __repr__(self) -> str:
        """Name, roles and size; the texts would fill the screen."""
        return f"PairSet({self.name!r}, {len(self):,} pairs of {', '.join(sorted(self.roles))})"

    def need(self, *roles: str) -> None:
        """Raise an error that names the missing roles, and those there are, unless all of these are there."""
        missing = [role for role in roles if role not in self.roles]
        if missing:
            there = ", ".join(sorted(self.roles))
            remedy = f"name a column of it with ({missing[0]}=COLUMN), or take another pair set"
            raise WhyrankError(f"{self.source}: the roles {', '.join(missing)} are missing; it has {there}; {remedy}")


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
    _known_kind(kind)
    try:
        found = _sample(kind) if spec.strip() == "sample" else _opened(_call(spec.strip()))
    except (OSError, RuntimeError) as error:  # a name too long, a folder without permission, no such ~user
        raise WhyrankError(f"pair set {spec!r} cannot be read ({error})") from error
    found.need(*KINDS[kind] if kind else ())
    return found


def _known_kind(kind: str | None) -> None:
    if kind is not None and kind not in KINDS:
        raise UnknownName("kind of pairs", kind, KINDS)


def _sample(kind: str | None) -> PairSet:
    if kind is None:
        raise WhyrankError(f"there is a sample for each kind of pairs; say which: {', '.join(KINDS)}")
    with resources.as_file(resources.files("whyrank.data") / "sample" / "pairs" / f"{kind}.jsonl") as path:
        return replace(_file(path, {}), name=f"sample/{kind}", source="sample")


def _call(spec: str) -> Call:
    """The call `file:PATH(arguments)`; a path may have blanks and brackets, which names may not."""
    if not spec:
        raise WhyrankError("a pair set needs a place; write a file, LAYOUT:PATH, or sample")
    if Path(spec).expanduser().exists():
        return Call("file", spec)
    try:
        return parse_call(f"file:{spec}")
    except WhyrankError as error:
        raise WhyrankError(str(error).replace("file:", "", 1)) from None


def _opened(call: Call) -> PairSet:
    """Open the layout, file or folder of a call `file:SPEC(arguments)`."""
    text = call.resource or ""
    layout, colon, rest = text.partition(":")
    path = Path(text).expanduser()
    if not path.exists() and (layout in pair_layouts or (colon and _NAME.fullmatch(layout))):
        return _laid_out(Call(layout, rest or None, call.arguments))
    if path.is_dir():
        return _laid_out(Call(detect(path), text, call.arguments))
    if not path.exists():
        raise WhyrankError(_not_found(text))
    columns = {role: _column(text, role, column) for role, column in call.arguments.items()}
    return replace(_file(path, columns), source=str(Call("file", text, columns)).removeprefix("file:"))


def _laid_out(call: Call) -> PairSet:
    found = pair_layouts.build(call)
    if not isinstance(found, PairSet):
        raise WhyrankError(
            f"pair layout {call.name!r} is registered but gave {type(found).__name__}; tell its author"
        )
    return replace(found, source=str(call))


def _file(path: Path, columns: Mapping[str, str]) -> PairSet:
    found = PairSet.of(read_pairs(path, columns), path.name.partition(".")[0] or path.name, str(path))
    if isinstance(found.rows, PackedPairs):
        check_ids(path, found.rows, columns)
    return found


def _column(text: str, role: str, column: Any) -> str:
    if isinstance(column, str | int) and not isinstance(column, bool):
        return str(column)
    raise WhyrankError(f"{text!r}: {role}={column!r} names no column; write ROLE=COLUMN")


def _not_found(text: str) -> str:
    near = suggestion(text, pair_layouts.names())
    return f"no file or folder {text!r} exists; write a file, LAYOUT:PATH ({near}), or sample"


pair_layouts: Registry[PairSet] = Registry(
    "pair_layouts",
    "pair layout",
    {
        "msrp": "whyrank.data.pairs.published:msrp",
        "wnc": "whyrank.data.pairs.published:wnc",
        "jfleg": "whyrank.data.pairs.published:jfleg",
        "turkcorpus": "whyrank.data.pairs.published:turkcorpus",
        "asset": "whyrank.data.pairs.published:asset",
        "gyafc": "whyrank.data.pairs.published:gyafc",
        "xsum": "whyrank.data.pairs.published:xsum",
        "cnndm": "whyrank.data.pairs.published:cnndm",
        "nq": "whyrank.data.pairs.published:nq",
    },
)

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

_FIELDS: Mapping[str, frozenset[str]] = {
    "msrp": frozenset({"label", "sentence1", "sentence2"}),
    "wnc": frozenset({"biased", "neutral"}),
    "jfleg": frozenset({"src", "spellchecked", "refs"}),
    "turkcorpus": frozenset({"norm", "refs"}),
    "xsum": frozenset({"text", "summary"}),
}

_TABLES = ("train.tsv", "test.tsv", "dev.jsonl", "tune.jsonl", "test.jsonl", "articles.jsonl")


def detect(folder: Path) -> str:
    """The layout of a folder.

    It is known by a file name that only one data set has: msr_paraphrase_train.txt, biased.full, dev/dev.src,
    test.8turkers.tok.norm, asset.test.orig, Entertainment_Music/, *.summary, *.story, biencoder-nq-train.json;
    else by the fields of the first of train.tsv, test.tsv, dev.jsonl, tune.jsonl, test.jsonl, articles.jsonl:
    label and sentence1 (msrp), biased and neutral (wnc), src and spellchecked (jfleg), norm and refs
    (turkcorpus), text and summary (xsum).
    """
    named = (layout for layout, patterns in _FILES.items() if any(any(folder.glob(each)) for each in patterns))
    if found := next(named, None) or _by_fields(folder):
        return found
    remedy = f"name a file, or write LAYOUT:PATH ({', '.join(pair_layouts.names())})"
    raise BadInput(folder, "the folder has the files of no known layout", remedy)


def _by_fields(folder: Path) -> str | None:
    table = find_file(folder, *_TABLES)
    first = next(read_records(table), None) if table else None
    fields = set(first.fields) if first else set()
    return next((layout for layout, needed in _FIELDS.items() if needed <= fields), None)
