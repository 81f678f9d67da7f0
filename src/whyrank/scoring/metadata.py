"""What a run file says of itself, in the words of ir_metadata (ir-metadata.org): platform, method, data and more."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import whyrank
from whyrank.data import Collection

_PACKAGES = ("numpy", "scipy", "numba", "ir-measures")


def run_metadata(
    tag: str, collection: Collection, method: str = "", reranks: str | None = None, command: Sequence[str] = ()
) -> dict[str, Any]:
    """The metadata of a run, for `write_run`; the actor and the research goal are left to their owner.

    Args:
        tag: the tag of the run.
        collection: what was searched.
        method: how it was ranked; the `repr` of a ranker is its identity.
        reranks: the run whose documents were ranked anew.
        command: the command line that made it.

    Example:
        >>> import whyrank
        >>> run_metadata("bm25", whyrank.open_collection("sample"))["data"]
        {'test collection': {'name': 'sample', 'queries': 40, 'documents': 500}}
    """
    stage = {"name": tag, **({"method": method} if method else {}), **({"reranks": reranks} if reranks else {})}
    sizes = {"queries": len(collection.queries), "documents": len(collection.docs)}
    return {
        "schema version": "0.2",
        "tag": tag,
        "platform": {
            "hardware": {"cpu": {"architecture": platform.machine(), "number of cores": os.cpu_count()}},
            "operating system": {"kernel": f"{platform.system()} {platform.release()}"},
            "software": {
                "libraries": {"python": [f"{package}=={version(package)}" for package in _PACKAGES]},
                "retrieval toolkit": [f"whyrank=={whyrank.__version__}"],
            },
        },
        "research goal": {},
        "implementation": {
            **({"executable": {"cmd": shlex.join(command)}} if command else {}),
            "source": {"lang": f"python {platform.python_version()}"},
        },
        "method": {"automatic": True, "score ties": "document id, descending", "retrieval": [stage]},
        "actor": {},
        "data": {"test collection": {"name": collection.name, **sizes}},
    }
