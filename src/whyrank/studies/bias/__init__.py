"""Bias studies: one value of a class after the other put into the same slot of the same text, and scored.

    from whyrank.studies.bias import bias_studies
    study = bias_studies.create("bias/substitution(values=tea+coffee,head=drink)")

A study turns a collection into a grid of templates and values. `whyrank.studies.bias.asking` puts it to rankers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whyrank.core.lazy import front_door
from whyrank.core.registry import Registry

bias_studies: Registry[Any] = Registry(
    "bias_studies", "bias study", {"bias/": "whyrank.studies.bias.substitution:family"}
)
bias_filters: Registry[Any] = Registry(
    "bias_filters",
    "bias filter",
    {
        "one-value": "whyrank.studies.bias.filters:OneValue",
        "without": "whyrank.studies.bias.filters:Without",
        "relevant": "whyrank.studies.bias.filters:Relevant",
        "python": "whyrank.studies.bias.filters:Judge",
        "keep": "whyrank.studies.bias.filters:Keep",
    },
)

if TYPE_CHECKING:
    from whyrank.studies.bias.asking import BiasAnswer, BiasPlan, bias_answers, named_studies
    from whyrank.studies.bias.correlation import Correlation
    from whyrank.studies.bias.grid import finite_columns, finite_rows
    from whyrank.studies.bias.result import BiasResult, PairRow, ValueRow, with_adjusted_omnibus
    from whyrank.studies.bias.statistics import Clustered, Sums, centred, cluster_scores, mean_bounds, value_p
    from whyrank.studies.bias.substitution import PRESETS, Substitution
    from whyrank.studies.bias.values import LISTS, values_of
    from whyrank.studies.bias.weights import doc_term, spelled

front_door(__name__)
