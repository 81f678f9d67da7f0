"""The documentation tells the truth: its examples run, print what they say, and its links lead somewhere.

A Python block runs when the line before it is `<!-- run -->`; a block after `<!-- prints -->` is what the block before
it prints. Classes named `Test...` in a block are contract tests, and run too.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import json
import os
import pty
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
import typer
import yaml

import whyrank
from whyrank.cli.app import app
from whyrank.cli.listing import registries
from whyrank.data import collections
from whyrank.data.pairs import pair_layouts
from whyrank.learners import table_learners
from whyrank.networks import networks
from whyrank.rankers import rankers
from whyrank.studies.axioms import axioms
from whyrank.studies.bias import bias_filters, bias_studies
from whyrank.studies.probes import probes, query_strategies
from whyrank.studies.probes.characteristics import characteristics
from whyrank.text import analyzers
from whyrank.text.edits import edits

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
generate = importlib.import_module("generate")
WRITTEN = ("index.md", "annotation.md", "command-line.md", "results.md")  # of the reference; all else in it is made
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(DOCS / name for name in ("index.md", "quickstart.md", "glossary.md", "architecture.md")),
    *sorted(page for folder in ("tutorials", "howto", "concepts", "extend") for page in (DOCS / folder).glob("*.md")),
    *(DOCS / "reference" / name for name in WRITTEN),
    *sorted((ROOT / "experiments").rglob("*.md")),
]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))
MANUAL = [page for page in PAGES if DOCS in page.parents]
SHORT = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *MANUAL]
COMMON = set(
    re.findall(r"\w+", "API CPU CSV CUDA GB GPU HTML IBM JSON JSONL ONNX PDF PNG SHA SSH SVG TLS TSV URL UTF")
)
STUDIES = (axioms, bias_filters, bias_studies, characteristics, edits, pair_layouts, probes, query_strategies)
REGISTRIES = (*STUDIES, analyzers, collections, networks, rankers, table_learners)
_BLOCK = re.compile(r"^<!-- (run|prints) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"^(<!-- not run -->\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TIME = re.compile(r"\d+ s\b(?: \([\d,]+ pairs/s\))?")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)|<(?:img|source)[^>]*?\bsrc(?:set)?=\"([^\"]+)\"")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


class Example(NamedTuple):
    """A block of code and what it prints, where the page says so."""

    name: str
    code: str
    prints: str | None


def examples() -> Iterator[Example]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = list(_BLOCK.finditer(text))
        for block, following in zip(blocks, [*blocks[1:], None], strict=False):
            if block[1] == "run":
                line = text.count("\n", 0, block.start()) + 1
                prints = following[2] if following and following[1] == "prints" else None
                yield Example(f"{page.relative_to(ROOT).as_posix()}:{line}", block[2], prints)


EXAMPLES = list(examples())


@pytest.fixture
def clean_registries() -> Iterator[None]:
    """What an example registers is forgotten after it."""
    before = {registry.kind: set(registry.names()) for registry in REGISTRIES}
    yield
    for registry in REGISTRIES:
        for name in set(registry.names()) - before[registry.kind]:
            registry.forget(name)


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
@pytest.mark.usefixtures("clean_registries")
def test_examples_run(example, tmp_path, monkeypatch, capsys):
    module = "docs_" + re.sub(r"\W", "_", example.name)
    (tmp_path / f"{module}.py").write_text(example.code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        made = importlib.import_module(module)
        for contract in (value for name, value in vars(made).items() if name.startswith("Test")):
            run_contract(contract)
    finally:
        sys.modules.pop(module, None)
    if example.prints is not None:
        assert capsys.readouterr().out.splitlines() == example.prints.splitlines()


def run_contract(contract: type) -> None:
    names = [name for name in dir(contract) if name.startswith("test_")]
    assert names
    for name in names:
        getattr(contract(), name)()


def test_what_an_author_adds_is_one_short_file():
    added = [example for example in EXAMPLES if example.name.startswith("docs/extend/")]
    assert len(added) >= 10
    assert all(len(example.code.splitlines()) < 30 for example in added)


def test_there_are_examples():
    pages = {example.name.split(":")[0] for example in EXAMPLES}
    assert {"README.md", "docs/extend/studies.md", "docs/reference/results.md"} <= pages


@functools.cache
def made() -> dict[Path, str]:
    """The pages that are made when the site is built, with their texts."""
    return {DOCS / name: text for name, text in generate.generated_pages().items()}


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_lead_somewhere(page):
    text = _FENCED.sub("", text_of(page))
    for found in _LINK.findall(text):
        target, _, part = "".join(found).partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists() or file in made(), f"{page.name} links to {target}, which does not exist"
        assert not part or part in anchors(file), f"{page.name}: {target} has no heading #{part}"


def text_of(page: Path) -> str:
    """The text of a page, one that is made included; of a notebook its Markdown cells."""
    if page.suffix == ".ipynb":
        cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
        return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return made()[page] if page.parent.name == "reference" and page in made() else page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    headings = _HEADING.findall(_FENCED.sub("", text_of(page)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", SHORT, ids=lambda page: page.name)
def test_a_page_is_short(page):
    assert len(page.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize(
    "page", [*SHORT, *NOTEBOOKS, *(ROOT / "experiments").glob("*.md")], ids=lambda page: page.name
)
def test_sentences_are_short(page):
    """At most thirty words from one full stop to the next, in a cell of a table too; headings and code do not count."""
    text = re.sub(r"^(?:#|!\[|:|<!--).*$", "\n", _FENCED.sub("\n\n", text_of(page)), flags=re.MULTILINE)
    text = re.sub(r"^\|.*$", lambda row: row[0].replace("|", "\n\n"), text, flags=re.MULTILINE)
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    sentences = [each for paragraph in paragraphs for each in re.split(r"(?<=[.!?])[*)]*\s+", paragraph)]
    assert [each for each in sentences if len(each.split()) > 30] == []


@pytest.mark.parametrize("page", [DOCS / "quickstart.md", *NOTEBOOKS], ids=lambda page: page.name)
def test_words_in_italics_are_in_the_glossary(page):
    known = set(
        re.findall(r"^- \*\*(.+?)\*\*:", (DOCS / "glossary.md").read_text(encoding="utf-8").lower(), re.MULTILINE)
    )
    words = re.findall(r"(?<!\*)\*(\w[^*]+)\*(?!\*)", _FENCED.sub("", text_of(page)).lower().replace("\n", " "))
    assert len(words) > 2
    assert [word for word in words if not {word, word[:-1], f"{word[:-3]}y"} & known] == ["italics"]


@pytest.mark.parametrize("page", [ROOT / "README.md", *MANUAL, *NOTEBOOKS], ids=lambda page: page.name)
def test_abbreviations_are_in_the_glossary(page):
    """But for those that everybody knows, names of axioms, and what stands in code, formulas and references."""
    text = re.split(r"^## (?:Read more|References)$", _FENCED.sub("", text_of(page)), flags=re.MULTILINE)[0]
    text = re.sub(r"`[^`]+`|\$\$.*?\$\$|\$[^$\n]+\$|\]\([^)]*\)", "", text, flags=re.DOTALL)
    known = set(re.findall(r"\w+", " ".join([(DOCS / "glossary.md").read_text(encoding="utf-8"), *axioms.names()])))
    assert sorted(set(re.findall(r"\b[A-Z]{2,}\b", text)) - known - COMMON) == []


@pytest.fixture
def newcomer(tmp_path: Path) -> dict[str, str]:
    """The environment of somebody who has whyrank on the path, and nothing in the cache."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "whyrank").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m whyrank.cli.main "$@"\n')
    (tmp_path / "bin" / "whyrank").chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "WHYRANK_CACHE": str(tmp_path / "cache")}


@pytest.mark.slow
def test_the_quickstart_runs_as_printed(tmp_path, newcomer):
    """A newcomer's path: eight commands at most; what the page quotes of their output is what they print."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", (DOCS / "quickstart.md").read_text(encoding="utf-8"), re.M | re.S)
    (_, install), *rest = blocks
    assert install.startswith("$ pip install ")
    assert len([kind for kind, _ in blocks if kind != "text"]) <= 8
    printed: list[list[str]] = []
    for kind, block in rest:
        if kind == "text":
            assert [line for line in block.splitlines() if line.split() not in printed] == []
            continue
        done = subprocess.run(
            ["bash", "-ec", block], cwd=tmp_path, env=newcomer, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        printed = [line.split() for line in done.stdout.splitlines()]
    assert (tmp_path / "report" / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in MANUAL if "\n$ whyrank" in page.read_text("utf-8")], ids=str)
def test_commands_print_what_the_page_shows(page, tmp_path, newcomer):
    """On a terminal of 108 columns, but for times; `...` stands for lines that the page leaves out.

    A block that begins with the name of a file in a comment is that file.
    """
    environment = {**newcomer, "WHYRANK_CACHE": str(tmp_path.parent / "cache")}
    for left_out, kind, block in _SHOWN.findall(page.read_text(encoding="utf-8")):
        if left_out:
            continue
        if named := re.match(r"# ([\w.]+\.(?:py|yaml))\n", block):
            (tmp_path / named[1]).write_text(block, encoding="utf-8")
        commands = re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
        for command, shown in commands if kind == "console" else [(block, "")] * (kind == "sh"):
            code, text = on_a_terminal(command, tmp_path, environment)
            assert code == 0, text
            printed = words_of(text)
            assert [part for part in f"\n{shown}".split("\n...") if words_of(part) not in printed] == [], command


@pytest.mark.slow
def test_the_picture_of_a_sweep_is_what_its_command_draws(tmp_path, newcomer):
    page = (DOCS / "concepts" / "statistics.md").read_text(encoding="utf-8")
    [command] = re.findall(r"`(whyrank audit [^`]*--sweep --out res)`", page)
    assert on_a_terminal(command, tmp_path, newcomer)[0] == 0
    written = [
        "".join(ElementTree.parse(path).getroot().itertext())
        for path in (tmp_path / "res" / "sweep.svg", DOCS / "images" / "sweep.svg")
    ]
    assert written[0] == written[1]
    assert "stable from 83" in written[0]


def on_a_terminal(command: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """The exit code of a command, and what it prints."""
    ours, theirs = pty.openpty()
    environment = {**environment, "COLUMNS": "108", "TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen(
        ["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ) as running:
        os.close(theirs)
        printed = b""
        with contextlib.suppress(OSError):  # the end of the last program on the terminal
            while part := os.read(ours, 65536):
                printed += part
        os.close(ours)
    return running.returncode, printed.decode("utf-8")


def words_of(text: str) -> str:
    """The words with single blanks between, without times, rules, progress and what steers a terminal."""
    text = re.sub(r"\x1b\[\?25l.*?\x1b\[\?25h", "", text, flags=re.DOTALL)  # progress hides the cursor
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]|─+", "", text)
    return " ".join(["", *_TIME.sub("TIME", text).split(), ""])


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == whyrank.__version__
    assert all(each["title"] and each["authors"] and each["year"] for each in citation["references"])


def test_the_citation_has_every_paper_that_a_docstring_names():
    """A title in quotes after its authors, and behind it a year or arXiv."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]
    named = set()
    for path in (ROOT / "src").rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        documented = (node for node in nodes if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
        texts = (" ".join((ast.get_docstring(node) or "").split()) for node in documented)
        named |= {
            title
            for text in texts
            for title in re.findall(r'[a-z.], "([A-Z][^"]{10,}?)", [^".;]*(?:arXiv|\b(?:19|20)\d\d\b)', text)
        }
    assert len(named) > 40
    assert {title.casefold() for title in named} <= {each["title"].casefold() for each in cited}


def test_notebooks_have_no_outputs():
    cells = [cell for book in NOTEBOOKS for cell in json.loads(book.read_text(encoding="utf-8"))["cells"]]
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "thesauri"],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_command_lines_are_those_of_the_program(page):
    """Every `$ whyrank ...` of a console block names a command, and options that it has."""
    consoles = re.findall(r"^```console\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for line in re.findall(r"^\$ whyrank (.*)$", "\n".join(consoles).replace("\\\n", " "), re.MULTILINE):
        command = typer.main.get_command(app)
        words = shlex.split(line, comments=True)
        while hasattr(command, "get_command") and words and not words[0].startswith("-"):
            name = words.pop(0)
            command = command.get_command(typer.Context(command), name)
            assert command, f"{page.name}: whyrank {line}: there is no command {name}"
        known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {
            "--help",
            "--version",
        }
        given = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert given <= known, f"{page.name}: whyrank {line}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_files_of_the_project_that_are_named_exist(page):
    named = re.findall(
        r"\b((?:tests|benchmarks|src|experiments)/[\w/]+\.(?:py|md|yaml|txt))", page.read_text(encoding="utf-8")
    )
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_path_of_one_machine(page):
    assert not re.search(r"/(?:work|root|home)/", page.read_text(encoding="utf-8"))


def test_the_drawing_and_the_table_of_rooms_are_those_of_the_contract():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    layers = [[room.strip().removeprefix("whyrank.") for room in layer.split("|")] for layer in contract]
    assert rooms_drawn(ROOT / "docs" / "images" / "rooms.svg") == layers
    table = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
    assert sorted(table) == sorted(room for layer in layers for room in layer)
    assert {path.parent.name for path in (ROOT / "src" / "whyrank").glob("*/__init__.py")} == set(table)


def test_the_list_of_modules_has_a_line_for_each():
    lines = [line for line in made()[DOCS / "reference" / "modules.md"].splitlines() if "`" in line]
    assert len(lines) == len([path for path in (ROOT / "src").rglob("*.py") if not path.name.startswith("__")])
    assert all(line.count("|") >= 3 and not line.endswith("|  |") for line in lines)


def test_the_reference_has_every_name():
    """What is registered, every option of every command, every public name."""
    named = {kind: registry.names() for kind, registry in registries().items()}
    pages = {"rankers": "rankers", "analyzers": "analyzers", "table_learners": "learners"}
    pages |= dict.fromkeys(("probes", "axioms", "bias_studies"), "studies")
    for kind, names in named.items():
        page = made()[DOCS / "reference" / f"{pages.get(kind, 'names')}.md"].replace("\\|", "|")
        assert [name for name in names if f"`{name}`" not in page and f"## {name}\n" not in page] == []
    api = made()[DOCS / "reference" / "api.md"]
    for page, names in ((api, whyrank.__all__), (made()[DOCS / "reference" / "authors.md"], ("View", "Pool"))):
        assert [name for name in names if not re.search(rf"^## (class )?{name}$", page, re.MULTILINE)] == []


def test_walks_name_modules_in_order_once_each():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walks = re.findall(r"^### `whyrank [\w ]+`\n(.*?)(?=^##)", page, re.MULTILINE | re.DOTALL)
    assert len(walks) == 4
    for walk in walks:
        named = re.findall(r"^\d+\. `([\w/]+\.py)`", walk, re.MULTILINE)
        assert len(named) >= 7
        assert len(named) == len({*named})
        assert [name for name in named if not (ROOT / "src" / "whyrank" / name).exists()] == []


def rooms_drawn(path: Path) -> list[list[str]]:
    """The names in a drawing, a list for each height; each stands inside a rectangle of its own."""
    drawing = ElementTree.parse(path).getroot()
    name, boxes = "{http://www.w3.org/2000/svg}", []
    rows: dict[float, list[str]] = {}
    for box in drawing.iter(f"{name}rect"):
        boxes.append([float(box.attrib[key]) for key in ("x", "y", "width", "height")])
    for text in (each for each in drawing.iter(f"{name}text") if each.attrib["class"] == "name"):
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        assert sum(left < x < left + width and top < y < top + height for left, top, width, height in boxes) == 1
        rows.setdefault(y, []).append(text.text or "")
    assert len(boxes) == sum(map(len, rows.values()))
    return [rows[y] for y in sorted(rows)]
