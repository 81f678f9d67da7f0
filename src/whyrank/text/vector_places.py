"""Where word vectors are: a file, a folder that holds them, or an installed package."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

from whyrank.core.errors import BadInput

_REMEDY = (
    "give a GloVe or word2vec text file, a .npy matrix with its words in NAME.words.txt, a JSON file with vectors, "
    "or a folder or installed package with one of these"
)
_INNER = ("", "data", "package")  # where packages put them
_TEXTS = ("*.vec", "*.vec.gz", "glove*.txt", "glove*.txt.gz")


def find_vectors(spec: str) -> Path:
    """The file that holds the vectors, with an absolute path."""
    given = Path(spec).expanduser()
    found = given if given.exists() else _package(spec)
    if found is None:
        raise BadInput(spec, "no such file, folder or installed package of word vectors", _REMEDY)
    return (_in_folder(found) if found.is_dir() else found).resolve()


def _package(name: str) -> Path | None:
    """The folder of an installed package, which is not imported."""
    found = find_spec(name) if name.isidentifier() else None
    places = list(found.submodule_search_locations or []) if found is not None else []
    return Path(places[0]) if places else None


def _in_folder(folder: Path) -> Path:
    for place in (folder / inner for inner in _INNER):
        found = sorted(place.glob("*.npy")) or _main_file(place)
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise BadInput(place, f"several files of word vectors ({names})", "name one of them")
        if found:
            return found[0]
    raise BadInput(folder, "no word vectors in this folder", _REMEDY)


def _main_file(folder: Path) -> list[Path]:
    """What the package.json of an npm package calls its main file, else the text files of vectors."""
    try:
        main = folder / json.loads((folder / "package.json").read_bytes())["main"]
    except (OSError, ValueError, KeyError, TypeError):
        return sorted(path for pattern in _TEXTS for path in folder.glob(pattern))
    return [main] if main.is_file() else []
