"""How many words must change for two neighbours in a ranking to change places.

For each query the candidates of BM25 are ranked by a ranker, and pairs of neighbours among the best are explained.
Prints the share of pairs whose order an edit turns round, and with at most a fifth of the words changed; the median
number of words changed; the fit of the explanations; and the time:

    python benchmarks/counterfactuals.py sample --ranker cross:bundled --pairs 2
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import whyrank
from whyrank.core import generator
from whyrank.rankers import Setting
from whyrank.scoring import Engine, retrieve

MOST = 0.2  # of the words


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("collection")
    parser.add_argument("--ranker", default="cross:bundled")
    parser.add_argument("--pairs", type=int, default=2, help="pairs of neighbours of each query")
    parser.add_argument("--depth", type=int, default=10, help="neighbours come from so many candidates of BM25")
    parser.add_argument("--calls", type=int, default=200)
    asked = parser.parse_args()
    collection, engine = whyrank.open_collection(asked.collection), Engine()
    ranker = whyrank.open_ranker(asked.ranker, Setting(collection))
    run, _ = retrieve(engine, ranker, collection, asked.depth)
    found, start = [], time.perf_counter()
    for query_id, scores in run.items():
        order = sorted(scores, key=lambda doc: -scores[doc])
        ranks = generator(0, query_id).permutation(len(order) - 1)[: asked.pairs]
        for above, below in ((order[rank], order[rank + 1]) for rank in ranks):
            texts = collection.docs[above], collection.docs[below]
            found.append(whyrank.explain(ranker, collection.queries[query_id], *texts, calls=asked.calls))
    seconds = (time.perf_counter() - start) / len(found)
    edits = [each.counterfactual for each in found if each.counterfactual]
    words, shares = [edit.words_changed for edit in edits], np.array([edit.share_changed for edit in edits])
    fits = [each.fit for each in found if each.fit is not None]
    print(f"{asked.ranker} on {collection.name}: {len(found)} pairs of neighbours, at most {asked.calls} calls each")
    print(f"calls: at most {max(each.calls for each in found)}, median {np.median([e.calls for e in found]):.0f}")
    print(f"order turned round: {len(edits) / len(found):.1%}")
    print(f"with at most a fifth of the words changed: {(shares <= MOST).sum() / len(found):.1%}")
    print(f"words changed: median {np.median(words):.0f}, largest {max(words)}; with words put in front: "
          f"{sum(bool(edit.inserted) for edit in edits)}")  # fmt: skip
    print(f"R^2 on changed texts not fitted to: median {np.median(fits):.2f}, smallest {min(fits):.2f}")
    print(f"seconds per pair: {seconds:.2f}")


if __name__ == "__main__":
    main()
