"""Checksums inside the files that are read back, verified before anything else reads them.

A file carries `whyrank-sha256:` and 64 hexadecimal digits where its format has room for text: before the footer of
Parquet and Arrow files, in the metadata of safetensors, under a key of JSON, behind the end of npy and npz files. The
digits are the SHA-256 of the file with zeros in their place. Model folders hold files of other packages; their
digests are listed in `checksums.json`. Files without a checksum (of older versions, of other tools) are read as
they are.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from whyrank.core.errors import BadInput
from whyrank.core.files import file_digest, replacing, write_text

_NAME, _ZEROS = b"whyrank-sha256:", b"0" * 64
EMPTY = (_NAME + _ZEROS).decode()
"""What a writer puts into a file, for `seal` to fill in."""

KEY = "checksum"
LISTING = "checksums.json"
_MARK = re.compile(_NAME + rb"([0-9a-f]{64})")
_FOOTERS = (b"PAR1", b"ARROW1")
_TAIL, _HEAD = 1 << 16, 1 << 24  # where the checksum is looked for: near the end, then in a header
_CHUNK = 1 << 20


def seal(path: str | os.PathLike[str]) -> None:
    """Fill in the checksum of a file that holds `EMPTY`."""
    with open(path, "r+b") as file:
        position = _find(file)
        if position is None:
            raise ValueError(f"{path} has no place for a checksum")
        digest = _digest(file, position)
        file.seek(position)
        file.write(digest)


def seal_before_footer(path: str | os.PathLike[str]) -> None:
    """Put the checksum into a Parquet or Arrow file, where tools that copy its metadata do not copy it."""
    with open(path, "r+b") as file:
        last = 4 + (6 if file.read(6) == b"ARROW1" else 4)  # the length of the footer, and the format's name again
        file.seek(-last, os.SEEK_END)
        file.seek(-last - int.from_bytes(file.read(4), "little"), os.SEEK_END)
        start = file.tell()
        footer = file.read()
        file.seek(start)
        file.write(EMPTY.encode() + b"\n" + footer)
    seal(path)


@contextmanager
def sealed_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Give a file to write arrays to, for formats that end where they say; it appears whole, with its checksum."""
    with replacing(path) as beside:
        with open(beside, "wb") as file:
            yield file
            file.write(EMPTY.encode())
        seal(beside)


def check_seal(path: str | os.PathLike[str], remedy: str) -> None:
    """Raise an error where a file does not match its checksum; a file without one passes."""
    try:
        with open(path, "rb") as file:
            position = _find(file)
            if position is None:
                return
            file.seek(position)
            same = file.read(len(_ZEROS)) == _digest(file, position)
    except FileNotFoundError:
        return  # whoever reads it says what is missing
    except OSError as error:
        raise BadInput(path, f"cannot be read ({error.strerror or error})", remedy) from None
    if not same:
        raise damage_error(path, remedy)


def damage_error(path: str | os.PathLike[str], remedy: str) -> BadInput:
    """The error for a file that does not match its checksum."""
    return BadInput(path, "is damaged: it does not match its checksum", remedy)


def sealed_text(text: str) -> str:
    """A text that holds `EMPTY`, with its checksum filled in."""
    before, mark, after = text.rpartition(EMPTY)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{before}{mark[: -len(_ZEROS)]}{digest}{after}"


def sealed_json(value: Mapping[str, Any], **options: Any) -> str:
    """A JSON object with its checksum as the last key, and a line end."""
    return sealed_text(json.dumps({**value, KEY: EMPTY}, **options) + "\n")


def read_sealed_json(path: str | os.PathLike[str], remedy: str) -> Any:
    """What a JSON file holds, without its checksum; an error where it does not match."""
    check_seal(path, remedy)
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    if isinstance(found, dict) and not _MARK.fullmatch(str(found.pop(KEY, EMPTY)).encode()):
        raise damage_error(path, remedy)
    return found


def list_checksums(folder: Path, files: Iterable[Path]) -> None:
    """Write `checksums.json` for some files of a folder."""
    digests = {file.relative_to(folder).as_posix(): file_digest(file, 64) for file in sorted(files)}
    write_text(folder / LISTING, sealed_json({"sha256": digests}, indent=1))


def check_listed(folder: Path, remedy: str) -> None:
    """Raise an error where a file of a folder does not match `checksums.json`; a folder without one passes."""
    listing = folder / LISTING
    if not listing.exists():
        return
    try:
        digests = dict(read_sealed_json(listing, remedy)["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(listing, f"cannot be read ({error})", remedy) from None
    for name, digest in digests.items():
        file = folder / name  # whoever reads it says what is missing
        if file.exists() and file_digest(file, 64) != digest:
            raise damage_error(file, remedy)


def _find(file: BinaryIO) -> int | None:
    """Where the digits of the checksum begin: the last one near the end, else the first one near the beginning."""
    start = max(0, file.seek(0, os.SEEK_END) - _TAIL)
    file.seek(start)
    if found := list(_MARK.finditer(file.read())):
        return start + found[-1].start(1)
    file.seek(0)
    head = file.read(_HEAD)
    if not head.startswith(_FOOTERS):
        first = _MARK.search(head)
        return None if first is None else first.start(1)
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:  # the footer may be long
        position = whole.rfind(_NAME)
        held = _MARK.match(whole, position) if position >= 0 else None
        return None if held is None else held.start(1)


def _digest(file: BinaryIO, position: int) -> bytes:
    """The SHA-256 of a file with zeros in the place of its checksum, in hexadecimal digits."""
    total = hashlib.sha256()
    file.seek(0)
    while file.tell() < position:
        total.update(file.read(min(_CHUNK, position - file.tell())))
    total.update(_ZEROS)
    file.seek(len(_ZEROS), os.SEEK_CUR)
    while chunk := file.read(_CHUNK):
        total.update(chunk)
    return total.hexdigest().encode()
