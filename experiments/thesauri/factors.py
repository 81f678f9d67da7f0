"""What the tables of the package gain over BM25, by the factor of their weights.

    python factors.py DATA UNSEEN MINILM [FACTOR ...]

DATA holds the collections, UNSEEN what `unseen.py` wrote, MINILM is the folder of all-MiniLM-L6-v2. Each line: a
table, a collection, and for each factor the gain in nDCG@10 in percent and the gain in Pearson's correlation with the
table's ranker, over `bm25(variant=parm)` with the same candidates: the published 100 of DL 2019 and DL 2021, else the
50 best of BM25. `*`: the interval of the gain in correlation contains 0. The rankers compute with precision `fast`.
"""

import sys
import tempfile
from dataclasses import replace

import whyrank

FACTOR = 0.5  # of the tables in the package
SEEN = ["msmarco_dl21", "msmarco_dl19"]
OTHERS = ["cranfield", "cisi", "vaswani", "noveleval", "nq_utd"]
UNSEEN = ["climate_fever", "scitldr", "bbc_news", "xsum"]
BASELINE = "bm25(variant=parm)"

data, unseen, minilm = sys.argv[1:4]
factors = [float(text) for text in sys.argv[4:]] or [FACTOR]
paths = [f"{data}/{name}" for name in SEEN + OTHERS] + [f"{unseen}/{name}" for name in UNSEEN]
with tempfile.TemporaryDirectory() as folder:
    for name, ranker in {"bundled": "cross:bundled", "bundled-minilm": f"bi:{minilm}"}.items():
        table, target = whyrank.open_table(name), whyrank.open_ranker(f"{ranker}(precision=fast)")
        for factor in factors:
            weights = table.weights * (factor / FACTOR)
            replace(table, weights=weights.astype(table.weights.dtype)).save(f"{folder}/{name}-{factor}.parquet")
        surrogates = [BASELINE, *(f"bm25t:{folder}/{name}-{factor}.parquet" for factor in factors)]
        for path in paths:
            collection = whyrank.open_collection(path)
            candidates, depth = (collection.runs["bm25.top100"], 100) if "msmarco_dl" in path else (None, 50)
            found = whyrank.fidelity(target, surrogates, collection, depth, candidates, ["pearson"])
            ndcg = {row.run: row.mean for _, row in found.effectiveness if row.measure == "nDCG@10"}
            line = [f"{name:15} {collection.name:15}"]
            for surrogate, row in zip(surrogates[1:], found.differences, strict=True):
                sure = " " if row.ci_low > 0 or row.ci_high < 0 else "*"
                line.append(f"{ndcg[surrogate] / ndcg[BASELINE] - 1:+6.1%} {row.difference:+.3f}{sure}")
            print(*line, sep="  ", flush=True)
