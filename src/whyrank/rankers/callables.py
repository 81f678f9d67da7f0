"""Any Python function as a ranker: `python:module:callable`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from whyrank.core import WhyrankError, call_of, check_flag, check_whole
from whyrank.rankers.importing import module_of, source_digest


@dataclass(frozen=True, repr=False)
class PythonRanker:
    """A function of (queries, docs) that gives one number per pair: `module:callable` or `path/file.py:callable`.

    A class is called once without arguments, and its instance (or its `score` method) is asked. The identity has a
    hash of the module's source, of what it imports from beside it, and of the files that the function or class names
    in its attribute `depends_on`. What depends on anything else (a model, a service) is stateful: its scores
    are reused across runs only with `version=`. Plain functions count as stateless and all else as stateful,
    unless `stateful=` says otherwise.
    """

    resource: str
    stateful: bool | None = None
    version: str | int | float | None = None
    batch_size: int = 32

    arithmetic: ClassVar[str] = "theirs"

    def __post_init__(self) -> None:
        """Refuse what cannot be meant; whether the function is there shows when it is needed."""
        check_flag("python: stateful", False if self.stateful is None else self.stateful)
        check_whole("python: batch_size", self.batch_size, 1)

    @property
    def name(self) -> str:
        """Call string."""
        return call_of(self, "python")

    @property
    def tie_tolerance(self) -> Any:
        """What the function, or the object that its class makes, declares as `tie_tolerance`; 0 where it does not."""
        owner = getattr(self._function, "__self__", self._function)
        return getattr(owner, "tie_tolerance", getattr(self._target, "tie_tolerance", 0.0))

    @property
    def cacheable(self) -> bool:
        """Whether scores may be reused in a later run."""
        stateful = not isinstance(self._target, FunctionType) if self.stateful is None else self.stateful
        return not stateful or self.version is not None

    def __repr__(self) -> str:
        return f"python:{self.resource} source={self._source} version={self.version!r}"

    def __getstate__(self) -> dict[str, Any]:
        """The configuration alone: a worker imports the function for itself."""
        hidden = ("_module", "_function", "_target")
        return {key: value for key, value in self.__dict__.items() if key not in hidden}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Import the function before the first call, whose time may be limited; what fails shows then."""
        self.__dict__.update(state)
        with suppress(Exception, SystemExit):
            _ = self._function

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> npt.NDArray[Any]:
        """Ask the function."""
        return np.asarray(self._function(queries, docs))

    @cached_property
    def _function(self) -> Callable[[Sequence[str], Sequence[str]], Any]:
        found = self._target() if isinstance(self._target, type) else self._target
        function: Callable[[Sequence[str], Sequence[str]], Any] = getattr(found, "score", found)
        return function

    @cached_property
    def _target(self) -> Any:
        name = self.resource.rpartition(":")[2]
        found = getattr(self._module, name, None)
        if not callable(found) and not hasattr(found, "score"):
            raise WhyrankError(f"ranker 'python:{self.resource}': {self._module.__name__} has no callable {name!r}")
        return found

    @cached_property
    def _source(self) -> str:
        return source_digest(self._module, getattr(self._target, "depends_on", ()))

    @cached_property
    def _module(self) -> ModuleType:
        return module_of("python", self.resource)
