"""What a network starts from besides its recipe: a pre-trained encoder, a tokenizer, word vectors."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from whyrank.core import (
    BadInput,
    MissingExtra,
    UnknownName,
    WhyrankError,
    check_whole,
    parse_call,
    seed_for,
    temporary_room,
)
from whyrank.networks import Encoder, ModelTokenizer, Network, load_encoder, make, networks, new_encoder, start
from whyrank.training.data import collection_names, corpus_texts, training_set
from whyrank.training.distilling import distillation_set
from whyrank.training.phases import check_keys
from whyrank.training.recipe import Recipe

# A tokenizer from the texts of a collection: word pieces, the same ones for the same texts every time.

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]")
CHARACTERS = 1000  # different ones that have a token of their own
LONGEST = 100  # characters of a word: the finished tokenizer reads longer ones as unknown
_INSIDE = "##"
_LONG = re.compile(rf"[^ \t\r\n]{{{LONGEST + 1},}}")


def word_pieces(texts: Sequence[str], size: int = 8000) -> bytes:
    """The tokenizer.json of at most about `size` lower-case word pieces, built from the most frequent pairs.

    Schuster and Nakajima, "Japanese and Korean voice search", ICASSP 2012; cut greedily, the longest token first. The
    package numbers the tokens inside words in no fixed order, and so breaks ties in none; here they are numbered
    beforehand, which makes the result depend on the texts alone. Words of more than 100 characters are left out: no
    token of them would ever be used, and one of millions of characters would take hours.
    """
    check_whole("tokenizer: size", size, 100)
    try:
        from tokenizers import Tokenizer, models, trainers
    except ImportError:
        raise MissingExtra("a tokenizer of one's own", "models") from None
    normalizer, splitter = _steps()
    used = [_LONG.sub(lambda found: _short(found[0], normalizer, splitter), _valid(text)) for text in texts]
    letters = _letters(map(normalizer.normalize_str, used))
    if not letters:
        raise WhyrankError("tokenizer: the collection has no texts to build word pieces from")
    learner = _put_together(Tokenizer(models.WordPiece(unk_token=SPECIAL[1])), normalizer, splitter)
    inside = [_INSIDE + letter for letter in letters]
    learner.train_from_iterator(used, trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=2, show_progress=False, special_tokens=[*SPECIAL, *inside],
        initial_alphabet=letters, limit_alphabet=len(letters),
    ))  # fmt: skip
    made = Tokenizer(models.WordPiece(learner.get_vocab(), unk_token=SPECIAL[1]))
    made.add_special_tokens(list(SPECIAL))
    return str(_put_together(made, normalizer, splitter).to_str()).encode()


def _steps() -> tuple[Any, Any]:
    from tokenizers import normalizers, pre_tokenizers

    return normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()


def _put_together(tokenizer: Any, normalizer: Any, splitter: Any) -> Any:
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    return tokenizer


def _short(run: str, normalizer: Any, splitter: Any) -> str:
    """The words of a run of characters as the tokenizer cuts it, without those that are too long."""
    words = splitter.pre_tokenize_str(normalizer.normalize_str(run))
    return " ".join(word for word, _ in words if len(word) <= LONGEST)


def _letters(texts: Iterable[str]) -> list[str]:
    """The most frequent characters, sorted."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    by_count = sorted((c for c in counts if not c.isspace()), key=lambda c: (-counts[c], c))
    return sorted(by_count[:CHARACTERS])


def _valid(text: str) -> str:
    """The text without half surrogate pairs, which the package refuses."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


_FILES = ("config.json", "tokenizer.json", "*.safetensors")  # what is needed of a pre-trained model
_COLLECTION = "collection"
_TEXTS = 100_000  # of a larger collection, so many are drawn to build a tokenizer from
_ANALYZER = "chain(tokens=plain)"  # the words that networks over word vectors see
_NOT_SETTINGS = {"self", "encoder", "tokens", "source", "layers", "words", "matrix", "seed", "settings"}
_GIVE = "give a hub id, a folder, package:NAME or the settings of a new encoder"


@dataclass(frozen=True, eq=False)
class Sources:
    """What was found or made; which of these there are depends on the recipe.

    Attributes:
        encoder: the folder of a pre-trained model.
        tokenizer: the content of a tokenizer.json that is not the encoder's own.
        words: those that have a vector.
        vectors: one row for each word.
        teachers: the folders of the models that teach.
    """

    encoder: Path | None = None
    tokenizer: bytes = b""
    words: Sequence[str] = ()
    vectors: npt.NDArray[np.float32] | None = None
    teachers: Sequence[Path] = ()


def sources_of(recipe: Recipe) -> Sources:
    """What the network starts from."""
    if stands_on_words(recipe.architecture):
        return _word_vectors(recipe)
    encoder = located(recipe.encoder) if recipe.encoder and isinstance(recipe.encoder, str) else None
    teachers = [located(name) for name in recipe.data.get("teachers", {})]
    return Sources(encoder, _tokenizer(recipe) if recipe.tokenizer else b"", teachers=teachers)


def _tokenizer(recipe: Recipe) -> bytes:
    """The content of a tokenizer.json."""
    if recipe.tokenizer.partition("(")[0].strip() == _COLLECTION:
        arguments = parse_call(recipe.tokenizer).arguments
        if unknown := [name for name in arguments if name != "size"]:
            raise UnknownName("argument of 'collection'", unknown[0], ["size"])
        return word_pieces(_own_texts(recipe, _TEXTS), **arguments)
    path = Path(resolved(recipe.tokenizer))
    file = path if path.is_file() else (path if path.is_dir() else located(recipe.tokenizer)) / "tokenizer.json"
    try:
        return file.read_bytes()
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise BadInput(file, what, "give a model folder with a tokenizer.json, or 'collection'") from None


def _word_vectors(recipe: Recipe) -> Sources:
    from whyrank.text import analyzers
    from whyrank.text.vectors import GloVe, collection_vectors, open_vectors

    source = recipe.encoder or _COLLECTION
    if isinstance(source, str) and source != _COLLECTION:
        found = open_vectors(resolved(source) if source.startswith("~") else source)
    else:
        settings = source if isinstance(source, Mapping) else {}
        check_keys("encoder", settings, [field.name for field in fields(GloVe)])
        model = GloVe(**settings)
        texts = {str(i): text for i, text in enumerate(_own_texts(recipe))}
        found = collection_vectors(texts, analyzers.create(_ANALYZER), model)
    if not len(found):
        raise WhyrankError("encoder: there are no word vectors; the texts are too few to train them on")
    most = recipe.settings.get("most")
    return Sources(words=found.words[:most], vectors=np.asarray(found.matrix[:most], dtype=np.float32))


def _own_texts(recipe: Recipe, limit: int | None = None) -> list[str]:
    """The texts of the collections that the network learns from."""
    if "triples" in recipe.data:
        return list(training_set(recipe.data).docs)
    if "teachers" in recipe.data:
        return list(distillation_set(recipe.data).docs)[:limit]
    return corpus_texts(collection_names(recipe.data), limit)


def new_network(recipe: Recipe, seed: int, sources: Sources) -> Network:
    """A network with a new head on what the recipe names."""
    factory = networks.factory(recipe.architecture)
    check_settings(recipe)
    torch.manual_seed(seed_for(seed, "weights") % 2**63)
    if sources.vectors is not None:
        settings = {name: value for name, value in recipe.settings.items() if name != "most"}  # done when read
        made: Network = factory.over(sources.words, sources.vectors, seed=seed, **settings)
    elif stands_on_pieces(recipe.architecture):
        made = factory.over_tokenizer(_pieces(sources.tokenizer), **recipe.settings)
    else:
        made = _over_encoder(recipe, sources)
    if made.max_query < 1 or made.max_doc < 1:
        raise WhyrankError(
            f"max_query: the encoder has {made.encoder.max_positions:,} places in all; leave some for texts"
        )
    for module in made.modules():
        if isinstance(module, torch.nn.Dropout) and recipe.dropout is not None:
            module.p = recipe.dropout
    return made


def stands_on_words(architecture: str) -> bool:
    """Whether a network of this architecture has word vectors in the place of an encoder."""
    return hasattr(networks.factory(architecture), "over")


def stands_on_pieces(architecture: str) -> bool:
    """Whether a network of this architecture has vectors of its own for tokens in the place of an encoder."""
    return hasattr(networks.factory(architecture), "over_pieces")


def check_settings(recipe: Recipe) -> None:
    """Raise an error for settings that the architecture does not take, and for keys that do not go together."""
    factory = networks.factory(recipe.architecture)
    known = {name for made in _makers(factory) for name in _arguments(made)} - _NOT_SETTINGS
    for name in recipe.settings:
        if name not in known:
            raise UnknownName(f"setting of {recipe.architecture!r}", name, known)
    if stands_on_words(recipe.architecture):
        _check_none(recipe, "word vectors", ("tokenizer", "layers", "pretraining"))
    elif stands_on_pieces(recipe.architecture):
        _check_none(recipe, "tokens", ("encoder", "layers", "pretraining"))
        if not recipe.tokenizer:
            raise WhyrankError("tokenizer: tokens need one; give a folder or a hub id, or 'collection' to build one")
    elif not recipe.encoder:
        raise WhyrankError(f"encoder: {_GIVE}")
    elif isinstance(recipe.encoder, Mapping) and not recipe.tokenizer:
        raise WhyrankError("tokenizer: a new encoder needs one; give a folder, or 'collection' to build one")
    elif isinstance(recipe.encoder, Mapping) and recipe.layers is not None:
        raise WhyrankError("layers: a new encoder has num_hidden_layers instead")
    elif recipe.tokenizer and (wrong := [n for n in recipe.settings if n not in _arguments(factory.__init__)]):
        raise WhyrankError(f"settings: {wrong[0]} is for a pre-trained encoder with its own tokenizer; leave it out")


def _check_none(recipe: Recipe, what: str, names: Sequence[str]) -> None:
    if wrong := [name for name in names if getattr(recipe, name)]:
        raise WhyrankError(f"{wrong[0]}: {recipe.architecture!r} stands on {what} and takes none")


def located(source: str) -> Path:
    """The folder of a pre-trained model: the source itself, an installed package's, or the hub's."""
    found = resolved(source)
    if Path(found).is_dir():
        return Path(found)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(found, allow_patterns=list(_FILES)))
    except Exception as error:  # the client has many kinds of errors, all of which mean: not to be had
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise WhyrankError(f"model {source} cannot be loaded ({reason}); {_GIVE}") from None


def resolved(source: str) -> str:
    """The folder or hub id that a source names; `package:NAME` is the model folder of an installed package.

    A module of the working folder is none, and is not run, whatever name it has.
    """
    if not source.startswith("package:"):
        return str(Path(source).expanduser())
    name = source.removeprefix("package:")
    before, here = sys.path[:], os.path.realpath(os.curdir)
    sys.path[:] = [each for each in before if each and os.path.realpath(each) != here]
    try:
        return str(importlib.import_module(name).MODEL_DIR)
    except (ImportError, AttributeError, ValueError):
        raise WhyrankError(f"package {name!r} with a model is not installed; install it or give a folder") from None
    finally:
        sys.path[:] = before


def _arguments(made: Any) -> set[str]:
    return set(inspect.signature(made).parameters)


def _makers(factory: Any) -> list[Any]:
    names = ("__init__", "begin", "over", "over_pieces")
    return [getattr(factory, name) for name in names if hasattr(factory, name)]


def _over_encoder(recipe: Recipe, sources: Sources) -> Network:
    if sources.encoder is not None and not sources.tokenizer:
        return start(recipe.architecture, sources.encoder, recipe.layers, **recipe.settings)
    tokenizer = _pieces(sources.tokenizer)
    return make(recipe.architecture, _encoder(recipe, sources, tokenizer), tokenizer, **recipe.settings)


def _encoder(recipe: Recipe, sources: Sources, tokenizer: ModelTokenizer) -> Encoder:
    if sources.encoder is not None:
        found = load_encoder(sources.encoder, recipe.layers)
    else:
        assert isinstance(recipe.encoder, Mapping)
        found = _new({"vocab_size": len(tokenizer), **recipe.encoder})
    rows = len(found.model.get_input_embeddings().weight)
    if len(tokenizer) > rows:
        raise WhyrankError(
            f"the tokenizer has {len(tokenizer):,} tokens and the encoder rows for {rows:,}; match them"
        )
    return found


def _new(settings: Mapping[str, Any]) -> Encoder:
    from transformers import AutoConfig

    try:
        known = AutoConfig.for_model(settings.get("model_type", "bert")).to_dict()
    except (ValueError, KeyError, TypeError):
        raise WhyrankError(f"encoder: transformers has no model_type {settings.get('model_type')!r}") from None
    if unknown := [name for name in settings if name not in known]:
        raise UnknownName("key of encoder", unknown[0], known)
    _check_shape(settings, known)
    try:
        return new_encoder(settings)
    except WhyrankError:
        raise
    except Exception as error:  # of whatever kind a model's own checks are
        raise WhyrankError(f"encoder: cannot be made ({' '.join(str(error).split())}); mend its settings") from None


def _check_shape(settings: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Refuse sizes and activations that no model has: what comes of them shows late, or not clearly."""
    from transformers.activations import ACT2FN

    for name, value in settings.items():
        if type(usual[name]) is int and usual[name] > 0 and not name.endswith("_id"):
            check_whole(f"encoder: {name}", value, 1)
    if (act := str(settings.get("hidden_act", "gelu"))) not in ACT2FN:
        raise UnknownName("value of encoder: hidden_act", act, ACT2FN)


def _pieces(content: bytes) -> ModelTokenizer:
    with tempfile.TemporaryDirectory() as folder:
        with temporary_room():
            (Path(folder) / "tokenizer.json").write_bytes(content)
        return ModelTokenizer(folder)
