"""The page of modules: every module once, from the lowest room up, with the first line of its docstring."""

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def modules_page() -> str:
    """The page in Markdown."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    rooms = [room.strip() for layer in reversed(contracts[0]["layers"]) for room in layer.split("|")]
    lines = [
        "# Modules",
        "",
        "Every module once, the lowest room first. A module imports from its own room and from rooms above it here.",
    ]
    for room in (ROOT / "src" / room.replace(".", "/") for room in rooms):
        modules = [path for path in sorted(room.rglob("*.py")) if path.name != "__init__.py"]
        lines += [
            "",
            f"## {room.name}",
            "",
            first_line(room / "__init__.py"),
            "",
            "| module | what is in it |",
            "| --- | --- |",
        ]
        lines += [f"| `{path.relative_to(room.parent)}` | {first_line(path)} |" for path in modules]
    return "\n".join(lines) + "\n"


def first_line(path: Path) -> str:
    """The first line of a module's docstring."""
    return (
        (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0].replace("|", "\\|")
    )
