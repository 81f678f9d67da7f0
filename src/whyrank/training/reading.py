"""From collections, runs and files of triples to what a network learns from and is validated on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from whyrank.core.errors import WhyrankError
from whyrank.core.seeds import generator
from whyrank.training.examples import Judged, Texts, TrainingSet
from whyrank.training.triples import triples
from whyrank.training.validation import Validation

if TYPE_CHECKING:
    from whyrank.data import Collection

RANDOM = 100  # texts of the collection that stand in as negatives of a query where no run is named


def training_set(data: Mapping[str, Any], seed: int = 0) -> TrainingSet:
    """The training set that the `data` of a recipe describes.

    `triples` is a TSV file with query, positive and negative text, and perhaps a teacher's score of either. Otherwise
    `collection` (or a list of them) gives queries and relevant texts; negatives come from the run `negatives`, from
    the texts that are judged non-relevant (`judged`), or at random (`random`); `n` per query and epoch.
    """
    if "triples" in data:
        return triples(str(data["triples"]), data.get("limit"))
    from whyrank.data import open_collection

    queries, texts, positives, negatives = [], Texts(), [], []
    for collection in map(open_collection, collection_names(data)):
        for query_id, good, bad in _rows(collection, data, seed):
            right = np.unique(texts.numbers([collection.docs[d] for d in good]))
            wrong = np.setdiff1d(texts.numbers([collection.docs[d] for d in bad]), right)  # a text may occur twice
            if len(wrong):
                queries.append(collection.queries[query_id])
                positives.append(right)
                negatives.append(wrong)
    if not queries:
        raise WhyrankError(f"data: no query of {', '.join(collection_names(data))} has a relevant and another text")
    kept = slice(0, data.get("limit"))
    return TrainingSet(queries[kept], list(texts.found), Judged(positives[kept], negatives[kept], data.get("n", 1)))


def validation_set(given: Mapping[str, Any]) -> Validation | None:
    """The validation that a recipe describes: the candidates of a run, judged; None where it describes none."""
    if not given:
        return None
    from whyrank.data import open_collection, open_run

    collection = open_collection(str(given["collection"]))
    run = open_run(collection, str(given.get("run") or _first_stage(collection))).run
    chosen = [q for q in sorted(collection.qrels) if q in run and q in collection.queries][: given.get("limit")]
    texts, rows = Texts(), []
    for number, q in enumerate(chosen):
        for d in _candidates(collection, run[q], int(given.get("depth", 100))):
            rows.append((number, texts.number(collection.docs[d]), collection.qrels[q].get(d, 0)))
    if not rows:
        raise WhyrankError(f"validation: no judged query of {collection.name} has candidates in the run")
    query, doc, grade = np.array(rows).T
    ideal = [list(collection.qrels[q].values()) for q in chosen]
    return Validation(
        [collection.queries[q] for q in chosen], list(texts.found), query.astype(np.int32), doc.astype(np.int32),
        grade.astype(np.float32), ideal, str(given.get("measure", "nDCG@10")),
    )  # fmt: skip


def corpus_texts(names: Sequence[str], limit: int | None = None, seed: int = 0) -> list[str]:
    """The texts of collections, at most `limit` of each."""
    from whyrank.data import open_collection

    found = []
    for collection in map(open_collection, names):
        ids = list(collection.docs)
        if limit and len(ids) > limit:
            ids = [ids[i] for i in np.sort(generator(seed, "corpus").choice(len(ids), limit, replace=False))]
        found += [collection.docs[d] for d in ids]
    return found


def collection_names(data: Mapping[str, Any]) -> list[str]:
    """The collections that `data` names, one or several."""
    given = data["collection"]
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise WhyrankError(f"data: collection must be a name or a list of names, not {given!r}")
    return names


def _rows(collection: Collection, data: Mapping[str, Any], seed: int) -> Iterator[tuple[str, list[str], list[str]]]:
    """Query id, relevant and non-relevant document ids, for every query that has both kinds of judgement or text."""
    least, pool = data.get("relevant", collection.grades.relevant), _pools(collection, data, seed)
    for query_id, judged in collection.qrels.items():
        good = [d for d, grade in judged.items() if grade >= least and d in collection.docs]
        if query_id in collection.queries and good:
            yield query_id, good, [d for d in pool(query_id) if judged.get(d, 0) < least and d in collection.docs]


def _pools(collection: Collection, data: Mapping[str, Any], seed: int) -> Callable[[str], list[str]]:
    """A function that gives the documents of a query among which the non-relevant ones are negatives."""
    from whyrank.data import open_run

    source = str(data.get("negatives", "random"))
    if source == "judged":
        return lambda query_id: list(collection.qrels[query_id])
    if source != "random":
        run = open_run(collection, source).run
        return lambda query_id: list(run.get(query_id, ()))
    ids = list(collection.docs)
    size = min(RANDOM, len(ids))
    return lambda q: [ids[i] for i in generator(seed, "negatives", q).choice(len(ids), size, replace=False)]


def _candidates(collection: Collection, scores: Mapping[str, float], depth: int) -> list[str]:
    """The documents that are ranked first."""
    from whyrank.data import ranking

    return [d for d in ranking(scores)[:depth] if d in collection.docs]


def _first_stage(collection: Collection) -> str:
    from whyrank.data.runs import first_stage

    found = first_stage(collection)
    if found is None:
        known = ", ".join(collection.runs) or "it has none"
        raise WhyrankError(f"validation: name a run of {collection.name}: {known}")
    return found
