"""Folders of models: where they are, what they lack, and a digest of all that decides their scores."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from whyrank.core import BadInput, MissingExtra, WhyrankError, near_folder, nearest

NETWORK = "whyrank network"
_HUB_ID = re.compile(r"(?P<id>[A-Za-z0-9][\w.-]*/[\w.-]+)(@(?P<revision>[\w./-]+))?")
_DECISIVE = ("*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "artifact.metadata")
_OF_NETWORKS = ("config.json", "model.safetensors", "tokenizer.json")
_IGNORED = ("onnx/*", "openvino/*", "*/onnx/*", "*/openvino/*", "checkpoint-*/*")
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
_REMEDY = "give a model folder, or a hub id such as ORG/NAME or ORG/NAME@REVISION"


def model_folder(resource: str) -> Path:
    """The folder of a model: the bundled one, a folder, or the copy of what the hub has under an id."""
    if resource == "bundled":
        from whyrank import data

        folder = Path(str(data.__file__)).parent / "models" / "bundled"
        if not folder.is_dir():
            raise WhyrankError(f"ranker 'cross:bundled': this installation has no bundled model; {_REMEDY}")
        return folder
    path = Path(resource).expanduser()
    if path.is_dir():
        return path
    hub = _HUB_ID.fullmatch(resource)
    if path.exists() or not hub:
        what = "is a file, not a model folder" if path.exists() else "there is no such model folder"
        raise BadInput(resource, what, _meant(resource) or _REMEDY)
    return _from_hub(resource, hub["id"], hub["revision"])


def check_folder(folder: Path) -> None:
    """Raise an error unless the folder has weights as safetensors everywhere, and a tokenizer."""
    for file in sorted(_found(folder, ("pytorch_model*.bin", "*.pt", "*.ckpt"))):
        if not any(file.parent.glob("*.safetensors")):
            raise BadInput(file, "is not in safetensors form, the only one that is read", "convert the model first")
    if not _found(folder, ("*.safetensors",)):
        raise BadInput(folder, "has no weights in safetensors form", _REMEDY)
    if not _found(folder, _TOKENIZERS):
        raise BadInput(folder, "has no tokenizer", "copy the tokenizer.json of the model into it")


def digest_of(folder: Path) -> str:
    """SHA-256 (16 hex digits) over weights, configuration and tokenizer; a file that did not change is read once."""
    found = sha256()
    for file in sorted(_found(folder, _DECISIVE if architecture_of(folder) is None else _OF_NETWORKS)):
        facts = file.stat()
        found.update(file.relative_to(folder).as_posix().encode("utf-8", "surrogateescape"))
        found.update(_file_digest(str(file.resolve()), facts.st_size, facts.st_mtime_ns))
    return found.hexdigest()[:16]


def architecture_of(folder: Path) -> str | None:
    """The architecture of a network that was trained here; None for a model of another package."""
    config = config_of(folder)
    return str(config.get("architecture")) if config.get("kind") == NETWORK else None


def config_of(folder: Path, name: str = "config.json") -> dict[str, Any]:
    """A configuration file of a model folder; empty where there is none."""
    file = folder / name
    try:
        found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError) as error:
        raise BadInput(file, f"cannot be read ({error})", "copy the model again") from None
    return found if isinstance(found, dict) else {}


def _found(folder: Path, patterns: tuple[str, ...]) -> set[Path]:
    """Files of the folder and of the folders in it that match one of the patterns."""
    files = {file for pattern in patterns for file in (*folder.glob(pattern), *folder.glob(f"*/{pattern}"))}
    return {file for file in files if file.is_file() and not any(file.match(each) for each in _IGNORED)}


@lru_cache(maxsize=1024)
def _file_digest(path: str, size: int, modified: int) -> bytes:
    with open(path, "rb") as file:
        return file_digest(file, "sha256").digest()


def _from_hub(resource: str, name: str, revision: str | None) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise MissingExtra(f"the model {resource}", "models") from None
    allowed, ignored = list(_DECISIVE), list(_IGNORED)
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=allowed, ignore_patterns=ignored))
    except Exception as error:  # the package and what it is built on raise errors of many kinds
        reason = str(error).strip().splitlines() or [type(error).__name__]
        what = f"is no folder here, and the hub does not give a model of this name ({reason[0]})"
        remedy = _meant(resource) or "check the name and the network, or give a model folder"
        raise BadInput(resource, what, remedy) from None


def _meant(resource: str) -> str:
    """The bundled model or a folder with a name much like the given one."""
    folder = near_folder(Path(resource).expanduser())
    near = nearest(resource, ["bundled", *([str(folder)] if folder is not None and folder.is_dir() else [])], 1, 0.6)
    return f"did you mean {near[0]!r}?" if near else ""
