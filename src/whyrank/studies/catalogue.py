"""Probes, axioms and bias studies as one catalogue: studies by name, whatever kind they are of."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import whyrank
from whyrank.core import Registry, Study, UnknownName, WhyrankError, parse_call
from whyrank.data import Collection, first_stage

Options = Mapping[str, Any]
COMPAT = {  # modes, and the studies that they are for
    "abnirml": "probes",
    "camara-hauff": "axioms",
    "relevance-thesaurus": "bias_studies",
}
UNJUDGED = 100  # documents of each query, where nothing is judged
DEMO_TOLERANCE = "10%"  # the sample is small, so texts count as matched within it
DEMO_BIAS = ("bias/car-brand",)  # elsewhere on request: its search for texts with a value reads every text


class Catalogue:
    """The studies of some registries."""

    def __init__(self, *registries: Registry[Any]) -> None:
        """Search the registries in this order."""
        self.registries = registries
        self.one = " or ".join(registry.one for registry in registries)

    def names(self) -> list[str]:
        """All names, one registry after the other."""
        return [name for registry in self.registries for name in registry.names()]

    def match(self, pattern: str) -> list[str]:
        """The names that a shell pattern matches, or a call string (what has a bracket) itself."""
        if "(" in pattern:
            return [pattern]
        found: list[str] = []
        for registry in self.registries:
            with suppress(UnknownName):
                found += registry.match(pattern)
        if not found:
            raise UnknownName(self.one, pattern, self.names())
        return found

    def home(self, text: str) -> Registry[Any]:
        """The registry that has the study of a name or call string."""
        name = parse_call(text).name
        for registry in self.registries:
            if name in registry:
                return registry
        raise UnknownName(self.one, name, self.names())

    def make(
        self, texts: Sequence[str], options: Options, by_kind: Mapping[str, Options] | None = None
    ) -> dict[str, Study]:
        """The studies of some names or call strings.

        Options fill what a study accepts, those in `by_kind` only for one kind of study; the option `compat` goes to
        the kind that it is for.
        """
        homes = {text: self.home(text) for text in texts}
        others, compat = {name: value for name, value in options.items() if name != "compat"}, options.get("compat")
        if compat is not None:
            words = {mode: kind.replace("_", " ") for mode, kind in COMPAT.items()}
            if compat not in words:
                known = ", ".join(f"{mode!r} ({kind})" for mode, kind in words.items())
                raise WhyrankError(f"unknown compat mode {compat!r}; there are {known}")
            if homes and COMPAT[compat] not in {registry.kind for registry in homes.values()}:
                raise WhyrankError(f"compat mode {compat!r} is for {words[compat]}, and none of them is requested")
        found = {}
        for text, registry in homes.items():
            meant = others if compat is None or COMPAT[compat] != registry.kind else options
            found[text] = registry.create(text, **{**meant, **(by_kind or {}).get(registry.kind, {})})
        return found


def probes_and_axioms() -> Catalogue:
    """All probes and axioms."""
    from whyrank.studies.axioms import axioms
    from whyrank.studies.probes import probes

    return Catalogue(probes, axioms)


def all_studies() -> Catalogue:
    """All probes, axioms and bias studies: whatever has contrasts."""
    from whyrank.studies.bias import bias_studies

    return Catalogue(*probes_and_axioms().registries, bias_studies)


def unjudged_options(collection: Collection, run: str | None = None) -> dict[str, Options]:
    """Where nothing is judged but there is a run, axioms and probes take its first hundred documents."""
    if collection.qrels or not (run or collection.runs):
        return {}
    name = run or first_stage(collection)
    options = {"pairs": f"top:{UNJUDGED}"} | ({"candidates": name} if name else {})
    return {"axioms": options, "probes": options}


def usual_studies(collection: str) -> list[str]:
    """Patterns for what is asked where nothing is named: all probes and axioms, and on the sample a bias study."""
    families = dict.fromkeys("".join(name.partition("/")[:2]) + "*" for name in probes_and_axioms().names())
    return [*families, *(DEMO_BIAS if collection == "sample" else ())]


def limit_options(limit: int | None) -> dict[str, Options]:
    """A limit per study as an option of bias studies, by kind of study: at most so many templates."""
    return {} if limit is None else {"bias_studies": {"most": limit}}


# Studies of one's own, whose faults are the author's to correct.


def is_own(study: Study) -> bool:
    """Whether a study, or something that it is made of, such as an edit, is not ours."""
    parts: tuple[Any, ...] = (type(study), *getattr(study, "made_of", ()))
    return not all(part.__module__.startswith("whyrank.") for part in parts)


@contextmanager
def faults_of(name: str, study: Study) -> Iterator[None]:
    """Whatever a study that is not ours raises, as one line that names the study, the method and the line of code."""
    try:
        yield
    except WhyrankError as error:
        if type(error) is not WhyrankError or not is_own(study) or name in str(error):
            raise
        raise WhyrankError(f"study {name!r}: {error}") from error
    except Exception as error:
        if not is_own(study):
            raise
        ours = str(Path(whyrank.__file__).parent)
        frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith(ours)]
        why = " ".join(f"{type(error).__name__}: {error}".split())
        where = f" in {frames[-1].name}() at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        raise WhyrankError(f"study {name!r} fails{where}: {why}") from error
