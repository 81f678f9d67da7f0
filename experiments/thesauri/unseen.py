"""Four collections that the tables were not made from: claims, headlines and summaries that find texts.

    python unseen.py DATA OUT

DATA has the folders climate_fever, bbc_news_summary, scitldr and xsum_sample; OUT gets a folder for each.
Climate-FEVER: 150 claims drawn at random from those with evidence that supports or refutes them, which counts as
relevant, against all sentences. BBC News: 100 titles drawn at random, each of which has one relevant text, its
article without the title. SciTLDR and XSum: 100 summaries drawn at random, each of which has one relevant text, its
abstract or article.
"""

import gzip
import json
import random
import sys
from pathlib import Path


def rows(path: Path) -> list[dict]:
    """The objects of a JSON lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write(folder: Path, docs: dict[str, str], queries: dict[str, str], relevant: list[tuple[str, str]]) -> None:
    """A collection as a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = (json.dumps({"id": key, "text": text}) + "\n" for key, text in docs.items())
    (folder / "corpus.jsonl").write_text("".join(texts), encoding="utf-8")
    (folder / "queries.tsv").write_text(
        "".join(f"{key}\t{text}\n" for key, text in queries.items()), encoding="utf-8"
    )
    (folder / "qrels.txt").write_text("".join(f"{query} 0 {doc} 1\n" for query, doc in relevant), encoding="utf-8")


data, out = map(Path, sys.argv[1:])
claims = rows(data / "climate_fever" / "claims.jsonl.gz")
number = {text: f"e{i}" for i, text in enumerate(dict.fromkeys(e["text"] for c in claims for e in c["evidence"]))}
found = {c["id"]: {number[e["text"]] for e in c["evidence"] if e["label"] in ("SUPPORTS", "REFUTES")} for c in claims}
drawn = random.Random(0).sample([c for c in claims if found[c["id"]]], 150)
queries = {c["id"]: " ".join(c["claim"].split()) for c in drawn}
write(out / "climate_fever", {key: text for text, key in number.items()}, queries,
      [(query, doc) for query in queries for doc in sorted(found[query])])  # fmt: skip

articles = rows(data / "bbc_news_summary" / "articles.jsonl.gz")
titles = {a["id"]: a["title"] for a in random.Random(0).sample(articles, 100)}
write(out / "bbc_news", {a["id"]: a["text"] for a in articles}, titles, [(key, key) for key in titles])

papers = [row for part in ("train", "dev", "test") for row in rows(data / "scitldr" / f"{part}.jsonl.gz")]
news = rows(data / "xsum_sample" / "articles.jsonl.gz")
for name, texts in (("scitldr", papers), ("xsum", news)):
    drawn = random.Random(0).sample(texts, 100)
    summaries = {
        row["id"]: " ".join((row["summaries"][0] if "summaries" in row else row["summary"]).split()) for row in drawn
    }
    write(out / name, {row["id"]: row["text"] for row in texts}, summaries, [(key, key) for key in summaries])
