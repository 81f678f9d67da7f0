"""A prepared run of PaRM: recipe, texts, candidates and terms in one folder, for machines that have torch only.

whyrank tables learn parm --target RANKER --prepare FOLDER   # here
python -m whyrank.learners FOLDER --out OUT                  # there
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import (
    EMPTY,
    KEY,
    BadInput,
    WhyrankError,
    check_seal,
    read_sealed_json,
    replacing,
    seal,
    sealed_json,
    write_text,
)
from whyrank.learners.parm.data import Candidates, Terms, plain
from whyrank.networks import restored
from whyrank.networks.quantised import quantised
from whyrank.training import Recipe, Sources, list_sources, load_sources, recipe_of, save_sources

# Prepared runs made small for a journey: texts and arrays well compressed, weights in sixteen or eight bits.

SMALL = ".xz"
BITS = (8, 16, 32)


def write_values(path: Path, value: Any) -> None:
    """Write plain values, half surrogate pairs of texts included."""
    _write(path, json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def read_values(path: Path) -> Any:
    """Read what `write_values` wrote."""
    return json.loads(_read(path).decode("utf-8", "surrogatepass"))


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays by name."""
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    _write(path, content.getvalue())


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read what `write_arrays` wrote."""
    with np.load(io.BytesIO(_read(path)), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def check_bits(bits: int) -> None:
    """Raise an error for a number of bits that weights are not kept in."""
    if bits not in BITS:
        raise WhyrankError(f"weights are kept in {', '.join(map(str, BITS))} bits, not in {bits}")


def narrow(folder: Path, bits: int) -> None:
    """Keep the weights of all models below a folder in fewer bits; `widen` makes them whole again."""
    from safetensors.torch import load_file, save

    for file in sorted(folder.rglob("*.safetensors")) if bits < max(BITS) else []:
        state = load_file(file)
        half = {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in state.items()}
        _write(file.with_name(file.name + SMALL), save(quantised(state) if bits == min(BITS) else half), 1)
        file.unlink()


def widen(folder: Path) -> None:
    """Write the weights that `narrow` kept as single precision, beside them."""
    from safetensors.torch import load, save

    for small in sorted(folder.rglob(f"*.safetensors{SMALL}")):
        whole = small.with_name(small.name.removesuffix(SMALL))
        check_seal(whole, f"remove it; it is made again from {small.name}")
        if not whole.exists():
            with replacing(whole) as beside:
                beside.write_bytes(save(restored(load(_read(small))), {"format": "pt", KEY: EMPTY}))
                seal(beside)


def _write(path: Path, content: bytes, effort: int = 6) -> None:
    with replacing(path) as beside:
        beside.write_bytes(lzma.compress(content, preset=effort))


def _read(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes())


KIND = "whyrank parm"
_RUN, _TEXTS, _ARRAYS = "parm.json", "texts.json.xz", "arrays.npz.xz"
_REMEDY = "make the folder again with `whyrank tables learn parm --prepare FOLDER`"
_BROKEN = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, lzma.LZMAError, zlib.error)
BUNDLED = Path(__file__).resolve().parents[1] / "data" / "models" / "bundled"  # need not travel: the package has it


class Occlusion(NamedTuple):
    """Alignments that were found by leaving words out: values of the words of query and text, pair after pair.

    `ends` holds 0 and the end of each pair in `values`, in the order of the table of candidates.
    """

    values: npt.NDArray[np.float32]
    ends: npt.NDArray[np.int64]


class ParmPrepared(NamedTuple):
    """All that training needs.

    Attributes:
        recipe: what is trained, and how.
        queries: texts of the queries.
        docs: texts of the candidates.
        doc: numbers of the candidates of each query.
        scores: the target's; None where the target is asked when training starts.
        terms: the terms of queries and texts.
        sources: what the network starts from; the target's model, where it travels, is its teacher.
        facts: what the network will tell: target, alignment, analyzer, collections.
        occlusion: alignments, where they are found beforehand.
    """

    recipe: Recipe
    queries: Sequence[str]
    docs: Sequence[str]
    doc: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32] | None
    terms: Terms
    sources: Sources
    facts: Mapping[str, Any]
    occlusion: Occlusion | None = None

    def identity(self, seed: int) -> str:
        """A digest of all that the result depends on: two runs that share it are the same run."""
        recipe = {name: value for name, value in self.recipe.as_dict().items() if name != "seeds"}
        digest = hashlib.sha256(json.dumps([recipe, dict(self.facts), seed], sort_keys=True, default=str).encode())
        for texts in (self.queries, self.docs, self.terms.names):
            digest.update(hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).digest())
        for array in self._arrays().values():
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]

    def candidates(self, scores: npt.NDArray[np.float32]) -> Candidates:
        """The candidates with the target's scores."""
        return Candidates(self.doc, scores)

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        found = {"doc": self.doc, **plain(self.terms)}
        found |= {} if self.scores is None else {"scores": self.scores}
        other = self.occlusion
        return found | ({} if other is None else {f"occlusion_{name}": a for name, a in other._asdict().items()})


def is_parm(folder: Path) -> bool:
    """Whether a folder holds a prepared run of PaRM."""
    return (folder / _RUN).is_file()


def check_place(folder: Path, bits: int = 32) -> None:
    """Raise an error where nothing can be prepared, before anything is."""
    check_bits(bits)
    if folder.is_dir() and any(folder.iterdir()) and not is_parm(folder):
        raise BadInput(folder, "is a folder with other things in it", "name a new one")


def save_parm(folder: Path, prepared: ParmPrepared, bits: int = 32, beside: Path | None = None) -> None:
    """Write all that training needs; what says that the folder is whole comes last.

    Args:
        folder: where to.
        prepared: what to write.
        bits: of the models' weights; fewer are smaller and less exact.
        beside: another prepared folder for the same texts, whose texts, candidates and encoder are used.
    """
    check_place(folder, bits)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _RUN).unlink(missing_ok=True)
    told: dict[str, Any] = {"kind": KIND, "recipe": prepared.recipe.as_dict(), "facts": dict(prepared.facts)}
    if beside is None:
        _save_all(folder, prepared, bits)
    else:
        _check_same(prepared, beside)
        told |= {"beside": os.path.relpath(beside, folder)}
    starts, asks = prepared.sources.encoder, prepared.sources.teachers
    if beside is not None and not asks:  # the encoder that lies there may be another one
        asks = [starts] if starts is not None else []
    told |= {"bundled": _is_bundled(*asks), "from_bundled": _is_bundled(starts)}
    write_text(folder / _RUN, sealed_json(told, indent=1, default=str))


def load_parm(folder: Path) -> ParmPrepared:
    """Read what `save_parm` wrote."""
    try:
        told = read_sealed_json(folder / _RUN, _REMEDY)
        place = folder / told["beside"] if "beside" in told else folder
        texts, found = read_values(place / _TEXTS), read_arrays(place / _ARRAYS)
        widen(place)
        sources = _sources(load_sources(place), told)
        terms = Terms(texts["terms"], **_named(found, "terms_"))
        other = Occlusion(**_named(found, "occlusion_")) if "occlusion_values" in found else None
        return ParmPrepared(
            recipe_of(told["recipe"]), texts["queries"], texts["docs"], found["doc"], found.get("scores"), terms,
            sources, told["facts"], other,
        )  # fmt: skip
    except _BROKEN as error:
        raise BadInput(folder, f"cannot be read ({type(error).__name__}: {error})", _REMEDY) from None


def _save_all(folder: Path, prepared: ParmPrepared, bits: int) -> None:
    texts = {"queries": list(prepared.queries), "docs": list(prepared.docs), "terms": list(prepared.terms.names)}
    write_values(folder / _TEXTS, texts)
    write_arrays(folder / _ARRAYS, prepared._arrays())
    for old in folder.rglob("*.safetensors*"):
        old.unlink()
    given = prepared.sources
    travelling = [teacher for teacher in given.teachers if not _is_bundled(teacher)]
    encoder = None if _is_bundled(given.encoder) else given.encoder
    save_sources(folder, replace(given, encoder=encoder, teachers=travelling))
    narrow(folder, bits)
    list_sources(folder)


def _sources(kept: Sources, told: Mapping[str, Any]) -> Sources:
    """What lies in the folder, and the bundled model where the run starts from it or asks it.

    A run that starts from the bundled model asks the encoder that lies there, if there is no other model to ask.
    """
    theirs = [] if "beside" in told else kept.teachers  # those of another run are not asked
    teachers = [BUNDLED] if told["bundled"] else theirs
    if not told["from_bundled"]:
        return replace(kept, teachers=teachers)
    asked = [kept.encoder] if kept.encoder is not None and not teachers else teachers
    return replace(kept, encoder=BUNDLED, teachers=asked)


def _is_bundled(*folders: Path | None) -> bool:
    return any(folder is not None and folder.resolve() == BUNDLED for folder in folders)


def _check_same(prepared: ParmPrepared, beside: Path) -> None:
    """Raise an error unless another prepared folder has the same texts and candidates, and nothing is lacking."""
    texts, arrays, mine = read_values(beside / _TEXTS), read_arrays(beside / _ARRAYS), prepared._arrays()
    same = texts["queries"] == list(prepared.queries) and texts["docs"] == list(prepared.docs)
    same = same and arrays.keys() == mine.keys() and all(np.array_equal(arrays[name], mine[name]) for name in mine)
    travelling = [teacher for teacher in prepared.sources.teachers if not _is_bundled(teacher)]
    if not same or travelling or not _starts_alike(prepared, beside):
        what = "has other texts, another encoder, or scores of another target"
        raise BadInput(beside, what, "prepare this run on its own")


def _starts_alike(prepared: ParmPrepared, beside: Path) -> bool:
    """Whether a run can start from what lies in another prepared folder, or starts from the bundled model."""
    theirs = json.loads((beside / _RUN).read_text(encoding="utf-8"))["recipe"].get("encoder", "")
    alike = _is_bundled(prepared.sources.encoder) or theirs == prepared.recipe.as_dict().get("encoder", "")
    return alike and prepared.sources.tokenizer == load_sources(beside).tokenizer


def _named(found: Mapping[str, npt.NDArray[Any]], prefix: str) -> dict[str, npt.NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in found.items() if name.startswith(prefix)}
