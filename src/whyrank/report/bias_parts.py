"""What the template of bias studies needs, in the report of an audit as on a page of their own."""

from __future__ import annotations

from jinja2 import Environment

from whyrank.report import favours, words
from whyrank.report.bias_drawing import bias_panel
from whyrank.report.slugs import slug


def equip(environment: Environment) -> None:
    """Give an environment the filters and functions of `bias.html.j2`."""
    environment.filters |= {
        "count": words.count, "figure": words.figure, "p": words.p_value, "signed": words.signed,
        "breakable": words.breakable, "sentence": words.sentence, "anchor": slug,
    }  # fmt: skip
    environment.globals |= {
        "bias_panel": bias_panel, "bounds": words.bounds, "is_flat": favours.is_flat, "is_sure": favours.is_sure,
        "ranked": favours.ranked, "sure_pairs": favours.sure_pairs, "dropped_of": favours.dropped_of,
        "largest_differences": favours.largest_differences,
    }  # fmt: skip
