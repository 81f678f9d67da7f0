"""What all networks share: settings, tokens, and folders with config.json, model.safetensors and tokenizer.json."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor, nn

from whyrank.core import LISTING, BadInput, check_listed, list_checksums, replacing, write_text
from whyrank.networks import networks
from whyrank.networks.encoder import Encoder, load_encoder, new_encoder, settings_of
from whyrank.networks.quantised import quantised, restored
from whyrank.networks.tokens import Arrays, Ids, ModelTokenizer, open_tokenizer, tensors

KIND = "whyrank network"
CONFIG, WEIGHTS, TOKENS = "config.json", "model.safetensors", "tokenizer.json"
_AGAIN = "train or copy the network again"


class Network(nn.Module):
    """Scores pairs of token arrays. A new architecture overrides `arrays` and `forward`.

    Attributes:
        architecture: its name in the registry of networks.
        scale: what its scores are.
        max_query: tokens of a query that are read.
        max_doc: tokens of a text that are read.
    """

    architecture: ClassVar[str]
    scale: ClassVar[str] = "logit"

    def __init__(self, encoder: Encoder, tokenizer: ModelTokenizer, max_query: int = 32, max_doc: int = 477) -> None:
        """Put a head on an encoder."""
        super().__init__()
        self.encoder, self.tokenizer = encoder, tokenizer
        self.max_query, self.max_doc = max_query, min(max_doc, encoder.max_positions - max_query - 3)

    @classmethod
    def begin(cls, source: str | Path, layers: Sequence[int] | None = None, **settings: Any) -> Network:
        """A new network of this architecture over what is pre-trained: an encoder, some of its layers perhaps."""
        return cls(load_encoder(source, layers), ModelTokenizer(source), **settings)

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments besides encoder and tokens that make a network of the same shape."""
        return {"max_query": self.max_query, "max_doc": self.max_doc}

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

    def score_texts(self, queries: Sequence[str], docs: Sequence[str], device: Any = "cpu") -> Tensor:
        """Scores of aligned pairs of texts in one batch; for small numbers of pairs."""
        found: Tensor = self(tensors(self.arrays(self.query_ids(queries), self.doc_ids(docs)), device))
        return found

    @property
    def packs(self) -> bool:
        """Whether the network reads pairs that lie end to end (`packed`), so that nothing is padded on a GPU."""
        return False

    def packed(self, queries: Sequence[Ids], docs: Sequence[Ids]) -> Arrays:
        """Pairs end to end, for a network that reads such."""
        raise NotImplementedError

    def heads(self) -> list[nn.Parameter]:
        """The parameters that are not the encoder's."""
        inside = {id(p) for p in self.encoder.parameters()}
        return [p for p in self.parameters() if id(p) not in inside]


def make(architecture: str, encoder: Encoder, tokenizer: ModelTokenizer, **settings: Any) -> Network:
    """A new network of some architecture over an encoder."""
    made: Network = networks.factory(architecture)(encoder, tokenizer, **settings)
    return made


def start(architecture: str, source: str | Path, layers: Sequence[int] | None = None, **settings: Any) -> Network:
    """A new network over a pre-trained encoder, or over word vectors where the architecture wants these."""
    made: Network = networks.factory(architecture).begin(source, layers, **settings)
    return made


def save(network: Network, folder: str | Path, bits: int = 32, **facts: Any) -> None:
    """Write a network as a folder, its weights in 32, 16 or 8 bits; `facts` go into config.json."""
    from safetensors.torch import save as packed

    place = Path(folder)
    state = {name: tensor.detach().clone().contiguous() for name, tensor in network.state_dict().items()}
    (place / LISTING).unlink(missing_ok=True)  # what is there of an older network no longer fits it
    if bits == 8:
        state = quantised(state)
    elif bits == 16:
        state = {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in state.items()}
    with replacing(place / WEIGHTS) as beside:
        beside.write_bytes(packed(state))
    with replacing(place / TOKENS) as beside:
        beside.write_bytes(network.tokenizer.content)
    config = {"kind": KIND, "architecture": network.architecture, "settings": network.settings}
    config |= {"encoder": settings_of(network.encoder), **facts}
    write_text(place / CONFIG, json.dumps(config, indent=2) + "\n")
    list_checksums(place, (place / name for name in (CONFIG, WEIGHTS, TOKENS)))


def load(folder: str | Path) -> Network:
    """Read a network that `save` wrote; scores are those of the saved network."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    place = Path(folder)
    check_listed(place, _AGAIN)
    config, tokenizer = read_config(place), open_tokenizer(place)
    try:
        network = make(config["architecture"], new_encoder(config["encoder"]), tokenizer, **config["settings"])
        network.load_state_dict(restored(load_file(place / WEIGHTS)))
    except (OSError, RuntimeError, SafetensorError, KeyError, TypeError, ValueError) as error:
        reason = (str(error).splitlines() or [""])[0]
        what = f"holds no whole network ({type(error).__name__}: {reason})"
        raise BadInput(place, what, _AGAIN) from None
    return network.eval()


def read_config(folder: Path) -> dict[str, Any]:
    """The config.json of a network folder."""
    file = folder / CONFIG
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(file, f"cannot be read ({error})", "give a folder that `whyrank train` wrote") from None
    if not isinstance(config, dict) or config.get("kind") != KIND:
        raise BadInput(file, "is no config of a whyrank network", "give a folder that `whyrank train` wrote")
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
