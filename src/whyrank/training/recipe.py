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
from dataclasses import field, fields
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, SkipValidation

from whyrank.core import BadInput, Share, UnknownName, Whole, WhyrankError, check
from whyrank.networks import networks
from whyrank.training.schedule import Name, Names, Part, Schedule, check_keys, checked, part_of
from whyrank.training.validation import Measure

FOLDER = Path(__file__).parent / "recipes"
TREES = "ltr"
_TREES_TAKE = ("architecture", "data", "settings", "seeds")
Numbers = Annotated[Sequence[int], Field(min_length=1)]


@checked
class JudgedData:
    """The `data` of a recipe: collections with judgements, or a file of triples.

    Attributes:
        collection: one or several, whose queries are learned from, with their texts judged relevant as positives.
        negatives: `random`, 100 texts drawn for each query; `judged`, its texts judged not relevant; or a run, whose
            texts that are not relevant are taken.
        n: negatives of each query and epoch, beside one positive.
        relevant: the lowest grade of a positive; the collection's own by default.
        triples: a TSV file instead: query, positive, negative, and perhaps a teacher's scores of the two.
        limit: the first so many queries or triples.
    """

    collection: Names = field(default_factory=list)
    negatives: Name = "random"
    n: PositiveInt = 1
    relevant: NonNegativeInt | None = None
    triples: Name | None = None
    limit: PositiveInt | None = None

    def __post_init__(self) -> None:
        if not self.collection and self.triples is None:
            raise WhyrankError("name a collection, or a file of triples, to learn from")
        if self.collection and self.triples is not None:
            raise WhyrankError("name a collection or a file of triples, not both; leave one of them empty")


@checked
class TaughtData:
    """The `data` of a recipe with teachers: what is distilled from bi-encoders.

    Attributes:
        teachers: bi-encoders with their shares; the target of a text is the weighted sum of their cosines.
        collection: one or several, whose queries with a relevant text are learned from.
        cut: so many made-up queries cut from each text of a collection, by its name.
        without: collections held back, no query or text of which is learned from.
        candidates: texts of each query and epoch beside its own: of the teachers' first ten, of their next ones up to
            `depth`, and at random.
        depth: how far down the teachers' lists candidates are taken.
        lexical: so many candidates more, of the first sixty of BM25.
        limit: the first so many queries.
    """

    teachers: Mapping[str, PositiveFloat]
    collection: Names = field(default_factory=list)
    cut: Mapping[str, PositiveInt] = field(default_factory=dict)
    without: Names = field(default_factory=list)
    candidates: Annotated[Sequence[NonNegativeInt], Field(min_length=3, max_length=3)] = (4, 4, 1)
    depth: PositiveInt = 100
    lexical: NonNegativeInt = 0
    limit: PositiveInt | None = None

    def __post_init__(self) -> None:
        if not self.teachers:
            raise WhyrankError("teachers: name bi-encoders with their shares, such as {NAME: 1}")
        if not self.collection and not self.cut:
            raise WhyrankError("name collections to learn from (collection), or to cut queries from (cut)")
        if not any(self.candidates):
            raise WhyrankError("candidates must not be all 0: of the teachers' first ten, of their next, at random")


@checked
class ValidationData:
    """The `validation` of a recipe: judged candidates.

    Attributes:
        collection: a collection with judgements.
        run: the run whose candidates are ranked; by default its BM25 run, or its only one.
        measure: `nDCG@10`, `RR@10`, `RR(rel=2)@10`, or the same at another rank.
        depth: candidates of each query.
        limit: so many queries.
    """

    collection: Name
    run: Name | None = None
    measure: Name = "nDCG@10"
    depth: PositiveInt = 100
    limit: PositiveInt | None = None

    def __post_init__(self) -> None:
        Measure.of(self.measure)


@checked
class Pretraining:
    """How an encoder is pre-trained before it learns to rank.

    Attributes:
        collection: whose texts it learns from.
        limit: so many of them, drawn.
        epochs: passes over the texts.
        batch: texts per step.
        rate: learning rate; it grows over the first tenth of the steps and then falls to zero.
        length: tokens of a text that are read.
        masked: share of the tokens that are hidden.
        pairs: whether it also learns which halves belong together.
        max_steps: stop after so many steps; None for all.
        checkpoint_every: steps between two checkpoints.
    """

    collection: Name
    limit: PositiveInt | None = None
    epochs: PositiveInt = 1
    batch: PositiveInt = 32
    rate: PositiveFloat = 5e-5
    length: PositiveInt = 128
    masked: Annotated[float, Field(gt=0, lt=1)] = 0.15
    pairs: bool = True
    max_steps: PositiveInt | None = None
    checkpoint_every: PositiveInt = 500


@checked
class Recipe:
    """What is trained, from what, on what, and how.

    Attributes:
        architecture: a network, or `ltr` for a tree ensemble over lexical features.
        encoder: where the encoder comes from: a hub id, a folder, `package:NAME` (an installed package with a
            `MODEL_DIR`), or a mapping with the settings of a new one. Networks over word vectors take a file of
            vectors, or `collection` (the default) or a mapping of GloVe's settings to train them on the collection.
        tokenizer: where the tokens come from, when that is not the encoder's folder; `collection` builds a
            WordPiece vocabulary from the collection's texts, `collection(size=4000)` of so many tokens.
        layers: the layers of the encoder that are kept; all of them by default.
        dropout: in the encoder and in the head, instead of what they would have.
        settings: arguments of the architecture.
        data: the keys of `JudgedData`; with `teachers`, those of `TaughtData`; with phases, those of PaRM.
        loss: call string of a loss.
        schedule: arguments of `Schedule`.
        validation: candidates to validate on, as `ValidationData`.
        pretraining: masked language model and next sentences on a collection before ranking, as `Pretraining`.
        phases: of a learner that trains in several, such as `whyrank tables learn parm`, which checks them.
        seeds: one network is trained for each.
    """

    architecture: str
    encoder: SkipValidation[str | Mapping[str, Any]] = ""
    tokenizer: str = ""
    layers: Numbers | None = None
    dropout: SkipValidation[float | None] = None
    settings: Part = field(default_factory=dict)
    data: Part = field(default_factory=dict)
    loss: str = "margin"
    schedule: Part = field(default_factory=dict)
    validation: Part = field(default_factory=dict)
    pretraining: Part = field(default_factory=dict)
    phases: Part = field(default_factory=dict)
    seeds: Numbers = (0,)

    def __post_init__(self) -> None:
        if isinstance(self.data, Mapping):  # a key without a value is none, so that `data.collection=` takes it away
            object.__setattr__(self, "data", {key: value for key, value in self.data.items() if value is not None})
        known = [*networks.names(), TREES]
        if self.architecture not in known:
            raise UnknownName("architecture", str(self.architecture), known)
        if not isinstance(self.encoder, str | Mapping):
            raise WhyrankError(f"encoder must be a name, a folder or a mapping, not {self.encoder!r}")
        check("dropout", self.dropout, Share | None)  # 0 stays 0: not 0.0 in identities
        check_keys("settings", self.settings, None)
        for name in ("max_query", "max_doc"):
            check(f"settings: {name}", self.settings.get(name, 1), Whole)
        if self.phases:  # whose learner checks them, and the data for them
            check_keys("phases", self.phases, None)
            check_keys("data", self.data, None)
        else:
            taught = isinstance(self.data, Mapping) and "teachers" in self.data
            part_of("data", TaughtData if taught else JudgedData, self.data)
        if self.validation != {}:
            part_of("validation", ValidationData, self.validation)
        if self.pretraining != {}:
            part_of("pretraining", Pretraining, self.pretraining)
        part_of("schedule", Schedule, self.schedule, without="seed")
        if self.architecture == TREES:
            others = [each.name for each in fields(self) if each.name not in _TREES_TAKE]
            plain = Recipe("cross", data=self.data)
            if given := [name for name in others if getattr(self, name) != getattr(plain, name)]:
                raise WhyrankError(f"{given[0]}: {TREES!r} takes {', '.join(_TREES_TAKE)} only")

    def schedule_for(self, seed: int) -> Schedule:
        """The schedule with a seed."""
        return Schedule(**{**self.schedule, "seed": seed})

    def as_dict(self) -> dict[str, Any]:
        """The recipe as plain values."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def recipe_of(content: Mapping[str, Any]) -> Recipe:
    """A recipe from plain values; a key that is unknown is an error."""
    check_keys("the recipe", content, [each.name for each in fields(Recipe)])
    return Recipe(**content)


def bundled_recipes() -> list[str]:
    """The names of the bundled recipes."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read_recipe(name: str, changes: Sequence[str] = ()) -> Recipe:
    """A recipe by the name of a bundled one, or from a YAML file.

    Each of the `changes` replaces one of its values: `schedule.epochs=2`, `data.collection=PATH`.
    """
    from whyrank.data import YAML_ERRORS, problem_of, read_yaml

    path = FOLDER / f"{name}.yaml"
    if "/" in name or not path.exists():
        path = Path(name).expanduser()
        if not path.is_file():
            if "/" not in name and not path.suffix:
                raise UnknownName("recipe", name, bundled_recipes())
            remedy = f"give a YAML file or one of {', '.join(bundled_recipes())}"
            raise BadInput(path, "there is no such recipe", remedy)
    try:
        content = read_yaml(path)
    except YAML_ERRORS as error:
        what, line = problem_of(error)
        raise BadInput(path, f"is not YAML ({what})", "mend it", line=line) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(path, f"cannot be read ({error})", "give a YAML file") from None
    if not isinstance(content, dict) or "architecture" not in content:
        what = "is no recipe: the key 'architecture' is missing"
        raise BadInput(path, what, "see the recipes in the documentation")
    try:
        recipe = recipe_of(content)
    except WhyrankError as error:
        raise BadInput(path, str(error)) from None
    return _changed(recipe, changes) if changes else recipe


def _changed(recipe: Recipe, changes: Sequence[str]) -> Recipe:
    from whyrank.data import YAML_ERRORS, parse_yaml

    content = recipe.as_dict()
    for change in changes:
        path, equals, text = change.partition("=")
        *outer, last = path.strip().split(".")
        if not equals or not path.strip():
            raise WhyrankError(f"--set {change}: write KEY=VALUE, such as schedule.epochs=2")
        part = content
        for key in outer:
            old = part.get(key)
            if old and not isinstance(old, Mapping):
                raise WhyrankError(f"--set {change}: {old!r} has no keys; set it as a whole")
            inner = part[key] = dict(old or {})  # a copy: the recipe stays as it is
            part = inner
        try:
            part[last] = parse_yaml(text)
        except YAML_ERRORS:
            raise WhyrankError(f"--set {change}: {text!r} is no value in YAML; put it in quotes") from None
    return recipe_of(content)
