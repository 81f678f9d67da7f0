"""Bias studies: one value of a class after the other put into the same slot of the same text, and scored.

    from whyrank.studies.bias import bias_studies
    study = bias_studies.create("bias/substitution(values=tea+coffee,head=drink)")

A study turns a collection into a grid of templates and values, whose contrasts are put to rankers like all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whyrank.core.lazy import front_door
from whyrank.core.registry import Registry

bias_studies: Registry[Any] = Registry("bias_studies", "bias study", {"bias/": "whyrank.studies.bias.studies:family"})
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
    from whyrank.studies.bias.correlation import Correlation, doc_term, spelled
    from whyrank.studies.bias.reading import BiasResult, PairRow, ValueRow
    from whyrank.studies.bias.statistics import Clustered, Sums, centred, cluster_scores, mean_bounds, value_p
    from whyrank.studies.bias.studies import PRESETS, Substitution
    from whyrank.studies.bias.templates import ValueContrasts, finite_columns, finite_rows
    from whyrank.studies.bias.values import DOUBTFUL, LISTS, ValueClass, values_of

front_door(__name__)
