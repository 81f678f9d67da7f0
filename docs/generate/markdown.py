"""Docstrings as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"([\\*<>\[\]]|(?<!\w)_|_(?!\w))")


def prose(text: str) -> str:
    """Text on one line whose special characters Markdown leaves alone; code stays as it is."""
    parts = _CODE.split(re.sub(r"\s+", " ", text))
    return "".join(part if part.startswith("`") else _SPECIAL.sub(r"\\\1", part) for part in parts)


def paragraphs(text: str) -> str:
    """The paragraphs of a docstring; a table, and an example that is indented or has prompts, stay as they are."""
    blocks = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if block.startswith("|"):
            blocks.append(block)
        elif block.lstrip().startswith(">>>"):
            lines = [line.strip() for line in re.sub(r" *# doctest:.*", "", block).splitlines()]
            blocks.append("\n".join(["```pycon", *lines, "```"]))
        elif block.startswith("    "):
            blocks.append("\n".join(["```text", *(line[4:] for line in block.splitlines()), "```"]))
        else:
            blocks.append(prose(block))
    return "\n\n".join(blocks)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are Markdown already."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    """Text as code; nothing where there is none."""
    return f"`{text}`" if text else ""
