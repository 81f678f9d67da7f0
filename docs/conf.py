"""The documentation site: `make docs` builds it, without network, and any warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))

import whyrank  # noqa: E402
from generate import generated_pages, relink  # noqa: E402

project = "whyrank"
copyright = "the authors of whyrank"
release = whyrank.__version__
extensions = ["myst_nb"]
include_patterns = ["index.md", "quickstart.md", "glossary.md", "architecture.md", "contributing.md", "changelog.md",
                    "tutorials/*", "howto/*.md", "concepts/*.md", "extend/*.md", "reference/*.md",
                    "experiments/*.md"]  # fmt: skip
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_timeout = 1800  # seconds, of a cell: a busy machine is slow
nb_execution_raise_on_error = True
nb_output_stderr = "remove"  # progress
html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"whyrank {release}"
html_copy_source = False
html_static_path = ["images/site.css"]
html_css_files = ["site.css"]


def setup(app: Any) -> None:
    """Write the pages that are made, and lead links to their sources to them."""
    for name, text in generated_pages().items():
        page = DOCS / name
        page.parent.mkdir(exist_ok=True)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
    app.connect("source-read", _read)
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))


def _read(app: Any, name: str, source: list[str]) -> None:
    page = app.env.doc2path(name, base=False)
    source[0] = relink(source[0], f"docs/{page}", f"docs/{page}")


def _formula(translator: Any, node: Any) -> None:
    """A formula as MathML, which browsers draw without scripts."""
    markup = tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block))
    translator.body.append(f"<div>{markup}</div>" if isinstance(node, nodes.math_block) else markup)
    raise nodes.SkipNode
