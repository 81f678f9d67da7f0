"""Scoring with models that read query and text together: tokenised once, batched by length, equal inputs once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from whyrank.core import Codes, Floats
from whyrank.networks import Arrays, Ids, tensors
from whyrank.rankers.neural.backends import Array, Compiled, Test, Traceable, taken_over
from whyrank.rankers.neural.computing import Computing, Kept, ahead, by_length
from whyrank.rankers.neural.passages import TextPairs

if TYPE_CHECKING:
    from torch import Tensor

# The last layer of an encoder for the first position alone: all that a score is read from.

_LAYERS = ("BertLayer", "RobertaLayer", "XLMRobertaLayer", "ElectraLayer")
_ATTENTIONS = ("sdpa", "eager")


def first_only(model: Any) -> bool:
    """Let the last layer compute its first position only, with keys and values of all; whether that was possible.

    The states of the first position are the same. Of six layers this saves about a seventh of the work, of three
    a quarter. Only for models whose score depends on the first position alone.
    """
    layers = [layer for layer in model.modules() if type(layer).__name__ in _LAYERS]
    if not layers or layers[-1].is_decoder or not _is_plain(layers[-1]):
        return False
    layers[-1].forward = _forward(layers[-1])
    return True


def _is_plain(layer: Any) -> bool:
    """Whether the layer is the one known here: packages change."""
    from transformers import __version__

    own = layer.attention.self
    parts = all(hasattr(own, name) for name in ("query", "key", "value", "attention_head_size"))
    config = getattr(own, "config", None)
    known = getattr(config, "_attn_implementation", "") in _ATTENTIONS and hasattr(layer, "feed_forward_chunk")
    return parts and known and int(__version__.partition(".")[0]) >= 5  # before, layers gave tuples


def _forward(layer: Any) -> Callable[..., Any]:
    own = layer.attention.self

    def heads(states: Any) -> Any:
        return states.view(*states.shape[:2], -1, own.attention_head_size).transpose(1, 2)

    def forward(states: Any, attention_mask: Any = None, *_: Any, **__: Any) -> Any:
        from torch.nn.functional import scaled_dot_product_attention

        first = states[:, :1]
        mask = None if attention_mask is None else attention_mask[:, :, :1]
        query, key, value = heads(own.query(first)), heads(own.key(states)), heads(own.value(states))
        found = scaled_dot_product_attention(query, key, value, attn_mask=_like(mask, query))
        return layer.feed_forward_chunk(layer.attention.output(found.transpose(1, 2).flatten(2), first))

    return forward


def _like(mask: Any, query: Any) -> Any:
    """A mask of numbers in the format of the query; one of flags as it is."""
    return mask.to(query.dtype) if mask is not None and mask.is_floating_point() else mask


CHUNK = 1024  # so many pairs are tokenised at a time, and sorted by their number of tokens
KEPT = 2**18  # scores that outlive a call
_LONG = "ice and snow " * 180  # more than most models read at once
_EXAMPLES = (
    (("what is ice", "snow"), ("Ice is water that froze.", "White, cold and light, it falls in winter.")),
    (("why", "where do glaciers come from", "ice"), (_LONG, "From snow that is pressed together.", "?")),
)


class Reader(Protocol):
    """Reads pairs of token arrays: a network, or a model of another package that is wrapped to look like one."""

    def query_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Queries as token numbers."""
        ...

    def doc_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Texts as token numbers."""
        ...

    def arrays(self, queries: Sequence[Ids], docs: Sequence[Ids]) -> Arrays:
        """A batch of pairs as padded arrays."""
        ...

    def __call__(self, batch: dict[str, Any]) -> Tensor:
        """One score per pair of a batch."""
        ...


class Batch(NamedTuple):
    """Some inputs and the arrays that a reader makes of them."""

    keys: list[bytes]
    arrays: Arrays


@dataclass(frozen=True, eq=False)
class JointScorer:
    """Puts pairs to a reader. Pairs that are the same tokens to it, once cut to its length, are scored once.

    Args:
        reader: who reads them.
        computing: where, and in which number format.
        tokens: how many tokens go into one batch; None takes what suits the device.
        activation: what is done to the scores.
        compiled: the reader in the form of another back end than torch.
    """

    reader: Reader
    computing: Computing
    tokens: int | None = None
    activation: Callable[[Floats], Floats] | None = None
    compiled: Compiled | None = None
    kept: Kept = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is scored yet."""
        object.__setattr__(self, "kept", Kept(KEPT))

    @classmethod
    def of(
        cls,
        name: str,
        reader: Reader,
        computing: Computing,
        activation: Callable[[Floats], Floats] | None = None,
        tokens: int | None = None,
    ) -> JointScorer:
        """A scorer that computes as it is asked to, or by torch where a back end cannot take the model."""
        if computing.backend == "torch":
            return cls(reader, computing, tokens, activation)
        example, other = (reader.arrays(reader.query_ids(q), reader.doc_ids(d)) for q, d in _EXAMPLES)
        test = Test(other, partial(reader, tensors(other)))
        model = Traceable(getattr(reader, "model", reader), reader, example, [test])
        computing, compiled = taken_over(name, model, computing)
        return cls(reader, computing, tokens, activation, compiled)

    def __call__(self, pairs: TextPairs) -> Floats:
        """One score per pair."""
        inputs, known = [b""] * len(pairs.query), dict[bytes, float]()
        batches = self._batches(pairs, inputs, known)
        for keys, scores in self._by_torch(batches) if self.compiled is None else self.compiled.each(batches):
            known |= zip(keys, scores.tolist(), strict=True)
        for key, score in known.items():
            self.kept.add(key, score, 1)
        found = np.array([known[key] for key in inputs], dtype=np.float64)
        return found if self.activation is None else self.activation(found)

    def exact(self) -> JointScorer:
        """The same model by torch in fp32."""
        return replace(self, computing=self.computing.exact, compiled=None)

    def _by_torch(self, batches: Iterator[Batch]) -> list[tuple[list[bytes], Array]]:
        with self.computing.running():  # what is computed on a GPU is fetched at the end, so that it never waits
            read = [(keys, self._read(arrays)) for keys, arrays in ahead(batches)]
        return [(keys, scores.cpu().numpy()) for keys, scores in read]

    def _read(self, arrays: Arrays) -> Tensor:
        return self.reader(tensors(arrays, self.computing.device)).double()

    def _batches(self, pairs: TextPairs, inputs: list[bytes], known: dict[bytes, float]) -> Iterator[Batch]:
        """Batches of the inputs that are new; the key of each pair goes to `inputs`, kept scores to `known`."""
        queries, docs = (
            _Tokenised(self.reader.query_ids, pairs.queries),
            _Tokenised(self.reader.doc_ids, pairs.docs),
        )
        for rows in pairs.chunks(CHUNK):
            query, doc = queries.take(pairs.query[rows]), docs.take(pairs.doc[rows])
            keys = [_key(self.reader.arrays([q], [d])) for q, d in zip(query, doc, strict=True)]
            for row, key in zip(rows.tolist(), keys, strict=True):
                inputs[row] = key
            new = self.kept.missing(keys, known)
            lengths = np.array([len(query[i]) + len(doc[i]) for i in new], np.int64)
            for some in by_length(lengths, self.tokens or self.computing.tokens):
                chosen = [new[i] for i in some]
                arrays = self.reader.arrays([query[i] for i in chosen], [doc[i] for i in chosen])
                yield Batch([keys[i] for i in chosen], arrays)


def _key(arrays: Arrays) -> bytes:
    """A digest of all that a reader sees of a pair."""
    found = blake2b(digest_size=16)
    for array in arrays.values():
        found.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return found.digest()


class _Tokenised:
    """The token numbers of texts, each text tokenised when it is first asked for."""

    def __init__(self, tokenise: Callable[[Sequence[str]], list[Ids]], texts: Sequence[str]) -> None:
        self._tokenise, self._texts = tokenise, texts
        self._known: dict[int, Ids] = {}

    def take(self, codes: Codes) -> list[Ids]:
        new = [code for code in np.unique(codes).tolist() if code not in self._known]
        self._known |= dict(zip(new, self._tokenise([self._texts[code] for code in new]), strict=True))
        return [self._known[code] for code in codes.tolist()]
