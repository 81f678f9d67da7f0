"""A BEIR folder: `corpus.jsonl`, `queries.jsonl`, `qrels/SPLIT.tsv`, each plain or `.gz`."""

from __future__ import annotations

from pathlib import Path

from whyrank.core.errors import BadInput
from whyrank.data.collection import Collection
from whyrank.data.corpus import read_corpus
from whyrank.data.folder import Judged, assemble, choose_split
from whyrank.data.lines import find_file
from whyrank.data.queries import read_json_queries
from whyrank.data.trec import Qrels

_DEFAULT = "test"


def is_beir(path: Path) -> bool:
    """Whether a folder has BEIR's shape."""
    return bool(find_file(path, "corpus.jsonl") and find_file(path, "queries.jsonl") and _splits(path))


def read_beir(path: Path, split: str | None = None, strict: bool = False) -> Collection:
    """Read a BEIR folder (Thakur et al., 2021); the split is `test` unless another is named.

    `queries.jsonl` holds the queries of all splits, so only those that the split's judgements mention are
    kept, as BEIR's own loader does.
    """
    notes: list[str] = []
    corpus_file, queries_file = find_file(path, "corpus.jsonl"), find_file(path, "queries.jsonl")
    if corpus_file is None or queries_file is None or not _splits(path):
        raise BadInput(path, "not a BEIR folder", "it needs corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv")
    judged = Judged.read(_judgement_file(path, split or _DEFAULT), notes, strict)
    queries = _of_split(read_json_queries(queries_file, notes, strict), judged.qrels, notes)
    corpus = read_corpus(corpus_file, strict=strict)
    return assemble(path, split or _DEFAULT, corpus, queries, judged, notes=notes, strict=strict)


def _judgement_file(path: Path, split: str) -> Path:
    file = find_file(path / "qrels", f"{choose_split(path, split, _splits(path))}.tsv")
    if file is None:
        raise BadInput(path / "qrels", f"{split}.tsv is not a file", "put the judgements of the split there")
    return file


def _splits(path: Path) -> list[str]:
    files = [*(path / "qrels").glob("*.tsv"), *(path / "qrels").glob("*.tsv.gz")]
    return sorted({file.name.removesuffix(".gz").removesuffix(".tsv") for file in files})


def _of_split(queries: dict[str, str], judged: Qrels, notes: list[str]) -> dict[str, str]:
    kept = {query_id: text for query_id, text in queries.items() if query_id in judged}
    if len(kept) < len(queries):
        notes.append(f"queries of other splits, left out: {len(queries) - len(kept):,}")
    return kept
