"""How models read texts: query and text together or apart, tokenised here or by the model's own processor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from whyrank.core import BadInput, Ints, WhyrankError
from whyrank.networks import Arrays, Ids, tensors
from whyrank.rankers.neural.computing import Computing
from whyrank.rankers.neural.inputs import InputLayout, Taken, TokenRows, digest_of_tokens, lay_out
from whyrank.rankers.neural.passages import TextPairs
from whyrank.rankers.neural.scorer import Reader, Side, TokenisedInputs
from whyrank.rankers.neural.weights import architecture_of, config_of
from whyrank.text import positions_of

if TYPE_CHECKING:
    from torch import Tensor

PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}
_CUT = {"input_ids", "attention_mask", "token_type_ids"}  # arrays that may be cut to the longest row of a batch

# Models that read query and text together, each of them tokenised once for all its pairs.


class PairReader(Reader):
    """Tokenises queries and texts apart and reads them together. Each kind of model has its own subclass.

    Attributes:
        layout: what the model reads of a pair.
        last: whether the last tokens of what is too long are read, and not the first ones.
    """

    layout: InputLayout
    last = False

    def query_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Queries as token numbers."""
        raise NotImplementedError

    def doc_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Texts as token numbers."""
        raise NotImplementedError

    def cut(self, query: Ints, doc: Ints) -> tuple[Ints, Ints]:
        """How many tokens of each query and of each text are read, of how many that they have."""
        return query, doc

    def batch(self, query: Taken, doc: Taken, computing: Computing) -> dict[str, Any]:
        """Some pairs as the model wants them."""
        return lay_out(self.layout, {"query": query, "doc": doc}, computing.device, computing.multiple)

    def prepare(self, pairs: TextPairs, side: Side, computing: Computing) -> Callable[[Ints], TokenisedInputs]:
        """What tokenises some pairs; each distinct text is tokenised when it is first met."""
        queries, docs = TokenRows(self.query_ids, pairs.queries), TokenRows(self.doc_ids, pairs.docs)

        def tokenise(rows: Ints) -> TokenisedInputs:
            q, d = pairs.query[rows], pairs.doc[rows]
            queries.add(q)
            docs.add(d)
            n, m = self.cut(queries.sizes[q], docs.sizes[d])
            query, doc = Taken.of(queries, q, n, self.last), Taken.of(docs, d, m, self.last)
            both = np.concatenate([queries.digests[q], docs.digests[d]], axis=1)
            keys = [key.tobytes() for key in both]
            shortened = np.flatnonzero((n < queries.sizes[q]) | (m < docs.sizes[d]))
            cut = zip(query.take(shortened).lists(), doc.take(shortened).lists(), strict=True)
            for i, (own, text) in zip(shortened.tolist(), cut, strict=True):
                keys[i] = digest_of_tokens(own) + digest_of_tokens(text)
            return TokenisedInputs(keys, n + m, lambda some: self.batch(query.take(some), doc.take(some), computing))

        return tokenise


# Networks that were trained here.


def load_network(folder: Path, architecture: str, computing: Computing) -> Any:
    """A network that must be of some architecture, on its device."""
    from whyrank import networks

    own = architecture_of(folder)
    if own is None:
        raise BadInput(folder, "holds no network that was trained here", "give a folder that `whyrank train` wrote")
    if own != architecture:
        raise BadInput(folder, f"is a network of architecture {own}, not {architecture}", f"write {own}:PATH")
    return computing.place(networks.load(folder))


class NetworkPairs(PairReader):
    """A network that reads query and text together."""

    def __init__(self, network: Any) -> None:
        from whyrank.networks.network import JointNetwork

        self.module = self.network = network
        self.query_ids, self.doc_ids = network.query_ids, network.doc_ids  # type: ignore[method-assign]
        self._plain = type(network).arrays is getattr(JointNetwork, "arrays", None)
        if self._plain:
            cls, sep, pad = (network.tokenizer.special[name] for name in ("cls", "sep", "pad"))
            first, second = np.array([cls], np.int32), np.array([sep], np.int32)
            self.layout = InputLayout(
                (first, "query", second, "doc", second), (0, 0, 0, 1, 1), pad, ("ids", "mask", "types")
            )

    def batch(self, query: Taken, doc: Taken, computing: Computing) -> dict[str, Any]:
        """Pairs as the network wants them."""
        if self._plain:
            return super().batch(query, doc, computing)
        return tensors(self.network.arrays(query.lists(), doc.lists()), computing.device)

    def __call__(self, batch: dict[str, Any], side: Side = "pair") -> Tensor:
        """One score per pair of a batch."""
        found: Tensor = self.network(batch)
        return found


class NetworkTexts(Reader):
    """A network that reads queries and texts apart; an encoding is a dict of tensors."""

    apart = True

    def __init__(self, network: Any) -> None:
        self.module = self.network = network

    def prepare(self, pairs: TextPairs, side: Side, computing: Computing) -> Callable[[Ints], TokenisedInputs]:
        """What tokenises some of the texts."""
        network = self.network
        ids_of, arrays = network.doc_ids, network.doc_arrays
        if side == "query":
            ids_of, arrays = network.query_ids, network.query_arrays

        def tokenise(rows: Ints) -> TokenisedInputs:
            ids = ids_of([pairs.docs[i] for i in pairs.doc[rows]])
            keys = [digest_of_tokens(side.encode(), each) for each in ids]
            lengths = np.array([len(each) for each in ids], np.int64)
            return TokenisedInputs(
                keys, lengths, lambda some: tensors(arrays([ids[i] for i in some]), computing.device)
            )

        return tokenise

    def __call__(self, batch: dict[str, Any], side: Side) -> dict[str, Tensor]:
        """The encodings of a batch."""
        found: dict[str, Tensor]
        found = self.network.encode_queries(batch) if side == "query" else self.network.encode_docs(batch)
        return found

    def rows(self, output: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        """The encoding of each text, still with a first dimension of 1."""
        n = len(next(iter(output.values())))
        return [{name: tensor[i : i + 1] for name, tensor in output.items()} for i in range(n)]

    def compare(self, queries: Sequence[Any], docs: Sequence[Any], query: Tensor, doc: Tensor) -> Tensor:
        """What the network gives for pairs of encodings."""
        from whyrank.networks import join, take

        found: Tensor = self.network.interact(take(join(queries), query), take(join(docs), doc))
        return found


# Models of sentence-transformers.


class ModelKind(NamedTuple):
    """A class of sentence-transformers by name, and how its trained models are recognised.

    A folder says for which class it was saved; where it does not, its architecture must end in one of these.
    """

    name: str
    saved_as: tuple[str, ...]
    architectures: tuple[str, ...] = ("",)


def load_model(folder: Path, kind: ModelKind, computing: Computing) -> Any:
    """A model of sentence-transformers on its device, from safetensors only and without code of its own.

    Raises an error for a model of another kind, to which the package would add layers with random weights.
    """
    import sentence_transformers

    saved_as = config_of(folder, "config_sentence_transformers.json").get("model_type")
    architecture = str((config_of(folder).get("architectures") or [""])[0])
    if not (saved_as in kind.saved_as if saved_as else architecture.endswith(kind.architectures)):
        what = f"is no trained {kind.name} (it says {saved_as or architecture or 'nothing'})"
        raise BadInput(folder, what, "give a model of this kind, or write bi:, cross:, sparse: or late:PATH as fits")
    made = getattr(sentence_transformers, kind.name, None)
    if made is None or not hasattr(made, "preprocess"):
        raise WhyrankError(f"{folder} needs a newer sentence-transformers, one with {kind.name}; pip install -U it")
    own = {"local_files_only": True, "trust_remote_code": False, "model_kwargs": {"use_safetensors": True}}
    return computing.place(made(str(folder), device=computing.device, **own))


def check_length(folder: Path, model: Any, requested: int | None) -> None:
    """Raise an error where more tokens are to be read than the model has positions for."""
    positions = positions_of(model)
    if requested is not None and positions is not None and requested > positions:
        what = f"the model reads {positions} tokens at most, and max_length is {requested}"
        raise BadInput(folder, what, f"give max_length={positions} or less, and passages=max for long texts")


def declared_prompts(model: Any) -> dict[str, str]:
    """What a model wants before queries and before texts: the first prompt for them that its configuration has."""
    prompts = getattr(model, "prompts", {})
    return {
        side: next((str(prompts[name]) for name in names if prompts.get(name)), "") for side, names in PROMPTS.items()
    }


class ModelReader(Reader):
    """A model of sentence-transformers whose inputs are made by its own processor: prompts, templates, expansions.

    Args:
        model: the model, on its device.
        prompts: what is put before the texts of each side.
    """

    apart = True

    def __init__(self, model: Any, prompts: Mapping[str, str | None]) -> None:
        self.module = self.model = model
        self.prompts = prompts
        self._others: dict[str, dict[str, Any]] = {}  # what the processor gives besides arrays, alike for all batches

    def prepare(self, pairs: TextPairs, side: Side, computing: Computing) -> Callable[[Ints], TokenisedInputs]:
        """What tokenises some of the pairs or texts."""

        def tokenise(rows: Ints) -> TokenisedInputs:
            texts: list[Any] = [pairs.docs[i] for i in pairs.doc[rows]]
            if side == "pair":
                texts = list(zip([pairs.queries[i] for i in pairs.query[rows]], texts, strict=True))
            features = self.features(texts, side)
            arrays = {name: value.numpy() for name, value in features.items() if hasattr(value, "numpy")}
            self._others[side] = {name: value for name, value in features.items() if name not in arrays}
            batch = partial(_rows, arrays, computing.device)
            if not {"input_ids", "attention_mask"} <= arrays.keys():
                keys = [digest_of_tokens(side.encode(), repr(text).encode("utf-8", "replace")) for text in texts]
                return TokenisedInputs(keys, np.array([len(str(text)) for text in texts]), batch)
            read = [ids[mask > 0] for ids, mask in zip(arrays["input_ids"], arrays["attention_mask"], strict=True)]
            lengths = np.array([len(ids) for ids in read], np.int64)
            return TokenisedInputs(
                [digest_of_tokens(side.encode(), ids) for ids in read],
                lengths,
                partial(_rows, arrays, computing.device),
            )

        return tokenise

    def features(self, texts: Sequence[Any], side: Side) -> Mapping[str, Any]:
        """What the model's processor makes of texts or pairs."""
        task = {} if side == "pair" else {"task": side}
        features: Mapping[str, Any] = self.model.preprocess(list(texts), prompt=self.prompts[side], **task)
        return features

    def outputs(self, batch: Mapping[str, Any], side: Side) -> Any:
        """All that the model gives for a batch."""
        task = {} if side == "pair" else {"task": side}
        return self.model({**self._others.get(side, {}), **batch}, **task)

    def __call__(self, batch: dict[str, Any], side: Side) -> Any:
        """The embeddings of a batch."""
        return self.outputs(batch, side)["sentence_embedding"]


class DenseReader(ModelReader):
    """One vector per text, compared by a similarity of sentence-transformers in double precision."""

    def __init__(self, model: Any, prompts: Mapping[str, str | None], similarity: str) -> None:
        from sentence_transformers.util import SimilarityFunction

        super().__init__(model, prompts)
        self.similarity: Any = SimilarityFunction.to_similarity_pairwise_fn(similarity)

    def rows(self, output: Tensor) -> list[Tensor]:
        """The vector of each text; some models want only the first dimensions to be used."""
        return list(output[:, : getattr(self.model, "truncate_dim", None)].float())

    def compare(self, queries: Sequence[Any], docs: Sequence[Any], query: Tensor, doc: Tensor) -> Tensor:
        """Similarities of pairs."""
        import torch

        a, b = (torch.stack(list(vectors)).double() for vectors in (queries, docs))
        found: Tensor = self.similarity(a[query.to(a.device)], b[doc.to(b.device)])
        return found


class SparseReader(ModelReader):
    """A vector over the vocabulary per text, most of it zero, compared by the sum of products."""

    def rows(self, output: Tensor) -> list[dict[str, Tensor]]:
        """The dimensions that are not zero and their weights; some models want only the largest weights."""
        self.width, most = output.shape[1], getattr(self.model, "max_active_dims", None)
        found = []
        for row in output.float():
            at = row.nonzero().squeeze(1)
            if most is not None and len(at) > most:
                at = at[row[at].abs().argsort(descending=True, stable=True)[:most]]
            found.append({"at": at, "weights": row[at]})
        return found

    def compare(self, queries: Sequence[Any], docs: Sequence[Any], query: Tensor, doc: Tensor) -> Tensor:
        """Sums of products of pairs."""
        import torch

        a, b = (torch.zeros(len(side), self.width, device=query.device) for side in (queries, docs))
        for matrix, side in ((a, queries), (b, docs)):
            for i, vector in enumerate(side):
                matrix[i, vector["at"]] = vector["weights"]
        return (a[query] * b[doc]).sum(1, dtype=torch.float64)


class LateReader(ModelReader):
    """One vector per token; the model knows how two texts are compared by them (ColBERT)."""

    def __call__(self, batch: dict[str, Any], side: Side) -> Any:
        """The vectors of all tokens, and which of them count."""
        found = self.outputs(batch, side)
        return found["token_embeddings"], found["attention_mask"]

    def rows(self, output: Any) -> list[Tensor]:
        """The vectors of each text."""
        return [vectors[mask.bool()] for vectors, mask in zip(output[0].float(), output[1], strict=True)]

    def compare(self, queries: Sequence[Any], docs: Sequence[Any], query: Tensor, doc: Tensor) -> Tensor:
        """Summed highest similarities of pairs."""
        a, b = [queries[i] for i in query.tolist()], [docs[i] for i in doc.tolist()]
        found: Tensor = self.model.similarity_pairwise(a, b)
        return found


def _rows(arrays: Arrays, device: str, some: Sequence[int]) -> dict[str, Any]:
    """Some rows of a batch on a device, without the columns that are padding in all of them."""
    chosen = {name: array[some] for name, array in arrays.items()}
    if "attention_mask" in chosen and chosen.keys() <= _CUT:
        used = np.flatnonzero(chosen["attention_mask"].any(axis=0))
        first, last = (used[0], used[-1] + 1) if len(used) else (0, 1)
        chosen = {name: array[:, first:last] for name, array in chosen.items()}
    return tensors(chosen, device)
