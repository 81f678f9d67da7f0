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
from whyrank.rankers.neural.inputs import NAMES, InputLayout, TokenisedTexts, TokenRows, lay_out
from whyrank.rankers.neural.passages import TextPairs
from whyrank.rankers.neural.scorer import Reader, Side, TokenisedInputs
from whyrank.rankers.neural.weights import architecture_of, config_of
from whyrank.text import positions_of

if TYPE_CHECKING:
    from torch import Tensor

    from whyrank.networks.separate import Encoded

PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}
_CUT = {*NAMES}  # arrays that may be cut to the longest row of a batch
_EXAMPLES = ("  What is ICE?\n", "Café  snow\t", "", "ice " * 9999)

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

    def batch(self, texts: Mapping[str, tuple[TokenRows, Ints]], computing: Computing) -> dict[str, Any]:
        """Some pairs as the model wants them: rows of tokens of `query` and `doc`."""
        return lay_out(self.layout, texts, computing.device, computing.multiple)

    def prepare(
        self, pairs: TextPairs, side: Side, computing: Computing, known: dict[str, TokenRows]
    ) -> Callable[[Ints], TokenisedInputs]:
        """What tokenises some pairs; each distinct text is tokenised when it is first met."""
        queries = known.setdefault("query", TokenRows(self.query_ids))
        docs = known.setdefault("document", TokenRows(self.doc_ids))
        query_rows = queries.of(pairs.queries)
        doc_rows = np.full(len(pairs.docs), -1)

        def tokenise(rows: Ints) -> TokenisedInputs:
            new = np.unique(pairs.doc[rows])
            doc_rows[new] = docs.of([pairs.docs[i] for i in new.tolist()])
            query, doc = query_rows[pairs.query[rows]], doc_rows[pairs.doc[rows]]
            n, m = self.cut(queries.sizes[query], docs.sizes[doc])
            query, doc = queries.cut(query, n, self.last), docs.cut(doc, m, self.last)

            def batch(some: Ints) -> dict[str, Any]:
                return self.batch({"query": (queries, query[some]), "doc": (docs, doc[some])}, computing)

            return TokenisedInputs(query << 32 | doc, n + m, batch)

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

    def batch(self, texts: Mapping[str, tuple[TokenRows, Ints]], computing: Computing) -> dict[str, Any]:
        """Pairs as the network wants them."""
        if self._plain:
            return super().batch(texts, computing)
        query, doc = (rows.lists(some) for rows, some in (texts["query"], texts["doc"]))
        return tensors(self.network.arrays(query, doc), computing.device)

    def __call__(self, batch: dict[str, Any], side: Side = "pair") -> Tensor:
        """One score per pair of a batch."""
        found: Tensor = self.network(batch)
        return found


class NetworkTexts(Reader):
    """A network that reads queries and texts apart; an encoding is a dict of tensors."""

    apart = True

    def __init__(self, network: Any) -> None:
        self.module = self.network = network

    def prepare(
        self, pairs: TextPairs, side: Side, computing: Computing, known: dict[str, TokenRows]
    ) -> Callable[[Ints], TokenisedInputs]:
        """What tokenises some of the texts."""
        network = self.network
        ids, arrays = network.doc_ids, network.doc_arrays
        if side == "query":
            ids, arrays = network.query_ids, network.query_arrays
        texts = known.setdefault(side, TokenRows(ids))
        return partial(alone, texts, pairs, lambda rows: tensors(arrays(texts.lists(rows)), computing.device))

    def __call__(self, batch: dict[str, Any], side: Side) -> dict[str, Tensor]:
        """The encodings of a batch."""
        found: dict[str, Tensor]
        found = self.network.encode_queries(batch) if side == "query" else self.network.encode_docs(batch)
        return found

    def compare(self, queries: Encoded, docs: Encoded) -> Tensor:
        """What the network gives for pairs of encodings."""
        found: Tensor = self.network.interact(queries, docs)
        return found


def alone(texts: TokenRows, pairs: TextPairs, batch: Callable[[Ints], dict[str, Any]], some: Ints) -> TokenisedInputs:
    """Some of the texts of `pairs.docs` as inputs; `batch` takes rows of tokens."""
    rows = texts.of([pairs.docs[i] for i in pairs.doc[some].tolist()])
    return TokenisedInputs(rows, texts.sizes[rows], lambda chosen: batch(rows[chosen]))


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
    """A model of sentence-transformers whose inputs are those of its own processor: prompts, templates, expansions.

    Args:
        model: the model, on its device.
        prompts: what is put before the texts of each side.
    """

    apart = True

    def __init__(self, model: Any, prompts: Mapping[str, str | None]) -> None:
        self.module = self.model = model
        self.prompts = prompts
        self._others: dict[str, dict[str, Any]] = {}  # what the processor gives besides arrays, alike for all batches
        self._frames: dict[str, tuple[TokenisedTexts, InputLayout] | None] = {"pair": None}

    def prepare(
        self, pairs: TextPairs, side: Side, computing: Computing, known: dict[str, TokenRows]
    ) -> Callable[[Ints], TokenisedInputs]:
        """What tokenises some of the pairs or texts: here, where that gives what the processor gives."""
        if side not in self._frames:
            self._frames[side] = self._frame(side)
        if (frame := self._frames[side]) is not None:
            tokens, layout = frame
            texts = known.setdefault(side, TokenRows(partial(self._ids, side, tokens, layout)))
            own = layout, computing.device, computing.multiple
            return partial(alone, texts, pairs, lambda rows: lay_out(own[0], {"doc": (texts, rows)}, *own[1:]))
        numbers = known.setdefault(side, TokenRows(lambda _: []))

        def tokenise(rows: Ints) -> TokenisedInputs:
            given: list[Any] = [pairs.docs[i] for i in pairs.doc[rows]]
            if side == "pair":
                given = list(zip([pairs.queries[i] for i in pairs.query[rows]], given, strict=True))
            arrays = self._arrays(given, side)
            if _CUT & arrays.keys() >= {"input_ids", "attention_mask"}:
                read = [
                    ids[mask > 0] for ids, mask in zip(arrays["input_ids"], arrays["attention_mask"], strict=True)
                ]
            else:
                read = [np.frombuffer(repr(each).encode("utf-8", "replace"), np.uint8) for each in given]
            lengths = np.array([len(ids) for ids in read], np.int64)
            keys = numbers.number(read, np.zeros_like(lengths))
            return TokenisedInputs(keys, lengths, partial(_rows, arrays, computing.device))

        return tokenise

    def _ids(self, side: Side, tokens: TokenisedTexts, layout: InputLayout, texts: Sequence[str]) -> list[Ids]:
        prompt = self.prompts[side] or ""
        return tokens.ids([prompt + text for text in texts], self.model.max_seq_length - layout.special)

    def _frame(self, side: Side) -> tuple[TokenisedTexts, InputLayout] | None:
        """What the processor puts around a text, and the tokenizer; None where it does something else besides."""
        expected = self._arrays(_EXAMPLES, side)
        if not expected.keys() <= _CUT or not self.model.max_seq_length:
            return None
        tokenizer = self.model.tokenizer
        tokens = TokenisedTexts(tokenizer, tokenizer.truncation_side == "left")
        layout = tokens.layout("doc", names=list(expected))
        texts = TokenRows(partial(self._ids, side, tokens, layout))
        found = lay_out(layout, {"doc": (texts, texts.of(_EXAMPLES))}, "cpu")
        same = found.keys() == expected.keys() and all(np.array_equal(found[name], expected[name]) for name in found)
        return (tokens, layout) if same else None

    def _arrays(self, texts: Sequence[Any], side: Side) -> Arrays:
        features = self.features(texts, side)
        arrays = {name: value.numpy() for name, value in features.items() if hasattr(value, "numpy")}
        self._others[side] = {name: value for name, value in features.items() if name not in arrays}
        return arrays

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

    def encoded(self, output: Tensor) -> Encoded:
        """The vectors of texts; some models want only the first dimensions to be used."""
        return {"vectors": output[:, : getattr(self.model, "truncate_dim", None)].float()}

    def compare(self, queries: Encoded, docs: Encoded) -> Tensor:
        """Similarities of pairs."""
        found: Tensor = self.similarity(queries["vectors"].double(), docs["vectors"].double())
        return found


class SparseReader(ModelReader):
    """A vector over the vocabulary per text, most of it zero, compared by the sum of products."""

    def encoded(self, output: Tensor) -> Encoded:
        """The largest weights and their dimensions, as many as the fullest text has, or as the model wants."""
        self.width, most = output.shape[1], getattr(self.model, "max_active_dims", None)
        fullest = int((output != 0).sum(1).max())
        at = output.abs().topk(fullest if most is None else min(most, fullest), dim=1).indices
        return {"at": at, "weights": output.float().gather(1, at)}

    def compare(self, queries: Encoded, docs: Encoded) -> Tensor:
        """Sums of products of pairs."""
        import torch

        whole = torch.zeros(len(queries["at"]), self.width, device=queries["at"].device)
        whole.scatter_add_(1, queries["at"], queries["weights"])  # where a vector was filled up, zero is added
        return (whole.gather(1, docs["at"]) * docs["weights"]).sum(1, dtype=torch.float64)


class LateReader(ModelReader):
    """One vector per token; the model knows how two texts are compared by them (ColBERT)."""

    def __call__(self, batch: dict[str, Any], side: Side) -> Any:
        """The vectors of all tokens, and which of them count."""
        found = self.outputs(batch, side)
        return {"vectors": found["token_embeddings"].float(), "mask": found["attention_mask"].bool()}

    def compare(self, queries: Encoded, docs: Encoded) -> Tensor:
        """Summed highest similarities of pairs."""
        found: Tensor = self.model.similarity_pairwise(
            queries["vectors"], docs["vectors"], a_mask=queries["mask"], b_mask=docs["mask"]
        )
        return found


def _rows(arrays: Arrays, device: str, some: Sequence[int]) -> dict[str, Any]:
    """Some rows of a batch on a device, without the columns that are padding in all of them."""
    chosen = {name: array[some] for name, array in arrays.items()}
    if "attention_mask" in chosen and chosen.keys() <= _CUT:
        used = np.flatnonzero(chosen["attention_mask"].any(axis=0))
        first, last = (used[0], used[-1] + 1) if len(used) else (0, 1)
        chosen = {name: array[:, first:last] for name, array in chosen.items()}
    return tensors(chosen, device)
