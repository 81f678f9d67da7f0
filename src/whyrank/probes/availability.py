"""What a probe would need that this machine does not have."""

from __future__ import annotations

from whyrank.core.errors import WhyrankError
from whyrank.text.pipelines import find_pipeline, import_spacy


def missing(pipeline: str) -> str:
    """Why texts cannot be annotated with a pipeline; empty when they can."""
    try:
        find_pipeline(pipeline)
        import_spacy()
    except WhyrankError as error:
        return str(error)
    return ""
