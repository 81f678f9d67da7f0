"""What all networks share: settings, tokens, and folders with config.json, model.safetensors and tokenizer.json."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from whyrank.core import LISTING, BadInput, check_arguments, check_listed, list_checksums, replacing, write_text
from whyrank.networks import networks
from whyrank.networks.encoder import Encoder, load_encoder, new_encoder, settings_of
from whyrank.networks.first_position import is_plain
from whyrank.networks.tokens import Arrays, Ids, ModelTokenizer, open_tokenizer, pair_arrays

KIND = "whyrank network"
CONFIG, WEIGHTS, TOKENS = "config.json", "model.safetensors", "tokenizer.json"
_AGAIN = "train or copy the network again"
_FOLDER = "give a folder that `whyrank train` wrote"
_SCALE = ".scale"  # behind the name of a matrix that is stored in eight bits: the scale of each of its rows


class Network(nn.Module):
    """Scores pairs of token arrays. A new architecture overrides `arrays` and `forward`.

    Attributes:
        architecture: its name in the registry of networks.
        scale: what its scores are.
        encoder: the encoder that reads the tokens.
        tokenizer: the tokenizer of the encoder.
        max_query: tokens of a query that are read.
        max_doc: tokens of a text that are read.
        dropout: where there is one: the share of the features before the scoring layers that training drops.
    """

    architecture: ClassVar[str]
    scale: ClassVar[str] = "logit"

    def __new__(cls, *parts: Any, **settings: Any) -> Self:
        """Check the settings, which are arguments of the constructor of the architecture."""
        check_arguments(cls.architecture, cls, settings)
        return super().__new__(cls)

    def __init__(self, encoder: Encoder, tokenizer: ModelTokenizer, max_query: int = 32, max_doc: int = 477) -> None:
        super().__init__()
        self.encoder, self.tokenizer = encoder, tokenizer
        self.max_query, self.max_doc = max_query, min(max_doc, encoder.max_positions - max_query - 3)

    @classmethod
    def begin(cls, source: str | Path, layers: Sequence[int] | None = None, **settings: Any) -> Network:
        """A new network of this architecture over a pre-trained encoder, or over some of its layers."""
        return cls(load_encoder(source, layers), ModelTokenizer(source), **settings)

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments besides encoder and tokenizer that make a network of the same shape."""
        return {name: value for name, value in arguments_of(self).items() if name not in ("encoder", "tokenizer")}

    def query_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Queries as tokens."""
        return self.tokenizer.ids(texts, self.max_query)

    def doc_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Texts as tokens."""
        return self.tokenizer.ids(texts, self.max_doc)

    def arrays(self, queries: Sequence[Ids], docs: Sequence[Ids]) -> Arrays:
        """A batch of pairs as padded arrays: what `forward` gets as tensors."""
        raise NotImplementedError

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """One score per pair."""
        raise NotImplementedError

    def penalty(self) -> Tensor | None:
        """What the last `forward` adds to the loss besides the ranking, if anything."""
        return None

    @property
    def packs(self) -> bool:
        """Whether the network reads pairs that lie end to end, so that nothing is padded on a GPU."""
        return False

    def heads(self) -> list[nn.Parameter]:
        """The parameters that are not the encoder's."""
        inside = {id(p) for p in self.encoder.parameters()}
        return [p for p in self.parameters() if id(p) not in inside]


class JointNetwork(Network):
    """Reads query and text together as [CLS] query [SEP] text [SEP], padded, or end to end where its encoder can."""

    def arrays(self, queries: Sequence[Ids], docs: Sequence[Ids]) -> Arrays:
        """Pairs as one input each."""
        return pair_arrays(queries, docs, self.tokenizer.special)

    @property
    def packs(self) -> bool:
        """Whether it reads pairs that lie end to end."""
        return is_plain(self.encoder.model)


def arguments_of(module: nn.Module) -> dict[str, Any]:
    """The arguments of a module's constructor that it keeps as attributes of the same names."""
    names = [name for name in inspect.signature(type(module)).parameters if hasattr(module, name)]
    values = (getattr(module, name) for name in names)
    plain = (value.p if isinstance(value, nn.Dropout) else value for value in values)
    return dict(zip(names, plain, strict=True))


def make(architecture: str, encoder: Encoder, tokenizer: ModelTokenizer, **settings: Any) -> Network:
    """A new network of some architecture over an encoder."""
    made: Network = networks.factory(architecture)(encoder, tokenizer, **settings)
    return made


def start(architecture: str, source: str | Path, layers: Sequence[int] | None = None, **settings: Any) -> Network:
    """A new network over a pre-trained encoder, or over some of its layers."""
    made: Network = networks.factory(architecture).begin(source, layers, **settings)
    return made


def save(network: Network, folder: str | Path, bits: int = 32, **facts: Any) -> None:
    """Write a network as a folder, its weights in 32 or 8 bits; `facts` go into config.json."""
    from safetensors.torch import save as serialise

    folder = Path(folder)
    state = {name: tensor.detach().clone().contiguous() for name, tensor in network.state_dict().items()}
    (folder / LISTING).unlink(missing_ok=True)  # the checksums of an older network no longer fit
    state = quantise(state) if bits == 8 else state
    config = {"kind": KIND, "architecture": network.architecture, "settings": network.settings}
    config |= {"encoder": settings_of(network.encoder), **facts}
    for name, content in ((WEIGHTS, serialise(state)), (TOKENS, network.tokenizer.content)):
        with replacing(folder / name) as beside:
            beside.write_bytes(content)
    write_text(folder / CONFIG, json.dumps(config, indent=2) + "\n")
    list_checksums(folder, (folder / name for name in (CONFIG, WEIGHTS, TOKENS)))


def load(folder: str | Path, architecture: str = "") -> Network:
    """Read a network that `save` wrote; scores are those of the saved network.

    Where an architecture is named, one of another architecture is an error.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    if architecture and (own := read_config(folder).get("architecture")) != architecture:
        raise BadInput(folder, f"is a network of architecture {own}, not {architecture}", "give one that is")
    check_listed(folder, _AGAIN)
    config = read_config(folder)
    try:
        encoder, tokenizer = new_encoder(config["encoder"]), open_tokenizer(folder)
        network = make(config["architecture"], encoder, tokenizer, **config["settings"])
        network.load_state_dict(dequantise(load_file(folder / WEIGHTS)))
    except (OSError, RuntimeError, SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise BadInput(folder, f"holds no whole network ({type(error).__name__}: {reason})", _AGAIN) from None
    return network.eval()


def read_config(folder: Path) -> dict[str, Any]:
    """The config.json of a network folder."""
    file = folder / CONFIG
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(file, f"cannot be read ({error})", _FOLDER) from None
    if not isinstance(config, dict) or config.get("kind") != KIND:
        raise BadInput(file, "is no config of a whyrank network", _FOLDER)
    return config


def is_network(folder: Path) -> bool:
    """Whether a folder holds a network that was trained here, not a model of another package."""
    try:
        read_config(folder)
    except BadInput:
        return False
    return True


def digest(folder: str | Path) -> str:
    """SHA-256 (16 hex digits) over config, weights and tokenizer of a network folder."""
    found = hashlib.sha256()
    for name in (CONFIG, WEIGHTS, TOKENS):
        with open(Path(folder) / name, "rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:16]


def quantise(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state of a network with its matrices in eight bits, a quarter of the size, and all else in half precision.

    w[i, j] is stored as round(w[i, j] / s[i]) with s[i] = max_j |w[i, j]| / 127. Loading multiplies back.
    """
    found: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if tensor.ndim == 2 and tensor.is_floating_point():
            scale = tensor.float().abs().amax(dim=1).clamp(min=1e-12) / 127.0
            found[name], found[name + _SCALE] = torch.round(tensor.float() / scale[:, None]).to(torch.int8), scale
        else:
            found[name] = tensor.half() if tensor.is_floating_point() else tensor
    return found


def dequantise(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state that `quantise` was given, up to rounding, in single precision; any other state as it is."""
    found: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if name + _SCALE in state:
            found[name] = tensor.float() * state[name + _SCALE].float()[:, None]
        elif name.removesuffix(_SCALE) not in state or not name.endswith(_SCALE):
            found[name] = tensor.float() if tensor.is_floating_point() else tensor
    return found
