"""The parts of a term table: vocabularies over Arrow arrays, and what must hold of all parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from whyrank.core import WhyrankError

if TYPE_CHECKING:
    from whyrank.tables.table import TermTable

_CHUNK = 1 << 16


class ArrowTerms(Sequence[str]):
    """The strings of an Arrow array; each becomes a Python string only when it is used."""

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
        for start in range(0, len(self), _CHUNK):
            yield from self.array.slice(start, _CHUNK).to_pylist()


def arrow_terms(terms: Sequence[str]) -> Any:
    """The Arrow array of a sequence of terms, without a copy where it is over one already."""
    import pyarrow as pa

    return terms.array if isinstance(terms, ArrowTerms) else pa.array(terms, pa.string())


def check_shapes(table: TermTable) -> None:
    """Raise an error where the sizes of the parts contradict each other."""
    indptr, size = np.asarray(table.indptr), len(table.indices)
    if indptr.shape != (len(table.query_terms) + 1,):
        raise _wrong(f"{len(table.query_terms):,} query terms need {len(table.query_terms) + 1:,} row starts")
    if indptr[0] != 0 or indptr[-1] != size or np.any(indptr[1:] < indptr[:-1]):
        raise _wrong(f"row starts must ascend from 0 to the number of entries, {size:,}")
    if len(table.weights) != size:
        raise _wrong(f"{len(table.weights):,} weights for {size:,} entries")
    if table.counts is not None and len(table.counts) != len(table.doc_terms):
        raise _wrong(f"{len(table.counts):,} counts for {len(table.doc_terms):,} document terms")


def check_entries(table: TermTable) -> None:
    """Raise an error for a term that is empty or given twice, a number out of range, a weight that is none."""
    check_terms(table.query_terms, "query")
    check_terms(table.doc_terms, "document")
    check_weights(table.weights)
    indices = np.asarray(table.indices)
    check_numbers(indices, len(table.doc_terms), "document")
    rising = indices[1:] > indices[:-1]
    starts = np.asarray(table.indptr)[1:-1]
    rising[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    if not rising.all():
        raise _wrong("document terms must ascend within a query term, none twice")
    if table.counts is not None and np.any(np.asarray(table.counts) < 0):
        raise _wrong("a count is negative")


def check_readable(table: TermTable) -> None:
    """The part without which a compiled loop could read beyond a table or tell no number; hardly any time."""
    check_weights(table.weights)
    check_numbers(np.asarray(table.indices), len(table.doc_terms), "document")
    sides = (("query", table.query_terms, table.query_numbers), ("document", table.doc_terms, table.doc_numbers))
    for side, terms, numbers in sides:
        if len(numbers) < len(terms):
            check_terms(terms, side)


def check_terms(terms: Sequence[str], side: str) -> None:
    """Raise an error for a vocabulary with an empty term, one that is given twice, or one that is no text."""
    try:
        "".join(terms).encode()
    except TypeError:
        raise _wrong(f"a {side} term is no text") from None
    except UnicodeEncodeError:
        raise _wrong(f"a {side} term has a lone surrogate, which no file can hold") from None
    if "" in terms:
        raise _wrong(f"a {side} term is empty")
    if len(set(terms)) < len(terms):
        seen: set[str] = set()
        twice = next(term for term in terms if term in seen or seen.add(term))  # type: ignore[func-returns-value]
        raise _wrong(f"the {side} term {twice!r} is in the vocabulary twice")


def check_weights(weights: npt.ArrayLike) -> None:
    """Raise an error unless all weights are numbers, finite as float32, and zero or more."""
    given = np.asarray(weights)
    if given.ndim != 1 or given.dtype.kind not in "iuf":
        raise _wrong("weights must be numbers")
    with np.errstate(over="ignore"):
        held = given.astype(np.float32, copy=False)
    if not bool(np.all(held >= 0)):  # false for NaN too
        raise _wrong(f"the weight {given[~(held >= 0)][0]} is no number, zero or more")
    if len(held) and not np.isfinite(held.max()):
        raise _wrong(f"the weight {given[~np.isfinite(held)][0]} is not finite")


def check_numbers(numbers: npt.NDArray[Any], size: int, side: str) -> None:
    """Raise an error for a number that no term of a vocabulary has."""
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and len(numbers)):
        raise _wrong(f"numbers of {side} terms must be whole")
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < size:
        raise _wrong(f"the number of a {side} term is out of range; there are {size:,}")


def _wrong(what: str) -> WhyrankError:
    return WhyrankError(f"this is no term table: {what}")
