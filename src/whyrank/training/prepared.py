"""A prepared training run: recipe, texts and examples in one folder, for machines that have torch and nothing else.

whyrank train RECIPE --prepare FOLDER        # here
python -m whyrank.learners FOLDER --out OUT  # there
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import BadInput, WhyrankError, check_listed, check_seal, list_checksums, replacing, sealed_file
from whyrank.training.data import Examples, Fixed, Judged, Sampler, TrainingSet
from whyrank.training.distilling import Distillation
from whyrank.training.recipe import Recipe, recipe_of
from whyrank.training.sources import FILES, Sources
from whyrank.training.validation import Validation

_RECIPE, _TEXTS, _EXAMPLES, _ENCODER = "recipe.json.gz", "texts.json.gz", "examples.npz", "encoder"
_TOKENIZER, _WORDS, _VECTORS, _TEACHERS = "tokenizer.json", "words.json.gz", "vectors.npy", "teachers"
_DISTILLED = ("source", "shares", "top", "depth", "lexical")
_REMEDY = "make the folder again with `whyrank train RECIPE --prepare FOLDER`"
_BROKEN = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error)


class Prepared(NamedTuple):
    """All that training needs.

    Attributes:
        recipe: what is trained, and how.
        data: what it learns from.
        validation: what it is validated on.
        corpus: the texts of pre-training.
        sources: what the network starts from.
    """

    recipe: Recipe
    data: TrainingSet
    validation: Validation | None
    corpus: Sequence[str]
    sources: Sources

    def identity(self, seed: int) -> str:
        """A digest of recipe, texts, first examples and seed: two runs that share it are the same run."""
        recipe = {name: value for name, value in self.recipe.as_dict().items() if name != "seeds"}
        digest = hashlib.sha256(json.dumps([recipe, seed], sort_keys=True, default=str).encode())
        judged = self.validation
        for texts in (
            self.data.queries,
            self.data.docs,
            self.corpus,
            *([judged.queries, judged.docs] if judged else []),
        ):
            digest.update(hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).digest())
        for column in self.data.sampler.epoch(seed, 0):
            digest.update(np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()[:16]


def save_prepared(folder: Path, prepared: Prepared) -> None:
    """Write all that training needs; the recipe comes last, so that a folder with one is complete."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _RECIPE).exists():
        raise BadInput(folder, "is a folder with other things in it", "name a new one")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _RECIPE).unlink(missing_ok=True)
    data = prepared.data
    _write(folder / _TEXTS, {
        "queries": list(data.queries), "docs": list(data.docs), "corpus": list(prepared.corpus),
        "validation": _plain(prepared.validation),
    })  # fmt: skip
    with sealed_file(folder / _EXAMPLES) as file:
        np.savez_compressed(file, **_columns(data.sampler))
    save_sources(folder, prepared.sources)
    list_sources(folder)
    _write(folder / _RECIPE, prepared.recipe.as_dict())


def load_prepared(folder: Path) -> Prepared:
    """Read what `save_prepared` wrote."""
    if not (folder / _RECIPE).exists():
        raise BadInput(folder, "is no prepared folder, or not a whole one", _REMEDY)
    try:
        texts, content = _read(folder / _TEXTS), _read(folder / _RECIPE)
        data = TrainingSet(texts["queries"], texts["docs"], _sampler(folder / _EXAMPLES))
        validation = _validation(texts["validation"]) if texts["validation"] else None
        return Prepared(recipe_of(content), data, validation, texts["corpus"], load_sources(folder))
    except _BROKEN as error:
        raise BadInput(folder, f"cannot be read ({type(error).__name__}: {error})", _REMEDY) from None


def save_sources(folder: Path, sources: Sources) -> None:
    """Write what the network starts from, and the models that teach it."""
    for place in (_ENCODER, _TEACHERS):
        shutil.rmtree(folder / place, ignore_errors=True)
    for name in (_TOKENIZER, _WORDS, _VECTORS):
        (folder / name).unlink(missing_ok=True)
    for number, teacher in enumerate(sources.teachers):
        _copy_model(teacher, folder / _TEACHERS / str(number))
    if sources.encoder is not None:
        _copy_model(sources.encoder, folder / _ENCODER)
    if sources.tokenizer:
        (folder / _TOKENIZER).write_bytes(sources.tokenizer)
    if sources.vectors is not None:
        _write(folder / _WORDS, list(sources.words))
        np.save(folder / _VECTORS, sources.vectors, allow_pickle=False)


def list_sources(folder: Path) -> None:
    """Note checksums of what `save_sources` wrote."""
    models = [file for name in (_ENCODER, _TEACHERS) for file in (folder / name).rglob("*") if file.is_file()]
    others = [folder / name for name in (_TOKENIZER, _VECTORS) if (folder / name).exists()]
    list_checksums(folder, [*models, *others])


def _copy_model(source: Path, place: Path) -> None:
    if not (source / "config.json").is_file():
        raise BadInput(source, "is no model folder: it has no config.json", "give the folder of a whole model")
    place.mkdir(parents=True)
    for file in sorted(file for pattern in FILES for file in source.glob(pattern)):
        shutil.copyfile(file, place / file.name)


def load_sources(folder: Path) -> Sources:
    """Read what `save_sources` wrote."""
    check_listed(folder, _REMEDY)
    encoder = folder / _ENCODER if (folder / _ENCODER).is_dir() else None
    tokenizer = (folder / _TOKENIZER).read_bytes() if (folder / _TOKENIZER).exists() else b""
    if not (folder / _VECTORS).exists():
        teachers = sorted((folder / _TEACHERS).glob("*"), key=lambda path: int(path.name))
        return Sources(encoder, tokenizer, teachers=teachers)
    return Sources(words=_read(folder / _WORDS), vectors=np.load(folder / _VECTORS, allow_pickle=False))


def _columns(sampler: Sampler) -> dict[str, Any]:
    if isinstance(sampler, Fixed):
        return dict(sampler.examples._asdict())
    if isinstance(sampler, Distillation):
        return {name: np.array(getattr(sampler, name)) for name in _DISTILLED}
    if isinstance(sampler, Judged):
        flat = {"positives": sampler.positives, "negatives": sampler.negatives}
        found: dict[str, Any] = {"n": np.array(sampler.n)}
        for name, rows in flat.items():
            found[name] = np.concatenate(list(rows)) if rows else np.empty(0, np.int32)
            found[f"{name}_ends"] = np.cumsum([len(row) for row in rows])
        return found
    raise WhyrankError(f"examples of {type(sampler).__name__} cannot be prepared; train where the data is")


def _sampler(path: Path) -> Sampler:
    check_seal(path, _REMEDY)
    with np.load(path, allow_pickle=False) as file:
        found = {name: file[name] for name in file.files}
    if "shares" in found:
        top, shares = tuple(found["top"].tolist()), found["shares"].tolist()
        return Distillation(found["source"], shares, top, int(found["depth"]), int(found["lexical"]))
    if "doc" in found:
        return Fixed(Examples(found["query"], found["doc"], found["target"]))
    rows = [np.split(found[name], found[f"{name}_ends"][:-1]) for name in ("positives", "negatives")]
    return Judged(rows[0], rows[1], int(found["n"]))


def _plain(validation: Validation | None) -> dict[str, Any] | None:
    if validation is None:
        return None
    arrays = {name: getattr(validation, name).tolist() for name in ("query", "doc", "grade")}
    texts = {name: list(getattr(validation, name)) for name in ("queries", "docs", "ideal")}
    return {**arrays, **texts, "measure": validation.measure}


def _validation(given: dict[str, Any]) -> Validation:
    kinds = {"query": np.int32, "doc": np.int32, "grade": np.float32}
    return Validation(**{**given, **{name: np.array(given[name], kind) for name, kind in kinds.items()}})


def _write(path: Path, value: Any) -> None:
    with replacing(path) as beside, gzip.open(beside, "wt", encoding="utf-8", errors="surrogatepass") as file:
        json.dump(value, file, ensure_ascii=False)


def _read(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8", errors="surrogatepass") as file:
        return json.load(file)
