"""What our HTML pages share: one file each, one script that may run, and nothing of a text that could be markup."""

from __future__ import annotations

import base64
from hashlib import sha256

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def new_environment() -> Environment:
    """Templates of this package; what they are given is escaped."""
    return Environment(
        loader=PackageLoader("whyrank.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )


def source_of(environment: Environment, name: str) -> str:
    """A style sheet or script of this package as it is."""
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def style_of(environment: Environment, *names: str) -> Markup:
    """Some style sheets as one."""
    return Markup("\n".join(source_of(environment, f"{name}.css").strip() for name in names))


def csp_hash(script: str) -> str:
    """What the page's security policy names the only script that may run by."""
    return base64.b64encode(sha256(script.encode()).digest()).decode()


def script_json(text: str) -> Markup:
    """JSON that cannot end the script element it stands in, whatever its strings hold."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
