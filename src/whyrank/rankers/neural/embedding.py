"""Scoring with models that read queries and texts apart: each distinct text embedded once, and kept for a while.

Texts that are the same tokens to the model, once cut to its length, are one text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from whyrank.core import BadInput, Codes, Floats, WhyrankError
from whyrank.rankers.neural.backends import Array, Compiled, Test, Traceable, taken_over
from whyrank.rankers.neural.computing import Computing, Kept, ahead, by_length
from whyrank.rankers.neural.passages import TextPairs
from whyrank.rankers.neural.weights import config_of

# Embeddings and how two of them are compared: one vector, a sparse one, or one per token.

Matrix = npt.NDArray[np.float64]
_AT_ONCE = 16_384  # pairs that are compared at a time
_TINY = 1e-12


def dot(a: Matrix, b: Matrix) -> Floats:
    """Sum of products."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def cosine(a: Matrix, b: Matrix) -> Floats:
    """Sum of products over the product of the lengths."""
    return np.asarray(dot(a, b) / (np.maximum(_length(a), _TINY) * np.maximum(_length(b), _TINY)))


def euclidean(a: Matrix, b: Matrix) -> Floats:
    """Minus the straight distance."""
    return -_length(a - b)


def manhattan(a: Matrix, b: Matrix) -> Floats:
    """Minus the sum of absolute differences."""
    return np.asarray(-np.abs(a - b).sum(1))


SIMILARITIES: Mapping[str, Callable[[Matrix, Matrix], Floats]] = {
    "cosine": cosine,
    "dot": dot,
    "euclidean": euclidean,
    "manhattan": manhattan,
}


class DenseVectors:
    """One vector per text."""

    def __init__(self, model: Any, similarity: str) -> None:
        """Vectors of a model, which may want only their first dimensions to be used."""
        self.similarity, self.dimensions = SIMILARITIES[similarity], getattr(model, "truncate_dim", None)

    def take(self, outputs: Mapping[str, Any]) -> list[Any]:
        """The vector of each text of a batch."""
        found = outputs["sentence_embedding"].float().cpu().numpy()[:, : self.dimensions]
        return [row.copy() for row in found]

    def size(self, embedding: Any) -> int:
        """Bytes that a vector takes."""
        return int(embedding.nbytes)

    def compare(self, queries: Sequence[Any], docs: Sequence[Any], query: Codes, doc: Codes) -> Floats:
        """Similarities of pairs."""
        a, b, found = np.stack(queries), np.stack(docs), np.empty(len(query))
        for start in range(0, len(query), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            found[some] = self.similarity(a[query[some]].astype(np.float64), b[doc[some]].astype(np.float64))
        return found


class SparseVector(NamedTuple):
    """The dimensions that are not zero, and their weights."""

    places: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]


class SparseVectors:
    """A vector over the vocabulary per text, most of it zero; compared by the sum of products."""

    def __init__(self, model: Any) -> None:
        """Vectors of a model, which may want only the largest weights to be used."""
        self.most = getattr(model, "max_active_dims", None)

    def take(self, outputs: Mapping[str, Any]) -> list[Any]:
        """The vector of each text of a batch."""
        return [self._vector(row) for row in outputs["sentence_embedding"].float().cpu().numpy()]

    def _vector(self, row: npt.NDArray[np.float32]) -> SparseVector:
        places = np.flatnonzero(row)
        if self.most is not None and len(places) > self.most:
            places = np.sort(places[np.argsort(-np.abs(row[places]), kind="stable")[: self.most]])
        return SparseVector(places.astype(np.int32), row[places])

    def size(self, embedding: SparseVector) -> int:
        """Bytes that a vector takes."""
        return int(embedding.places.nbytes + embedding.weights.nbytes)

    def compare(self, queries: Sequence[Any], docs: Sequence[Any], query: Codes, doc: Codes) -> Floats:
        """Sums of products of pairs."""
        width = 1 + max((int(v.places[-1]) for v in (*queries, *docs) if len(v.places)), default=0)
        a, b = _sparse_matrix(queries, width), _sparse_matrix(docs, width)
        return np.asarray(a[query].multiply(b[doc]).sum(axis=1), dtype=np.float64).reshape(-1)


class TokenVectors:
    """One vector per token; each token of the query finds the most similar one of the text, and these are summed."""

    def __init__(self, model: Any) -> None:
        """Vectors of a model, which knows whether the sum or the mean over query tokens counts."""
        self.model = model

    def take(self, outputs: Mapping[str, Any]) -> list[Any]:
        """The vectors of each text of a batch."""
        vectors, masks = outputs["token_embeddings"].float().cpu(), outputs["attention_mask"].bool().cpu()
        return [each[mask] for each, mask in zip(vectors, masks, strict=True)]

    def size(self, embedding: Any) -> int:
        """Bytes that the vectors take."""
        return int(embedding.nbytes)

    def compare(self, queries: Sequence[Any], docs: Sequence[Any], query: Codes, doc: Codes) -> Floats:
        """Summed highest similarities of pairs."""
        a, b = [queries[i] for i in query.tolist()], [docs[i] for i in doc.tolist()]
        return np.asarray(self.model.similarity_pairwise(a, b).float().cpu().numpy(), dtype=np.float64)


def _length(rows: Matrix) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _sparse_matrix(vectors: Sequence[SparseVector], width: int) -> Any:
    from scipy.sparse import csr_array

    edges = np.concatenate([[0], np.cumsum([len(v.places) for v in vectors])])
    values, places = (np.concatenate([part[i] for part in vectors]) for i in (1, 0))
    return csr_array((values.astype(np.float64), places, edges), shape=(len(vectors), width))


EMBEDDING = "sentence_embedding"
KEPT = 512 * 2**20  # bytes of embeddings that outlive a call
PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}
_CHARACTERS_PER_TOKEN = 4  # only to make batches of about the same size
_EXAMPLES = (["Ice is water that froze.", "snow"], ["ice and snow " * 180, "Where do glaciers come from?", "?"])


class Vectors(Protocol):
    """What a kind of model makes of a text, and how two of them are compared."""

    def take(self, outputs: Mapping[str, Any]) -> list[Any]:
        """The embedding of each text of a batch."""
        ...

    def size(self, embedding: Any) -> int:
        """Bytes that an embedding takes."""
        ...

    def compare(self, queries: Sequence[Any], docs: Sequence[Any], query: Codes, doc: Codes) -> Floats:
        """Similarities of the pairs `(queries[query[i]], docs[doc[i]])`."""
        ...


class Models(NamedTuple):
    """A class of sentence-transformers by name, what to do with its outputs, and how trained ones are recognised.

    A folder says for which class it was saved; where it does not, its architecture must end in `architecture`.
    """

    name: str
    vectors: Callable[[Any], Vectors]
    saved_as: tuple[str, ...]
    architecture: str


@dataclass(frozen=True, eq=False)
class EmbeddingScorer:
    """Embeds queries and texts with a model of sentence-transformers and compares them.

    Args:
        model: the model, on its device.
        vectors: what its outputs are.
        computing: where it computes, and in which number format.
        prompts: what is put before queries and before texts.
        compiled: the model in the form of another back end than torch.
    """

    model: Any
    vectors: Vectors
    computing: Computing
    prompts: Mapping[str, str]
    compiled: Compiled | None = None
    kept: Kept = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is embedded yet."""
        object.__setattr__(self, "kept", Kept(KEPT))

    @classmethod
    def of(cls, folder: Path, models: Models, computing: Computing, **own: str | None) -> EmbeddingScorer:
        """Load a model; `own` prompts, for `query` and `document`, take the place of its own."""
        check_kind(folder, models)
        model = load_model(folder, models.name, computing)
        prompts = {task: prompt_of(model, task) if own.get(task) is None else str(own[task]) for task in PROMPTS}
        return cls(model, models.vectors(model), computing, prompts)

    def taken_over(self, name: str) -> EmbeddingScorer:
        """The same scorer that computes as it is asked to, or by torch where a back end cannot take the model.

        The model is traced with texts, and must give what torch gives for other texts and for queries.
        """
        if self.computing.backend == "torch":
            return self
        (first, own), *others = ((self._features(texts, task), task) for texts in _EXAMPLES for task in PROMPTS)
        tests = [Test(_arrays(features), partial(self._embedded, features, task)) for features, task in others]
        call = partial(self._traced, first, own)
        computing, compiled = taken_over(name, Traceable(self.model, call, _arrays(first), tests), self.computing)
        return replace(self, computing=computing, compiled=compiled)

    def exact(self) -> EmbeddingScorer:
        """The same model by torch in fp32."""
        return replace(self, computing=self.computing.exact, compiled=None)

    def __call__(self, pairs: TextPairs) -> Floats:
        """One similarity per pair."""
        queries, docs = self.embed(pairs.queries, "query"), self.embed(pairs.docs, "document")
        return self.vectors.compare(queries, docs, pairs.query, pairs.doc)

    def embed(self, texts: Sequence[str], task: str) -> list[Any]:
        """The embeddings of queries or of texts, those known from earlier calls included."""
        inputs, known = [b""] * len(texts), dict[bytes, Any]()
        for keys, made in self._made(self._batches(texts, task, inputs, known), task):
            known |= zip(keys, made, strict=True)
        for key, embedding in known.items():
            self.kept.add(key, embedding, self.vectors.size(embedding))
        return [known[key] for key in inputs]

    def _made(self, batches: Iterator[tuple[list[bytes], Any]], task: str) -> Iterable[tuple[list[bytes], list[Any]]]:
        import torch

        if self.compiled is not None:
            found = self.compiled.each((keys, _arrays(features)) for keys, features in batches)
            return ((keys, self.vectors.take({EMBEDDING: torch.from_numpy(made)})) for keys, made in found)
        with self.computing.running():
            return [(keys, self.vectors.take(self._outputs(given, task))) for keys, given in ahead(batches)]

    def _batches(
        self, texts: Sequence[str], task: str, inputs: list[bytes], known: dict[bytes, Any]
    ) -> Iterator[tuple[list[bytes], Any]]:
        """Tokenised texts of about the same length; the key of each goes to `inputs`, what is kept to `known`."""
        longest = getattr(self.model, "max_seq_length", None) or 512
        lengths = np.array([min(len(text) // _CHARACTERS_PER_TOKEN + 3, longest) for text in texts], np.int64)
        ties = np.array([len(text) for text in texts], np.int64)
        order = np.argsort(-ties, kind="stable")
        for some in by_length(lengths[order], self.computing.tokens):
            given = [texts[i] for i in order[some]]
            features = self._features(given, task)
            keys = _keys(features, given, task)
            for row, key in zip(order[some].tolist(), keys, strict=True):
                inputs[row] = key
            new = self.kept.missing(keys, known)
            if 0 < len(new) < len(given):
                features = self._features([given[i] for i in new], task)
            if new:
                yield [keys[i] for i in new], features

    def _features(self, texts: Sequence[str], task: str) -> Any:
        return self.model.preprocess(list(texts), prompt=self.prompts[task], task=task)

    def _outputs(self, features: Mapping[str, Any], task: str) -> Any:
        placed = {k: v.to(self.computing.device) if hasattr(v, "to") else v for k, v in features.items()}
        return self.model(placed, task=task)

    def _embedded(self, features: Mapping[str, Any], task: str) -> Any:
        return self._outputs(features, task)[EMBEDDING]

    def _traced(self, constants: Mapping[str, Any], task: str, tensors: Mapping[str, Any]) -> Any:
        return self._embedded({**constants, **tensors}, task)


def check_kind(folder: Path, models: Models) -> None:
    """Raise an error for a model of another kind, to which the package would add layers with random weights."""
    saved_as = config_of(folder, "config_sentence_transformers.json").get("model_type")
    architectures = config_of(folder).get("architectures") or [""]
    fits = saved_as in models.saved_as if saved_as else str(architectures[0]).endswith(models.architecture)
    if not fits:
        what = f"is no trained {models.name} (it says {saved_as or architectures[0] or 'nothing'})"
        raise BadInput(folder, what, "give a model of this kind, or write bi:, cross:, sparse: or late:PATH as fits")


def load_model(folder: Path, name: str, computing: Computing) -> Any:
    """A model of sentence-transformers, from safetensors only and without code of its own."""
    import sentence_transformers

    kind = getattr(sentence_transformers, name, None)
    if kind is None or not hasattr(kind, "preprocess"):
        raise WhyrankError(f"{folder} needs a newer sentence-transformers, one with {name}; pip install -U it")
    arguments = {"use_safetensors": True}
    made = kind(
        str(folder), device=computing.device, model_kwargs=arguments, local_files_only=True, trust_remote_code=False
    )
    return computing.placed(made)


def _keys(features: Mapping[str, Any], texts: Sequence[str], task: str) -> list[bytes]:
    """A digest of the tokens of each text; of the text itself where no mask says which tokens are padding."""
    read = [text.encode() for text in texts]
    if "input_ids" in features and "attention_mask" in features:
        rows = zip(features["input_ids"].numpy(), features["attention_mask"].numpy() > 0, strict=True)
        read = [ids[mask].tobytes() for ids, mask in rows]
    return [blake2b(f"{task} ".encode() + each, digest_size=16).digest() for each in read]


def _arrays(features: Mapping[str, Any]) -> dict[str, Array]:
    """What a tokenizer gave as arrays, without what is no tensor."""
    return {name: value.numpy() for name, value in features.items() if hasattr(value, "numpy")}


def prompt_of(model: Any, task: str) -> str:
    """What a model wants before queries or before texts: the first prompt for them that its configuration has."""
    prompts = getattr(model, "prompts", {})
    return next((str(prompts[name]) for name in PROMPTS[task] if prompts.get(name)), "")
