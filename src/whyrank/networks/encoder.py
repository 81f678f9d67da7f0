"""The encoder under a network: any text model that transformers loads, a small random one, or word vectors."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from whyrank.core import BadInput, WhyrankError, silent
from whyrank.networks.first_position import first_packed, first_padded, is_plain
from whyrank.text import positions_of

WORDS = "words"
_QUIET = {"trust_remote_code": False}
_NOT_SHAPE = (
    "architectures", "_name_or_path", "transformers_version", "dtype", "torch_dtype", "gradient_checkpointing",
    "is_encoder_decoder",
)  # fmt: skip


class Encoder(nn.Module):
    """Hidden states of a transformer for a batch with `ids`, `types` and `mask`.

    Attributes:
        causal: whether each position sees only the positions before it, as in decoder-only models.
    """

    def __init__(self, model: Any) -> None:
        """Wrap a transformers model without a task head; of an encoder-decoder, the encoder."""
        super().__init__()
        self.model = model.get_encoder() if model.config.is_encoder_decoder else model
        if getattr(self.model, "pooler", None) is not None:
            self.model.pooler = None  # which no network reads
        self.typed = getattr(model.config, "type_vocab_size", 0) > 1
        self.causal = not is_plain(self.model) and _is_causal(self.model)
        if self.causal:
            self.model.config.use_cache = False  # keys and values are for models that go on writing

    @property
    def width(self) -> int:
        """Size of the hidden states."""
        return int(self.model.config.hidden_size)

    @property
    def depth(self) -> int:
        """Number of layers."""
        return int(self.model.config.num_hidden_layers)

    @property
    def max_positions(self) -> int:
        """The longest input that the model has positions for, or declares where its positions are relative."""
        declared = getattr(self.model.config, "max_position_embeddings", None) or 0
        return positions_of(self.model) or (int(declared) if declared > 0 else sys.maxsize)

    def last(self, batch: Mapping[str, Tensor]) -> Tensor:
        """The last hidden states: [texts, tokens, width]."""
        states: Tensor = self.model(**self._inputs(batch)).last_hidden_state
        return states

    def pool(self, states: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
        """The states of the position that has seen the whole text: the first, of a causal model the last real one."""
        if not self.causal:
            return states[:, 0]
        last = batch["mask"].cumsum(1).argmax(1)
        return states.gather(1, last[:, None, None].expand(-1, 1, states.shape[2])).squeeze(1)

    def pooled(self, batch: Mapping[str, Tensor], longest: int | None = None) -> Tensor:
        """The last hidden states at the position of `pool`: [texts, width], without what that does not need.

        A packed batch (see `networks.first_position`) is read in bf16 where mixed precision is on: the layers'
        weights are converted once, not in every product. `longest` bounds its texts.
        """
        if "ends" in batch:
            longest = longest or self.max_positions
            kind = batch["ids"].device.type
            if not torch.is_autocast_enabled(kind):
                return self.forward(batch, longest)
            dtype = torch.get_autocast_dtype(kind)
            half = {name: p.to(dtype) for name, p in self.named_parameters() if "embeddings" not in name}
            with torch.autocast(kind, enabled=False):
                found: Tensor = torch.func.functional_call(self, half, (batch, longest))
            return found
        if is_plain(self.model):
            return first_padded(self.model, batch["ids"], batch["mask"], batch["types"] if self.typed else None)
        return self.pool(self.last(batch), batch)

    def forward(self, batch: Mapping[str, Tensor], longest: int) -> Tensor:
        """The first position of a packed batch, in the number format of the weights."""
        return first_packed(self.model, batch["ids"], batch["positions"], batch["types"], batch["ends"], longest)

    def all(self, batch: Mapping[str, Tensor]) -> Sequence[Tensor]:
        """The embeddings and the output of every layer."""
        found: Sequence[Tensor] = self.model(**self._inputs(batch), output_hidden_states=True).hidden_states
        return found

    def _inputs(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        types = {"token_type_ids": batch["types"]} if self.typed else {}
        return {"input_ids": batch["ids"], "attention_mask": batch["mask"], **types}


class WordEncoder(Encoder):
    """The vectors of a batch's words, without any context: what networks that are no transformers stand on.

    Row 0 of the matrix is for padding: it is zero and stays zero.
    """

    def __init__(self, rows: int, width: int) -> None:
        """A matrix of random vectors."""
        nn.Module.__init__(self)
        self.vectors = nn.Embedding(rows, width, padding_idx=0)

    @property
    def width(self) -> int:
        """Size of the vectors."""
        return int(self.vectors.embedding_dim)

    @property
    def depth(self) -> int:
        """No layers."""
        return 0

    @property
    def max_positions(self) -> int:
        """Texts of any length."""
        return sys.maxsize

    def last(self, batch: Mapping[str, Tensor]) -> Tensor:
        """The vectors, zero at padding: [texts, words, width]."""
        found: Tensor = self.vectors(batch["ids"])
        return found


def load_encoder(source: str | Path, layers: Sequence[int] | None = None) -> Encoder:
    """Load a pre-trained encoder by hub id or path, from safetensors only; `layers` keeps some of its layers."""
    from transformers import AutoModel
    from transformers.utils import logging as messages

    try:
        with silent(messages):  # the report names the pooler, which none of our networks uses
            model = AutoModel.from_pretrained(str(source), use_safetensors=True, dtype=torch.float32, **_QUIET)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise WhyrankError(f"encoder {source} cannot be loaded ({reason}); give a hub id or a model folder") from None
    if layers is not None:
        stack = getattr(getattr(model, "encoder", None), "layer", None)
        if stack is None:
            what = f"only those of a BERT-like encoder can be chosen, not of {model.config.model_type}"
            raise WhyrankError(f"layers: {what}; leave it out")
        if not layers or not all(0 <= i < len(stack) for i in layers):
            raise WhyrankError(f"layers {list(layers)}: the encoder has the layers 0 to {len(stack) - 1}")
        model.encoder.layer = nn.ModuleList(stack[i] for i in layers)
        model.config.num_hidden_layers = len(layers)
    return Encoder(model)


def new_encoder(settings: Mapping[str, Any]) -> Encoder:
    """An encoder with random weights from the settings of a config.json."""
    from transformers import AutoConfig, AutoModel

    values = dict(settings)
    if values.get("model_type") == WORDS:
        return WordEncoder(values["rows"], values["width"])
    config = AutoConfig.for_model(values.pop("model_type", "bert"), **values)
    made: Any = AutoModel.from_config(config, **_QUIET)  # type: ignore[no-untyped-call]
    return Encoder(made)


def settings_of(encoder: Encoder) -> dict[str, Any]:
    """The settings from which `new_encoder` makes an encoder of the same shape."""
    if isinstance(encoder, WordEncoder):
        return {"model_type": WORDS, "rows": encoder.vectors.num_embeddings, "width": encoder.width}
    found: dict[str, Any] = encoder.model.config.to_diff_dict()
    return {name: value for name, value in found.items() if name not in _NOT_SHAPE} | {
        "model_type": encoder.model.config.model_type
    }


def _is_causal(model: Any) -> bool:
    """Whether the first position does not see the second: then its state is the same whatever stands there."""
    training = model.training
    try:
        rows = len(model.get_input_embeddings().weight)
        ids = torch.tensor([[rows - 3, rows - 2], [rows - 3, rows - 1]])
        with torch.no_grad():
            states = model.eval()(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
    except Exception as error:  # models of other kinds raise errors of all kinds
        what = f"a model of type {model.config.model_type} does not read texts as others do ({type(error).__name__})"
        raise WhyrankError(f"encoder: {what}; give a BERT-like, a decoder-only or a T5 model") from None
    finally:
        model.train(training)
    return torch.equal(states[0, 0], states[1, 0])


def stored_tensors(source: str | Path, names: Sequence[str]) -> list[Tensor] | None:
    """Single tensors of a pre-trained model, for heads that transformers would leave out; None where one is missing.

    They come from the safetensors files of a model folder or hub id, in single precision.
    """
    from safetensors import SafetensorError, safe_open
    from transformers.utils.hub import cached_file

    files = sorted(Path(source).glob("*.safetensors"))
    if not Path(source).is_dir():
        try:
            files = [Path(str(cached_file(str(source), "model.safetensors")))]
        except OSError:
            return None
    found: dict[str, Tensor] = {}
    for file in files:
        try:
            with safe_open(file, framework="pt") as tensors:
                for key in tensors.keys():  # noqa: SIM118
                    name = key.replace("LayerNorm.gamma", "LayerNorm.weight")
                    name = name.replace("LayerNorm.beta", "LayerNorm.bias")
                    if name in names:
                        found[name] = tensors.get_tensor(key).float()
        except (OSError, SafetensorError) as error:
            raise BadInput(file, f"cannot be read ({error})", "copy the model again") from None
    return [found[name] for name in names] if len(found) == len(set(names)) else None
