"""Models of sentence-transformers that are loaded already, as rankers: what a notebook or a training run has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from whyrank.core import Floats, WhyrankError
from whyrank.rankers.base import distinct
from whyrank.rankers.neural.base import measured_tolerance
from whyrank.rankers.neural.passages import TextPairs

KINDS = {"CrossEncoder": "cross", "SentenceTransformer": "bi", "SparseEncoder": "sparse"}


def kind_of(given: object) -> str | None:
    """The class of sentence-transformers that an object is of; the package need not be imported to tell."""
    bases = (base for base in type(given).__mro__ if base.__module__.startswith("sentence_transformers."))
    return next((base.__name__ for base in bases if base.__name__ in KINDS), None)


class LoadedModel:
    """A `CrossEncoder`, `SentenceTransformer` or `SparseEncoder` as a ranker, with its own prompts and lengths.

    The scores of a cross-encoder are its outputs before any activation; with two outputs the second less the first.
    The identity is a digest of the weights, the tokenizer and the settings as they are when it is first needed: where
    training goes on, make another ranker of the model.
    """

    batch_size = 1024
    arithmetic = "ours"

    def __init__(self, model: Any) -> None:
        self.model, self._kind = model, KINDS[kind_of(model) or ""]
        config = getattr(getattr(model[0], "auto_model", None), "config", None)
        self.name = f"{self._kind}:{getattr(config, '_name_or_path', '') or type(model).__name__}"
        if self._kind == "cross" and model.num_labels not in (1, 2):
            raise WhyrankError(f"ranker {self.name!r} has {model.num_labels} outputs; give a model with one or two")

    @property
    def scale(self) -> str:
        """What the scores are, in words."""
        return "logit" if self._kind == "cross" else str(self.model.similarity_fn_name)

    @cached_property
    def tie_tolerance(self) -> float:
        """How far scores of the same pair may differ with the pairs beside it in a batch, which means nothing."""

        def score(pairs: TextPairs) -> Floats:
            return self.score([pairs.queries[i] for i in pairs.query], [pairs.docs[i] for i in pairs.doc])

        return measured_tolerance(f"{self!r} on {self.model.device}, one by one", score)

    def __repr__(self) -> str:
        return self._identity

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Score aligned pairs; each distinct text is embedded once."""
        import torch

        if not queries:
            return np.zeros(0)
        with torch.inference_mode():
            if self._kind == "cross":
                pairs, plain = list(zip(queries, docs, strict=True)), torch.nn.Identity()
                found = np.asarray(self.model.predict(pairs, activation_fn=plain, show_progress_bar=False))
                return (found[:, 1] - found[:, 0] if found.shape[1:] == (2,) else found.reshape(-1)).astype(float)
            sides = []
            for texts, encode in ((queries, self.model.encode_query), (docs, self.model.encode_document)):
                known = distinct(texts)
                vectors = encode(known.texts, convert_to_tensor=True, show_progress_bar=False)
                sides.append(vectors.index_select(0, torch.as_tensor(known.codes, device=vectors.device).long()))
            similar = self.model.similarity_pairwise(*sides)
            dense = similar.to_dense() if similar.is_sparse else similar
            return np.asarray(dense.double().cpu().numpy())

    @cached_property
    def _identity(self) -> str:
        import torch

        found, model = sha256(), self.model
        for name, tensor in sorted(model.state_dict().items()):
            found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
        tokenizer = getattr(model.tokenizer, "backend_tokenizer", None)
        settings = [repr(model), repr(model.tokenizer) if tokenizer is None else tokenizer.to_str()]
        names = ("max_seq_length", "prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")
        found.update(repr([*settings, *(str(getattr(model, name, None)) for name in names)]).encode())
        return f"loaded {self._kind} model={found.hexdigest()[:16]}"
