"""Arrays that grow piece by piece; a large one moves to a file without a name, which the system removes itself."""

from __future__ import annotations

import tempfile
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from whyrank.core import temporary_room

HELD = 1 << 28  # bytes of one array that stay in memory


class Growing:
    """One array of numbers in the making; `finish` gives it, in memory or mapped from its file."""

    def __init__(self, kind: type[np.generic], held: int | None = None) -> None:
        """Start empty; beyond `held` bytes everything goes to a file in the system's folder for temporary files."""
        self._kind, self._held, self._size = np.dtype(kind), HELD if held is None else held, 0
        self._pieces: list[npt.NDArray[Any]] = []
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        """How many numbers there are so far."""
        return self._size

    def add(self, piece: npt.NDArray[Any]) -> None:
        """Append numbers."""
        self._size += len(piece)
        self._pieces.append(np.ascontiguousarray(piece, self._kind))
        if self._size * self._kind.itemsize <= self._held:
            return
        with temporary_room():
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="whyrank-")  # noqa: SIM115  (it lives as long as the array)
            while self._pieces:
                self._file.write(self._pieces.pop(0).view(np.uint8).data)

    def finish(self) -> npt.NDArray[Any]:
        """The whole array, which can be written to."""
        if self._file is None:
            whole = np.concatenate(self._pieces) if self._pieces else np.empty(0, self._kind)
            self._pieces = []
            return whole
        with temporary_room():
            self._file.flush()
        mapped = np.memmap(self._file, self._kind, "r+", shape=(self._size,))
        self._file.close()  # the mapping stays, and with it what is in the file
        return np.asarray(mapped)
