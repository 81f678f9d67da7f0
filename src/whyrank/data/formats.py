"""Two formats as the whole package has them: YAML within limits, and Parquet with checksums."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import yaml
from yaml import YAMLError

from whyrank.core import BadInput, check_seal, seal_before_footer

YAML_ERRORS = (YAMLError, RecursionError)
MOST_BYTES = 2**20  # of a YAML file
MOST_VALUES = 100_000  # with all aliases written out


class _Loader(yaml.SafeLoader):
    """The safe loader, with numbers as YAML 1.2 has them: 2e-5 is one, without a point and a sign."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def read_yaml(path: Path) -> Any:
    """Plain values from a YAML file; raises one of `YAML_ERRORS`, or an error of the system."""
    with open(path, "rb") as file:
        raw = file.read(MOST_BYTES + 1)
    return parse_yaml(raw if len(raw) > MOST_BYTES else raw.decode("utf-8-sig"))


def read_mapping(path: str | PathLike[str], what: str, remedy: str, twice: str) -> dict[Any, Any]:
    """The keys and values of a YAML file; an error where there are none, or a key stands there twice.

    YAML itself would keep the last of two values with one key, and drop the other. `what` names them in errors, and
    `remedy` and `twice` say how to mend these.
    """
    file = Path(path).expanduser()
    try:
        content, node = read_yaml(file), yaml.compose(file.read_bytes(), yaml.SafeLoader)
    except OSError as error:
        raise BadInput(path, f"cannot be read ({error.strerror or error})", remedy) from None
    except (*YAML_ERRORS, ValueError) as error:
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        raise BadInput(path, f"malformed YAML ({problem})", remedy) from None
    if not isinstance(content, dict) or not content or node is None:
        raise BadInput(path, f"has no {what}", remedy)
    seen = set[str]()
    for key, _ in node.value:
        if key.value in seen:
            problem = f"there are two {what} with the name {key.value!r}"
            raise BadInput(path, problem, twice, key.start_mark.line + 1)
        seen.add(key.value)
    return content


def parse_yaml(text: str | bytes) -> Any:
    """Plain values from YAML; raises one of `YAML_ERRORS`."""
    if len(text) > MOST_BYTES:
        raise YAMLError(f"it has more than {MOST_BYTES:,} bytes")
    loader = _Loader(text)  # a safe loader
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _values(node, {}) > MOST_VALUES:
            raise YAMLError(f"its aliases stand for more than {MOST_VALUES:,} values")
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _values(node: Any, known: dict[int, float]) -> float:
    """How many values a node holds when all aliases are written out; infinitely many where it holds itself."""
    if id(node) not in known:
        known[id(node)] = math.inf
        inside = node.value if isinstance(node.value, list) else []
        parts = (part for item in inside for part in (item if isinstance(item, tuple) else (item,)))
        known[id(node)] = 1 + sum(_values(part, known) for part in parts)
    return known[id(node)]


def problem_of(error: BaseException) -> tuple[str, int | None]:
    """What is wrong with a YAML file in a few words, and the line."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).splitlines()[0]
    return str(what), None if mark is None else mark.line + 1


def write_parquet(
    table: Any, path: str | PathLike[str], metadata: Mapping[Any, Any] | None = None,
    row_group_size: int | None = None, **options: Any,
) -> None:  # fmt: skip
    """Write an Arrow table with checksums of every page, as the format has them, and of the file as a whole.

    `metadata` joins that of the table's schema; `options` are those of `pyarrow.parquet`.
    """
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, table.schema, compression="zstd", write_page_checksum=True, **options) as writer:
        writer.write_table(table, row_group_size=row_group_size)
        writer.add_key_value_metadata(dict(metadata or {}))
    seal_before_footer(path)


def read_parquet(path: str | PathLike[str], remedy: str, **options: Any) -> Any:
    """Read an Arrow table, whoever wrote the file; an error where it does not match its checksum."""
    import pyarrow.parquet as pq

    check_seal(path, remedy)
    whole = Path(path).resolve()  # a relative path with a colon would be taken for a URI
    return pq.read_table(whole, page_checksum_verification=True, **options)
