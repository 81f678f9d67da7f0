"""Bias studies: one value of a class after the other put into the same slot of the same text, and scored.

    from whyrank.studies.bias import bias_studies
    study = bias_studies.create("bias/substitution(values=tea+coffee,head=drink)")

A study turns a collection into a grid of templates and values. `whyrank.studies.bias.asking` puts it to rankers.
"""

from __future__ import annotations

from typing import Any

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

__all__ = ["bias_filters", "bias_studies"]
