"""Linguistic annotation: sentences, lemmas, parts of speech, noun chunks and entities of texts."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.text.annotation.annotator import Annotator
    from whyrank.text.annotation.pipelines import ENGLISH, find_pipeline, import_spacy

front_door(__name__)
