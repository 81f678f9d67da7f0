"""Collections written by hand."""

from __future__ import annotations

import json


def write_collection(path, docs, queries, qrels="", run=""):
    """Write a folder that opens as a collection; texts and queries are mappings of ids."""
    path.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"id": doc_id, "text": text}) + "\n" for doc_id, text in docs.items()]
    (path / "corpus.jsonl").write_text("".join(lines))
    (path / "queries.tsv").write_text("".join(f"{query_id}\t{text}\n" for query_id, text in queries.items()))
    for name, text in (("qrels.txt", qrels), ("run.txt", run)):
        if text:
            (path / name).write_text(text)
    return path
