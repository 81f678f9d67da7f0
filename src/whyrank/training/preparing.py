"""From a recipe to a prepared run: everything that it names is read, built or trained here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from whyrank.core import BadInput, UnknownName, WhyrankError, parse_call
from whyrank.training.data import collection_names, corpus_texts, training_set, validation_set
from whyrank.training.distilling import distillation_set
from whyrank.training.losses import losses
from whyrank.training.prepared import Prepared
from whyrank.training.recipe import Recipe
from whyrank.training.sources import Sources, check_settings, located, resolved, stands_on_words, word_pieces

COLLECTION = "collection"
TEXTS = 100_000  # of a larger collection, so many are drawn to build a tokenizer from
_ANALYZER = "chain(tokens=plain)"  # the words that networks over word vectors see


def prepare(recipe: Recipe) -> Prepared:
    """All that a recipe names, ready to train from."""
    if recipe.phases:
        raise WhyrankError("this recipe has phases; it is for `whyrank tables learn parm`")
    check_settings(recipe)
    losses.create(recipe.loss)
    read = distillation_set if "teachers" in recipe.data else training_set
    data, validation = read(recipe.data), validation_set(recipe.validation)
    given = recipe.pretraining
    corpus = corpus_texts([given["collection"]], given.get("limit")) if given else []
    return Prepared(recipe, data, validation, corpus, sources_of(recipe))


def sources_of(recipe: Recipe) -> Sources:
    """What the network starts from."""
    if stands_on_words(recipe.architecture):
        return _word_vectors(recipe)
    encoder = located(recipe.encoder) if recipe.encoder and isinstance(recipe.encoder, str) else None
    teachers = [located(name) for name in recipe.data.get("teachers", {})]
    return Sources(encoder, _tokenizer(recipe) if recipe.tokenizer else b"", teachers=teachers)


def _tokenizer(recipe: Recipe) -> bytes:
    """The content of a tokenizer.json."""
    if recipe.tokenizer.partition("(")[0].strip() == COLLECTION:
        return word_pieces(_own_texts(recipe, TEXTS), **_collection_arguments(recipe.tokenizer))
    path = Path(resolved(recipe.tokenizer))
    file = path if path.is_file() else (path if path.is_dir() else located(recipe.tokenizer)) / "tokenizer.json"
    try:
        return file.read_bytes()
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise BadInput(file, what, "give a model folder with a tokenizer.json, or 'collection'") from None


def _collection_arguments(text: str) -> Mapping[str, Any]:
    arguments = parse_call(text).arguments
    if unknown := [name for name in arguments if name != "size"]:
        raise UnknownName("argument of 'collection'", unknown[0], ["size"])
    return arguments


def _word_vectors(recipe: Recipe) -> Sources:
    from whyrank.text import analyzers
    from whyrank.text.vectors import GloVe, collection_vectors, open_vectors

    source = recipe.encoder or COLLECTION
    if isinstance(source, str) and source != COLLECTION:
        found = open_vectors(resolved(source) if source.startswith("~") else source)
    else:
        model = GloVe(**_glove(source)) if isinstance(source, Mapping) else GloVe()
        texts = {str(i): text for i, text in enumerate(_own_texts(recipe))}
        found = collection_vectors(texts, analyzers.create(_ANALYZER), model)
    if not len(found):
        raise WhyrankError("encoder: there are no word vectors; the texts are too few to train them on")
    most = recipe.settings.get("most")
    return Sources(words=found.words[:most], vectors=np.asarray(found.matrix[:most], dtype=np.float32))


def _glove(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    from dataclasses import fields

    from whyrank.text.vectors import GloVe

    known = [field.name for field in fields(GloVe)]
    if unknown := [name for name in settings if name not in known]:
        raise UnknownName("key of encoder", unknown[0], known)
    return settings


def _own_texts(recipe: Recipe, limit: int | None = None) -> list[str]:
    """The texts of the collections that the network learns from."""
    if "triples" in recipe.data:
        return list(training_set(recipe.data).docs)
    if "teachers" in recipe.data:
        return list(distillation_set(recipe.data).docs)[:limit]
    return corpus_texts(collection_names(recipe.data), limit)
