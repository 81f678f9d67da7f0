"""The layouts of published pair sets by name, and how a folder in one of them is known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from whyrank.core.errors import BadInput
from whyrank.core.registry import Registry
from whyrank.data.lines import find_file
from whyrank.data.pair_files import read_records

if TYPE_CHECKING:
    from whyrank.data.pairs import PairSet

pair_layouts: Registry[PairSet] = Registry(
    "pair_layouts",
    "pair layout",
    {
        "msrp": "whyrank.data.pair_tables:msrp",
        "wnc": "whyrank.data.pair_tables:wnc",
        "jfleg": "whyrank.data.pair_sentences:jfleg",
        "turkcorpus": "whyrank.data.pair_sentences:turkcorpus",
        "asset": "whyrank.data.pair_sentences:asset",
        "gyafc": "whyrank.data.pair_formality:gyafc",
        "xsum": "whyrank.data.pair_articles:xsum",
        "cnndm": "whyrank.data.pair_articles:cnndm",
        "nq": "whyrank.data.pair_questions:nq",
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
