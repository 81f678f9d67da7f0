"""Pages that are made when the site is built: the reference from docstrings and registries, and copies."""

from __future__ import annotations

import os
import re
from pathlib import Path

from generate.api import api_page, authors_page
from generate.axioms import axioms_page
from generate.catalogue import catalogue_pages
from generate.commands import commands_page
from generate.modules import modules_page

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"(```.*?^```$)|\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]+)?\)", re.MULTILINE | re.DOTALL)


def reference_pages() -> dict[str, str]:
    """The pages of the folder `reference` that are made, by their names."""
    made = {"commands": commands_page(), "axioms": axioms_page(), "modules": modules_page()}
    made |= {"api": api_page(), "authors": authors_page()}
    return {f"reference/{name}.md": page for name, page in (made | catalogue_pages()).items()}


def copies() -> dict[str, str]:
    """The pages outside the folder of the documentation that the site shows too, and their places in it."""
    experiments = [path.relative_to(ROOT).as_posix() for path in (ROOT / "experiments").rglob("*.md")]
    shown = {name: f"experiments/{Path(name).name}" for name in experiments}
    shown |= dict.fromkeys(("experiments", "experiments/README.md"), "experiments/index.md")
    return shown | {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}


def generated_pages() -> dict[str, str]:
    """All pages that are made, by their places in the folder of the documentation."""
    shown = {source: place for source, place in copies().items() if source not in ("README.md", "experiments")}
    texts = {
        place: relink((ROOT / source).read_text(encoding="utf-8"), source, f"docs/{place}")
        for source, place in shown.items()
    }
    texts["experiments/index.md"] += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"
    return reference_pages() | texts


def relink(text: str, source: str, place: str) -> str:
    """The text of a page with its relative links as they must be at another place.

    A link to a page that the site shows leads there; one to a folder or to a page that it does not show is left out.
    """
    shown = copies()

    def moved(link: re.Match[str]) -> str:
        code, words, target, heading = link.groups()
        if code or re.match("[a-z]+:", target):
            return link[0]
        path = os.path.normpath(os.path.join(os.path.dirname(source), target))
        path = f"docs/{shown[path]}" if path in shown else path
        if (ROOT / path).is_dir() or (path.endswith(".md") and not path.startswith("docs/")):
            return words
        return f"[{words}]({os.path.relpath(path, os.path.dirname(place))}{heading or ''})"

    return _LINK.sub(moved, text)
