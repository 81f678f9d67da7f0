"""The sqlite file behind the score store: its tables."""

from __future__ import annotations

from whyrank.core.sqlite import Layout

_IDENTITY = "(SELECT identity FROM rankers WHERE id = ranker)"

SCORES = Layout(
    what="score store",
    application=0x77726E6B,
    version=2,
    tables=(
        "CREATE TABLE rankers (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE)",
        # docs: 16-byte digests, ascending by their first half as a little-endian number; scores: float64
        """CREATE TABLE scores (ranker INTEGER NOT NULL REFERENCES rankers, query BLOB NOT NULL,
        docs BLOB NOT NULL, scores BLOB NOT NULL, checksum BLOB NOT NULL, PRIMARY KEY (ranker, query))""",
        """CREATE TABLE failures (ranker INTEGER NOT NULL REFERENCES rankers, query_digest BLOB NOT NULL,
        doc_digest BLOB NOT NULL, query BLOB NOT NULL, doc BLOB NOT NULL, reason TEXT NOT NULL,
        "when" TEXT NOT NULL, checksum BLOB NOT NULL, PRIMARY KEY (ranker, query_digest, doc_digest))""",
    ),
    elsewhere="pass another path (the variable WHYRANK_CACHE names the folder)",
    upgrade=(
        "ALTER TABLE scores ADD COLUMN checksum BLOB NOT NULL DEFAULT x''",
        f"UPDATE scores SET checksum = checksum({_IDENTITY}, query, docs, scores)",
        "ALTER TABLE failures ADD COLUMN checksum BLOB NOT NULL DEFAULT x''",
        f"UPDATE failures SET checksum = checksum({_IDENTITY}, query, doc, reason)",
    ),
)
