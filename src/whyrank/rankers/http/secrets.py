"""Values in call strings that may be secrets: they are sent to a service, and shown nowhere.

In the query of a URL and in the options of a request, `$VARIABLE` stands for the value of an environment variable.
Any other value whose name is not in `HARMLESS` is shown as a mark (`***`, `***2` and so on), and only this process
knows what the mark stands for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from whyrank.core import WhyrankError, parse_call

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
REFERENCE = re.compile(rf"\$({VARIABLE.pattern})")  # stands for the value of an environment variable
MARK = re.compile(r"\*\*\*[0-9]*")
SCHEMES = ("http", "https")
# names whose values are shown; any other name may stand for a secret
HARMLESS = {
    "activation", "api_version", "batch_size", "chunk", "deployment", "dimensions", "dtype", "engine", "format",
    "instruction", "lang", "language", "max_chunks_per_doc", "max_length", "max_tokens", "max_tokens_per_doc",
    "model", "model_id", "model_name", "normalize", "overlap", "pretty", "priority", "prompt", "prompt_name",
    "raw_scores", "return_documents", "return_text", "revision", "task", "temperature", "top_k", "top_n",
    "truncate", "truncate_prompt_tokens", "truncation", "truncation_direction", "type", "use_activation",
    "version",
}  # fmt: skip
HIDDEN: dict[str, Any] = {}  # the value behind each mark, which a worker process gets with its ranker


def hide_values(spec: str) -> str:
    """A ranker's call string with marks for the values in it that may be secrets, also inside other call strings."""
    if "://" not in spec:
        return spec
    call = parse_call(spec)
    if call.name in SCHEMES:
        options = {"options": hide_options(call.arguments["options"])} if "options" in call.arguments else {}
        hidden = call._replace(resource=hide_url(call.resource or ""), arguments={**call.arguments, **options})
    else:
        hidden = call._replace(arguments={key: _hide_nested(value) for key, value in call.arguments.items()})
    return str(hidden) if hidden != call else spec


def _hide_nested(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_hide_nested(each) for each in value]
    return hide_values(value) if isinstance(value, str) else value


def hide_url(resource: str) -> str:
    """A URL with marks for the values of its query that may be secrets, without a fragment."""
    address, separator, query = resource.partition("#")[0].partition("?")
    items = [name + _hide(unquote((name or value).rstrip("=")), value) for name, value in query_items(query)]
    return address + separator + "&".join(items)


def hide_options(options: Any) -> Any:
    """The options of a request with marks for values that may be secrets."""
    return _hide("", options) if isinstance(options, dict) else options


def _hide(name: str, value: Any) -> Any:
    """A value itself where its name is harmless or it names a variable, else its mark."""
    if isinstance(value, dict):
        return {key: _hide(str(key), each) for key, each in value.items()}
    if isinstance(value, list):
        return [_hide(name, each) for each in value]
    shown = isinstance(value, str) and (REFERENCE.fullmatch(value) or MARK.fullmatch(value))
    if value is None or isinstance(value, bool) or shown or name.lower().replace("-", "_") in HARMLESS:
        return value
    known = [mark for mark, each in HIDDEN.items() if each == value and type(each) is type(value)]
    mark = known[0] if known else f"***{len(HIDDEN) + 1 if HIDDEN else ''}"
    HIDDEN[mark] = value
    return mark


def reveal(value: Any, url: str) -> Any:
    """What is sent for a value: what its variable or mark stands for, also inside lists and dictionaries."""
    if isinstance(value, dict):
        return {key: reveal(each, url) for key, each in value.items()}
    if isinstance(value, list):
        return [reveal(each, url) for each in value]
    if not isinstance(value, str):
        return value
    if MARK.fullmatch(value):
        if value not in HIDDEN:
            remedy = "give it again, best as $VARIABLE"
            raise WhyrankError(f"{url}: the value behind {value} was hidden in an earlier run; {remedy}")
        return HIDDEN[value]
    if reference := REFERENCE.fullmatch(value):
        if reference[1] not in os.environ:
            raise WhyrankError(f"{url}: the environment variable {reference[1]} is not set; put the value there")
        return os.environ[reference[1]].strip()
    return value


def query_items(query: str) -> list[tuple[str, str]]:
    """The items of a URL's query as they are spelled: name with `=`, and value; an item of one part is all value."""
    found = (item.partition("=") for item in query.split("&") if item)
    return [(name + mark, value) if value else ("", name + mark) for name, mark, value in found]


def strings_in(value: Any) -> Iterator[str]:
    """All values that are strings, also inside lists and dictionaries."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings_in(each)
    elif isinstance(value, str):
        yield value
