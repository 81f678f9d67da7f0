"""Terms that stay where they lie: a sequence of strings over an Arrow array, such as one in a mapped file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

_PIECE = 1 << 16


class ArrowTerms(Sequence[str]):
    """The strings of an Arrow array; each becomes a Python string only when it is asked for."""

    def __init__(self, array: Any) -> None:
        """Take an Arrow array of strings without nulls."""
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        found = self.array[index]
        texts: str | list[str] = found.to_pylist() if isinstance(index, slice) else found.as_py()
        return texts

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _PIECE):
            yield from self.array.slice(start, _PIECE).to_pylist()


def arrow_terms(terms: Sequence[str]) -> Any:
    """The Arrow array of a sequence of terms, without a copy where it is over one already."""
    import pyarrow as pa

    return terms.array if isinstance(terms, ArrowTerms) else pa.array(terms, pa.string())
