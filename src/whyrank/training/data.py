"""From collections, runs and files of triples to what a network learns from and is validated on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from whyrank.core import BadInput, WhyrankError, generator
from whyrank.data import every_line
from whyrank.training.recipe import JudgedData, ValidationData
from whyrank.training.validation import Validation

if TYPE_CHECKING:
    from whyrank.data import Collection


class EpochExamples(NamedTuple):
    """The examples of an epoch: `query[i]` with the texts `doc[i]`, of which the first is the positive one.

    Each text has a target: a label or a teacher's score.
    """

    query: npt.NDArray[np.int32]
    doc: npt.NDArray[np.int32]
    target: npt.NDArray[np.float32]

    def take(self, rows: npt.NDArray[np.int64]) -> EpochExamples:
        """Some of the examples."""
        return EpochExamples(self.query[rows], self.doc[rows], self.target[rows])


class ExampleSampler(Protocol):
    """Draws the examples of an epoch; the same ones for the same seed."""

    def epoch(self, seed: int, epoch: int) -> EpochExamples:
        """The examples of one epoch, in order."""
        ...


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Texts, and who draws examples from them."""

    queries: Sequence[str]
    docs: Sequence[str]
    sampler: ExampleSampler


class NumberedTexts:
    """Distinct texts, numbered in the order of first sight."""

    def __init__(self) -> None:
        """No texts yet."""
        self.found: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text."""
        return self.found.setdefault(text, len(self.found))

    def numbers(self, texts: Sequence[str]) -> npt.NDArray[np.int32]:
        """The numbers of several."""
        return np.array([self.number(text) for text in texts], dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Fixed:
    """Fixed examples, every epoch in a new order."""

    examples: EpochExamples

    def epoch(self, seed: int, epoch: int) -> EpochExamples:
        """All examples in the order of this epoch."""
        random = generator(seed, "order", str(epoch))
        return self.examples.take(random.permutation(len(self.examples.query)))


@dataclass(frozen=True, eq=False)
class Judged:
    """One positive text and some negative ones for each query and epoch.

    `positives` and `negatives` hold the numbers of the texts of each query; queries without either are left out.
    """

    positives: Sequence[npt.NDArray[np.int32]]
    negatives: Sequence[npt.NDArray[np.int32]]
    n: int = 1

    def epoch(self, seed: int, epoch: int) -> EpochExamples:
        """One example per query, in the order of this epoch."""
        random = generator(seed, "judged", str(epoch))
        usable = [q for q, p in enumerate(self.positives) if len(p) and len(self.negatives[q])]
        order = random.permutation(np.array(usable, dtype=np.int32))
        rows = []
        for q in order.tolist():
            drawn = random.choice(self.negatives[q], self.n, replace=len(self.negatives[q]) < self.n)
            rows.append([int(random.choice(self.positives[q])), *drawn.tolist()])
        doc = np.array(rows, dtype=np.int32).reshape(-1, 1 + self.n)
        target = np.zeros(doc.shape, np.float32)
        target[:, :1] = 1
        return EpochExamples(order, doc, target)


_REMEDY = "write query, positive and negative text with tabs between them, and perhaps two scores"


def triples(path: str, limit: int | None = None) -> TrainingSet:
    """A training set from a TSV file, plain or gzip; the first `limit` lines.

    Each line has a query, a positive and a negative text, and perhaps a teacher's score of either text; without
    scores the targets are 1 and 0.
    """
    queries, texts, rows, targets = NumberedTexts(), NumberedTexts(), [], []
    file = Path(path).expanduser()
    for line in islice(every_line(file), limit):
        columns = line.text.split("\t")
        if len(columns) not in (3, 5):
            raise BadInput(file, f"has {len(columns)} columns, not 3 or 5", _REMEDY, line=line.number)
        try:
            scores = [float(column) for column in columns[3:]] or [1.0, 0.0]
        except ValueError:
            scores = [math.nan]
        if not all(map(math.isfinite, scores)):
            raise BadInput(file, f"has the scores {columns[3]!r} and {columns[4]!r}", _REMEDY, line=line.number)
        rows.append((queries.number(columns[0]), texts.number(columns[1]), texts.number(columns[2])))
        targets.append(scores)
    if not rows:
        raise BadInput(path, "holds no triples", _REMEDY)
    table = np.array(rows, dtype=np.int32)
    examples = EpochExamples(table[:, 0], table[:, 1:], np.array(targets, dtype=np.float32))
    return TrainingSet(list(queries.found), list(texts.found), Fixed(examples))


RANDOM = 100  # texts of the collection that stand in as negatives of a query where no run is named


def training_set(data: Mapping[str, Any]) -> TrainingSet:
    """The training set that the `data` of a recipe describes.

    `triples` is a TSV file with query, positive and negative text, and perhaps a teacher's score of either. Otherwise
    `collection` (or a list of them) gives queries and relevant texts; negatives come from the run `negatives`, from
    the texts that are judged non-relevant (`judged`), or at random (`random`); `n` per query and epoch.
    """
    given = JudgedData(**data)
    if given.triples is not None:
        return triples(given.triples, given.limit)
    from whyrank.data import open_collection

    queries, texts, positives, negatives = [], NumberedTexts(), [], []
    for collection in map(open_collection, given.collection):
        least = collection.grades.relevant if given.relevant is None else given.relevant
        pool = _pools(collection, given.negatives)
        for query_id, judged in collection.qrels.items():
            good = [d for d, grade in judged.items() if grade >= least and d in collection.docs]
            if query_id not in collection.queries or not good:
                continue
            bad = [d for d in pool(query_id) if judged.get(d, 0) < least and d in collection.docs]
            right = np.unique(texts.numbers([collection.docs[d] for d in good]))
            wrong = np.setdiff1d(texts.numbers([collection.docs[d] for d in bad]), right)  # a text may occur twice
            if len(wrong):
                queries.append(collection.queries[query_id])
                positives.append(right)
                negatives.append(wrong)
    if not queries:
        raise WhyrankError(f"data: no query of {', '.join(given.collection)} has a relevant and another text")
    kept = slice(0, given.limit)
    return TrainingSet(queries[kept], list(texts.found), Judged(positives[kept], negatives[kept], given.n))


def _pools(collection: Collection, source: str) -> Callable[[str], list[str]]:
    """A function that gives the documents of a query among which the non-relevant ones are negatives."""
    from whyrank.data import open_run

    if source == "judged":
        return lambda query_id: list(collection.qrels[query_id])
    if source != "random":
        run = open_run(collection, source).run
        return lambda query_id: list(run.get(query_id, ()))
    ids = list(collection.docs)
    size = min(RANDOM, len(ids))
    return lambda q: [ids[i] for i in generator(0, "negatives", q).choice(len(ids), size, replace=False)]


def validation_set(data: Mapping[str, Any]) -> Validation | None:
    """The validation that a recipe describes: the candidates of a run, judged; None where it describes none."""
    if not data:
        return None
    from whyrank.data import first_stage, open_collection, open_run, ranking

    given = ValidationData(**data)
    collection = open_collection(given.collection)
    name = given.run or first_stage(collection)
    if name is None:
        known = ", ".join(collection.runs) or "it has none"
        raise WhyrankError(f"validation: name a run of {collection.name}: {known}")
    run = open_run(collection, name).run
    chosen = [q for q in sorted(collection.qrels) if q in run and q in collection.queries][: given.limit]
    texts, rows = NumberedTexts(), []
    for number, q in enumerate(chosen):
        for d in ranking(run[q])[: given.depth]:
            if d in collection.docs:
                rows.append((number, texts.number(collection.docs[d]), collection.qrels[q].get(d, 0)))
    if not rows:
        raise WhyrankError(f"validation: no judged query of {collection.name} has candidates in the run")
    query, doc, grade = np.array(rows).T
    ideal = [list(collection.qrels[q].values()) for q in chosen]
    return Validation(
        [collection.queries[q] for q in chosen], list(texts.found), query.astype(np.int32), doc.astype(np.int32),
        grade.astype(np.float32), ideal, given.measure,
    )  # fmt: skip


def corpus_texts(names: Sequence[str], limit: int | None = None) -> list[str]:
    """The texts of collections, at most `limit` of each."""
    from whyrank.data import open_collection

    found = []
    for collection in map(open_collection, names):
        ids = list(collection.docs)
        if limit and len(ids) > limit:
            ids = [ids[i] for i in np.sort(generator(0, "corpus").choice(len(ids), limit, replace=False))]
        found += [collection.docs[d] for d in ids]
    return found
