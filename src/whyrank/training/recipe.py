"""A recipe: all that a training run needs, as a YAML file.

architecture: vanilla
encoder: sentence-transformers/all-MiniLM-L6-v2   # a hub id, a folder, package:NAME, or settings of a new one
data: {collection: PATH, negatives: bm25.top100, n: 1}
loss: margin(margin=1)
schedule: {epochs: 3, rate: 2e-5, head_rate: 2e-4}
validation: {collection: PATH:dev, run: bm25.top100}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from whyrank.core import BadInput, UnknownName, WhyrankError, check_flag, check_number, check_whole
from whyrank.networks import networks
from whyrank.training.phases import check_keys, check_phases
from whyrank.training.schedule import Schedule
from whyrank.training.validation import Measure

# What the `data` of a recipe says of distillation, checked.

DRAWN = 3  # numbers of `candidates`: of the teachers' best, of their next best, at random


def check_teaching(data: Mapping[str, Any]) -> None:
    """Raise an error for a part that cannot be meant."""
    if not data.get("collection") and not data.get("cut"):
        raise WhyrankError("data: name collections to learn from (collection), or to cut queries from (cut)")
    for model, share in _mapping("teachers", data["teachers"]).items():
        check_number(f"data: teachers: {model}", share, 0, strict=True)
    for name, count in _mapping("cut", data.get("cut", {"": 1})).items():
        check_whole(f"data: cut: {name}", count, 1)
    check_whole("data: lexical", data.get("lexical", 0), 0)
    for key in ("collection", "without"):
        _check_names(key, data.get(key, []))
    _check_candidates(data.get("candidates", [1, 1, 1]))


def _mapping(key: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or not given or not all(isinstance(name, str) for name in given):
        raise WhyrankError(f"data: {key} must be names with numbers, such as {{NAME: 1}}, not {given!r}")
    return given


def _check_names(key: str, given: Any) -> None:
    several = [given] if isinstance(given, str) else given
    if not isinstance(several, list) or not all(isinstance(name, str) and name for name in several):
        raise WhyrankError(f"data: {key} must be a name or a list of names, not {given!r}")


def _check_candidates(given: Any) -> None:
    plain = isinstance(given, Sequence) and len(given) == DRAWN and all(type(n) is int and n >= 0 for n in given)
    if not plain or not any(given):
        what = "of the teachers' first ten, of their next ones, at random"
        raise WhyrankError(f"data: candidates must be three whole numbers ({what}), not {given!r}")


FOLDER = Path(__file__).parent / "recipes"
TREES = "ltr"
_DATA = ("collection", "negatives", "n", "relevant", "triples", "limit")
_TEACHING = ("collection", "teachers", "cut", "without", "candidates", "depth", "lexical", "limit")
_VALIDATION = ("collection", "run", "measure", "depth", "limit")
_PRETRAINING = ("collection", "limit", "epochs", "batch", "rate", "length", "masked", "pairs", "max_steps",
                "checkpoint_every")  # fmt: skip
_WHOLE = ("n", "limit", "depth", "epochs", "batch", "length", "max_steps", "checkpoint_every")
_TREES_TAKE = ("architecture", "data", "settings", "seeds")
_SEE = "see the recipes in the documentation"


@dataclass(frozen=True)
class Recipe:
    """What is trained, from what, on what, and how.

    Attributes:
        architecture: a network, or `ltr` for a tree ensemble over lexical features.
        encoder: where the encoder comes from: a hub id, a folder, `package:NAME` (an installed package with a
            `MODEL_DIR`), or a mapping with the settings of a new one. Networks over word vectors take a file of
            vectors, or `collection` (the default) or a mapping of GloVe's settings to train them on the collection.
        tokenizer: where the tokens come from, when that is not the encoder's folder; `collection` builds word pieces
            from the collection's texts, `collection(size=4000)` so many.
        layers: the layers of the encoder that are kept; all of them by default.
        dropout: in the encoder and in the head, instead of what they would have.
        settings: arguments of the architecture.
        data: the collections to learn from, and how examples are drawn; with `teachers`, what is distilled.
        loss: call string of a loss.
        schedule: arguments of `Schedule`.
        validation: candidates to validate on.
        pretraining: masked language model and next sentences on a collection before ranking.
        phases: the two phases of `whyrank tables learn parm`, see `parm_recipe`.
        seeds: one network is trained for each.
    """

    architecture: str
    encoder: str | Mapping[str, Any] = ""
    tokenizer: str = ""
    layers: Sequence[int] | None = None
    dropout: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    loss: str = "margin"
    schedule: Mapping[str, Any] = field(default_factory=dict)
    validation: Mapping[str, Any] = field(default_factory=dict)
    pretraining: Mapping[str, Any] = field(default_factory=dict)
    phases: Mapping[str, Any] = field(default_factory=dict)
    seeds: Sequence[int] = (0,)

    def __post_init__(self) -> None:
        if isinstance(self.data, Mapping):  # a key without a value is none, so that `data.collection=` takes it away
            object.__setattr__(self, "data", {key: value for key, value in self.data.items() if value is not None})
        known = [*networks.names(), TREES]
        if self.architecture not in known:
            raise UnknownName("architecture", str(self.architecture), known)
        for name in ("tokenizer", "loss"):
            if not isinstance(getattr(self, name), str):
                raise WhyrankError(f"{name} must be text, not {getattr(self, name)!r}")
        if not isinstance(self.encoder, str | Mapping):
            raise WhyrankError(f"encoder must be a name, a folder or a mapping, not {self.encoder!r}")
        _check_numbers("layers", self.layers if self.layers is not None else [0])
        _check_numbers("seeds", self.seeds)
        check_number("dropout", 0 if self.dropout is None else self.dropout, 0, 1)
        self._check_parts()
        self.schedule_for(0)
        if self.architecture == TREES:
            self._check_trees()

    def schedule_for(self, seed: int) -> Schedule:
        """The schedule with a seed."""
        return Schedule(**{**self.schedule, "seed": seed})

    def as_dict(self) -> dict[str, Any]:
        """The recipe as plain values."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def _check_parts(self) -> None:
        if self.phases:
            check_phases(self.phases, self.data)
        else:
            self._check_data()
        _check_part("validation", self.validation, _VALIDATION)
        _check_part("pretraining", self.pretraining, _PRETRAINING)
        check_keys("settings", self.settings, None)
        check_keys("schedule", self.schedule, [f.name for f in fields(Schedule) if f.name != "seed"])
        Measure.of(str(self.validation.get("measure", "nDCG@10")))
        for name in ("max_query", "max_doc"):
            check_whole(f"settings: {name}", self.settings.get(name, 1), 1)

    def _check_data(self) -> None:
        taught = isinstance(self.data, Mapping) and "teachers" in self.data
        _check_part("data", self.data, _TEACHING if taught else _DATA)
        if taught:
            check_teaching(self.data)
            return
        named = [key for key in ("collection", "triples") if key in self.data]
        if not named:
            raise WhyrankError("data: name a collection, or a file of triples, to learn from")
        if len(named) > 1:
            raise WhyrankError("data: name a collection or a file of triples, not both; leave one of them empty")

    def _check_trees(self) -> None:
        plain = Recipe("cross", data=self.data)
        others = [f.name for f in fields(self) if f.name not in _TREES_TAKE]
        if given := [name for name in others if getattr(self, name) != getattr(plain, name)]:
            raise WhyrankError(f"{given[0]}: {TREES!r} takes {', '.join(_TREES_TAKE)} only")


def read_recipe(name: str) -> Recipe:
    """A recipe by the name of a bundled one, or from a YAML file."""
    path = _path(name)
    content = _content(path)
    if not isinstance(content, dict) or "architecture" not in content:
        raise BadInput(path, "is no recipe: the key 'architecture' is missing", _SEE)
    try:
        return recipe_of(content)
    except WhyrankError as error:
        raise BadInput(path, str(error)) from None


def recipe_of(content: Mapping[str, Any]) -> Recipe:
    """A recipe from plain values; a key that is unknown is an error."""
    check_keys("the recipe", content, [f.name for f in fields(Recipe)])
    return Recipe(**content)


def bundled_recipes() -> list[str]:
    """The names of the bundled recipes."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def _path(name: str) -> Path:
    bundled = FOLDER / f"{name}.yaml"
    if "/" not in name and bundled.exists():
        return bundled
    path = Path(name).expanduser()
    if not path.is_file():
        if "/" not in name and not path.suffix:
            raise UnknownName("recipe", name, bundled_recipes())
        raise BadInput(path, "there is no such recipe", f"give a YAML file or one of {', '.join(bundled_recipes())}")
    return path


def _content(path: Path) -> Any:
    from whyrank.data import YAML_ERRORS, problem_of, read_yaml

    try:
        return read_yaml(path)
    except YAML_ERRORS as error:
        what, line = problem_of(error)
        raise BadInput(path, f"is not YAML ({what})", "mend it", line=line) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(path, f"cannot be read ({error})", "give a YAML file") from None


def _check_part(name: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    check_keys(name, given, known)
    for key in _WHOLE:
        if given.get(key) is not None:
            check_whole(f"{name}: {key}", given[key], 1)
    if "relevant" in given:
        check_whole(f"{name}: relevant", given["relevant"], 0)
    if "rate" in given:
        check_number(f"{name}: rate", given["rate"], 0, strict=True)
    if "masked" in given:
        check_number(f"{name}: masked", given["masked"], 0, 1, strict=True)
    if "pairs" in given:
        check_flag(f"{name}: pairs", given["pairs"])
    if given and name != "data" and not isinstance(given.get("collection"), str):
        raise WhyrankError(f"{name}: name a collection")


def _check_numbers(name: str, given: object) -> None:
    plain = isinstance(given, Sequence) and not isinstance(given, str)
    if not plain or not given or not all(type(number) is int for number in given):  # type: ignore[attr-defined]
        raise WhyrankError(f"{name} must be a list of whole numbers, not {given!r}")
