"""Bias studies: one value of a class after the other put into the same slot of the same text, and scored.

    from whyrank.audit.bias import bias_studies
    study = bias_studies.create("bias/substitution(values=tea+coffee,head=drink)")

A study turns a collection into a grid of templates and values. `whyrank.audit.bias_asking` puts it to rankers.
"""

from __future__ import annotations

from typing import Any

from whyrank.core.registry import Registry

bias_studies: Registry[Any] = Registry("bias_studies", "bias study", {"bias/": "whyrank.audit.bias_family:family"})
bias_filters: Registry[Any] = Registry(
    "bias_filters",
    "bias filter",
    {
        "one-value": "whyrank.audit.bias_filters:OneValue",
        "without": "whyrank.audit.bias_filters:Without",
        "relevant": "whyrank.audit.bias_filters:Relevant",
        "python": "whyrank.audit.bias_filters:Judge",
        "keep": "whyrank.audit.bias_filters:Keep",
    },
)

__all__ = ["bias_filters", "bias_studies"]
