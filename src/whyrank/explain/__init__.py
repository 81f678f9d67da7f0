"""Why a ranker gave a text its score: exact, by leaving words out, of one text or two, with counterfactuals."""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.explain.explaining import explain
    from whyrank.explain.explanation import Counterfactual, Explanation, Part


class _CallableModule(ModuleType):
    """A package that is called as the function of its name: once imported, it is what `whyrank.explain` names."""

    def __call__(self, *given: Any, **named: Any) -> "Explanation":
        return self.explain(*given, **named)  # type: ignore[no-any-return]


front_door(__name__)
sys.modules[__name__].__class__ = _CallableModule
