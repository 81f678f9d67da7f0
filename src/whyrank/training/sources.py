"""What a network starts from besides its recipe: a pre-trained encoder, a tokenizer, word vectors."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch

from whyrank.core import BadInput, MissingExtra, Range, UnknownName, Whole, WhyrankError, check, parse_call, seed_for
from whyrank.networks import Encoder, ModelTokenizer, Network, load_encoder, make, networks, new_encoder, start
from whyrank.training.data import corpus_texts, training_set
from whyrank.training.distilling import distillation_set
from whyrank.training.recipe import JudgedData, Recipe
from whyrank.training.schedule import check_keys

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]")
CHARACTERS = 1000  # different ones that have a token of their own
LONGEST = 100  # characters of a word: the finished tokenizer reads longer ones as unknown
_LONG = re.compile(rf"[^ \t\r\n]{{{LONGEST + 1},}}")


def wordpiece_tokenizer(texts: Sequence[str], size: int = 8000) -> bytes:
    """The tokenizer.json of at most about `size` lower-case WordPiece tokens, built from the most frequent pairs.

    Schuster and Nakajima, "Japanese and Korean voice search", ICASSP 2012; cut greedily, the longest token first. The
    package numbers the tokens inside words in no fixed order, and so breaks ties in none; here they are numbered
    beforehand, which makes the result depend on the texts alone. Words of more than 100 characters are left out: no
    token of them would ever be used, and one of millions of characters would take hours.
    """
    check("tokenizer: size", size, Annotated[int, Range(100)])
    try:
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    except ImportError:
        raise MissingExtra("a tokenizer of one's own", "models") from None
    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()

    def without_long_words(run: re.Match[str]) -> str:
        words = splitter.pre_tokenize_str(normalizer.normalize_str(run[0]))
        return " ".join(word for word, _ in words if len(word) <= LONGEST)

    def tokenizer(model: Any) -> Any:
        made = Tokenizer(model)
        made.normalizer, made.pre_tokenizer = normalizer, splitter
        return made

    valid = (text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8") for text in texts)
    used = [_LONG.sub(without_long_words, text) for text in valid]  # without half surrogate pairs, which are refused
    counts: Counter[str] = Counter()
    for text in used:
        counts.update(normalizer.normalize_str(text))
    by_count = sorted((c for c in counts if not c.isspace()), key=lambda c: (-counts[c], c))
    letters = sorted(by_count[:CHARACTERS])
    if not letters:
        raise WhyrankError("tokenizer: the collection has no texts to build a vocabulary from")
    learner = tokenizer(models.WordPiece(unk_token=SPECIAL[1]))
    inside = ["##" + letter for letter in letters]
    learner.train_from_iterator(used, trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=2, show_progress=False, special_tokens=[*SPECIAL, *inside],
        initial_alphabet=letters, limit_alphabet=len(letters),
    ))  # fmt: skip
    made = tokenizer(models.WordPiece(learner.get_vocab(), unk_token=SPECIAL[1]))
    made.add_special_tokens(list(SPECIAL))
    return str(made.to_str()).encode()


_FILES = ("config.json", "tokenizer.json", "*.safetensors")  # what is needed of a pre-trained model
_COLLECTION = "collection"
_TEXTS = 100_000  # of a larger collection, so many are drawn to build a tokenizer from
_ANALYZER = "chain(tokens=plain)"  # the words that networks over word vectors see
_NOT_SETTINGS = {"self", "encoder", "tokenizer", "source", "layers", "words", "matrix", "seed", "settings"}
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
    encoder = pretrained_folder(recipe.encoder) if recipe.encoder and isinstance(recipe.encoder, str) else None
    teachers = [pretrained_folder(name) for name in recipe.data.get("teachers", {})]
    return Sources(encoder, _tokenizer(recipe) if recipe.tokenizer else b"", teachers=teachers)


def _tokenizer(recipe: Recipe) -> bytes:
    """The content of a tokenizer.json."""
    if recipe.tokenizer.partition("(")[0].strip() == _COLLECTION:
        arguments = parse_call(recipe.tokenizer).arguments
        if unknown := [name for name in arguments if name != "size"]:
            raise UnknownName("argument of 'collection'", unknown[0], ["size"])
        return wordpiece_tokenizer(_own_texts(recipe, _TEXTS), **arguments)
    file = Path(resolve_source(recipe.tokenizer))
    if not file.is_file():
        file = (file if file.is_dir() else pretrained_folder(recipe.tokenizer)) / "tokenizer.json"
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
        found = open_vectors(resolve_source(source) if source.startswith("~") else source)
    else:
        settings = source if isinstance(source, Mapping) else {}
        check_keys("encoder", settings, [field.name for field in fields(GloVe)])
        texts = {str(i): text for i, text in enumerate(_own_texts(recipe))}
        found = collection_vectors(texts, analyzers.create(_ANALYZER), GloVe(**settings))
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
    return corpus_texts(JudgedData(**recipe.data).collection, limit)


def new_network(recipe: Recipe, seed: int, sources: Sources) -> Network:
    """A network with a new head on what the recipe names."""
    factory = networks.factory(recipe.architecture)
    check_settings(recipe)
    torch.manual_seed(seed_for(seed, "weights") % 2**63)
    tokenizer = ModelTokenizer("tokenizer", sources.tokenizer) if sources.tokenizer else None
    if sources.vectors is not None:
        settings = {name: value for name, value in recipe.settings.items() if name != "most"}  # done when read
        made: Network = factory.over(sources.words, sources.vectors, seed=seed, **settings)
    elif stands_on_tokens(recipe.architecture):
        made = factory.over_tokenizer(tokenizer, **recipe.settings)
    elif tokenizer is None:
        made = start(recipe.architecture, str(sources.encoder), recipe.layers, **recipe.settings)
    else:
        encoder = _encoder(recipe, sources, tokenizer)
        made = make(recipe.architecture, encoder, tokenizer, **recipe.settings)
    if made.max_query < 1 or made.max_doc < 1:
        positions = made.encoder.max_positions
        raise WhyrankError(f"max_query: the encoder has {positions:,} positions in all; leave some for texts")
    for module in made.modules():
        if isinstance(module, torch.nn.Dropout) and recipe.dropout is not None:
            module.p = recipe.dropout
    return made


def _encoder(recipe: Recipe, sources: Sources, tokenizer: ModelTokenizer) -> Encoder:
    """A pre-trained encoder, or a new one, for the tokens of another tokenizer."""
    if sources.encoder is not None:
        found = load_encoder(sources.encoder, recipe.layers)
    else:
        assert isinstance(recipe.encoder, Mapping)
        found = _new_encoder({"vocab_size": len(tokenizer), **recipe.encoder})
    rows = len(found.model.get_input_embeddings().weight)
    if len(tokenizer) > rows:
        raise WhyrankError(
            f"the tokenizer has {len(tokenizer):,} tokens and the encoder rows for {rows:,}; match them"
        )
    return found


def _new_encoder(settings: Mapping[str, Any]) -> Encoder:
    """A new encoder; sizes and activations that no model has are refused: what comes of them shows late."""
    from transformers import AutoConfig
    from transformers.activations import ACT2FN

    try:
        known = AutoConfig.for_model(settings.get("model_type", "bert")).to_dict()
    except (ValueError, KeyError, TypeError):
        raise WhyrankError(f"encoder: transformers has no model_type {settings.get('model_type')!r}") from None
    for name, value in settings.items():
        if name not in known:
            raise UnknownName("key of encoder", name, known)
        if type(known[name]) is int and known[name] > 0 and not name.endswith("_id"):
            check(f"encoder: {name}", value, Whole)
    if (act := str(settings.get("hidden_act", "gelu"))) not in ACT2FN:
        raise UnknownName("value of encoder: hidden_act", act, ACT2FN)
    try:
        return new_encoder(settings)
    except WhyrankError:
        raise
    except Exception as error:  # of whatever kind a model's own checks are
        raise WhyrankError(f"encoder: cannot be made ({' '.join(str(error).split())}); mend its settings") from None


def stands_on_words(architecture: str) -> bool:
    """Whether a network of this architecture has word vectors in the place of an encoder."""
    return hasattr(networks.factory(architecture), "over")


def stands_on_tokens(architecture: str) -> bool:
    """Whether a network of this architecture has vectors of its own for tokens in the place of an encoder."""
    return hasattr(networks.factory(architecture), "over_tokenizer")


def check_settings(recipe: Recipe) -> None:
    """Raise an error for settings that the architecture does not take, and for keys that do not go together."""
    factory = networks.factory(recipe.architecture)
    makers = (getattr(factory, name, None) for name in ("__init__", "begin", "over", "over_tokenizer"))
    known = {name for maker in makers if maker for name in inspect.signature(maker).parameters} - _NOT_SETTINGS
    known |= {"most"} if stands_on_words(recipe.architecture) else set()
    for name in recipe.settings:
        if name not in known:
            raise UnknownName(f"setting of {recipe.architecture!r}", name, known)
    own_vectors = stands_on_words(recipe.architecture), stands_on_tokens(recipe.architecture)
    if any(own_vectors):
        what, others = ("word vectors", "tokenizer") if own_vectors[0] else ("tokens", "encoder")
        for name in (others, "layers", "pretraining"):
            if getattr(recipe, name):
                raise WhyrankError(f"{name}: {recipe.architecture!r} is built on {what} and takes none")
        if own_vectors[1] and not recipe.tokenizer:
            raise WhyrankError("tokenizer: tokens need one; give a folder or a hub id, or 'collection' to build one")
    elif not recipe.encoder:
        raise WhyrankError(f"encoder: {_GIVE}")
    elif isinstance(recipe.encoder, Mapping) and not recipe.tokenizer:
        raise WhyrankError("tokenizer: a new encoder needs one; give a folder, or 'collection' to build one")
    elif isinstance(recipe.encoder, Mapping) and recipe.layers is not None:
        raise WhyrankError("layers: a new encoder has num_hidden_layers instead")
    elif recipe.tokenizer:
        for name in recipe.settings:
            if name not in inspect.signature(factory).parameters:
                what = f"{name} is for a pre-trained encoder with its own tokenizer"
                raise WhyrankError(f"settings: {what}; leave it out")


def pretrained_folder(source: str) -> Path:
    """The folder of a pre-trained model: the source itself, the bundled one, an installed package's, or the hub's."""
    from huggingface_hub import snapshot_download

    from whyrank.rankers.neural import model_folder

    found = resolve_source(source)
    if found == "bundled" or Path(found).is_dir():
        return model_folder(found)
    try:
        return Path(snapshot_download(found, allow_patterns=list(_FILES)))
    except Exception as error:  # the client has many kinds of errors, all of which mean: not to be had
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise WhyrankError(f"model {source} cannot be loaded ({reason}); {_GIVE}") from None


def resolve_source(source: str) -> str:
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
