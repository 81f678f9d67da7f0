"""Word vectors: files of them, GloVe, and vectors trained on a collection."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.text.vectors.files import Vectors, open_vectors
    from whyrank.text.vectors.glove import GloVe, collection_vectors

front_door(__name__)
