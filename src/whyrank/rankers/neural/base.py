"""What all rankers with neural models share: arguments, identity, long texts, loading when first needed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from whyrank.core import BadInput, Call, Floats, MissingExtra, Whole, WhyrankError, in_worker
from whyrank.rankers.base import Described
from whyrank.rankers.neural.computing import Backend, Computing, Precision, is_installed, quiet, use_threads
from whyrank.rankers.neural.deviation import Deviation, Watch, recall, remember
from whyrank.rankers.neural.passages import How, Passages, TextPairs
from whyrank.rankers.neural.scorer import Scorer
from whyrank.rankers.neural.weights import check_folder, digest_of, model_folder

_NOT_IDENTITY = ("resource", "device", "threads", "backend")  # of the back end, what is really used is part of it
_PACKAGES = ("torch", "transformers", "sentence_transformers", "tokenizers", "safetensors", "huggingface_hub")
_SAFETY = 8  # times the largest difference: a difference of two scores has two errors, and 16 pairs are few
_ULPS = 2 * float(np.finfo(np.float32).eps)  # of a score: the least difference to reckon with
log = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class NeuralRanker(Described):
    """A model in a folder or on the hub.

    Args:
        resource: a model folder, or a hub id (ORG/NAME, ORG/NAME@REVISION).
        device: cpu, cuda, cuda:1, ...; by default CUDA where there is one.
        precision: `exact` computes in fp32; `fast` in bf16 where the hardware has it, else in fp32.
        backend: who computes on a CPU: `torch`, `openvino` or `onnx`; `auto` is torch for what is exact, and the
            quickest that is installed for what is fast. A model that a back end cannot take is left to torch.
        threads: of the CPU; by default what torch chooses, and 1 in each of several worker processes.
        truncate: which tokens of what is too long for the model are read, the `first` or the `last` ones.
        passages: how a long text is scored: `truncate` as a whole that the model cuts, `first` by its first
            window, `max` and `mean` by all windows.
        window: words of a window.
        stride: words from the start of a window to the start of the next.
    """

    resource: str
    device: str | None = None
    precision: Precision = "exact"
    backend: Backend = "auto"
    threads: Whole | None = None
    truncate: Literal["first", "last"] = "first"
    passages: How = "truncate"
    window: Whole = 150
    stride: Whole = 75

    converts: ClassVar[bool] = False  # whether other back ends than torch are known to compute it well

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stride > self.window:
            raise WhyrankError(f"{self.registered}: a stride of {self.stride} words skips words between windows")

    @property
    def batch_size(self) -> int:
        """Pairs per call: so many that a GPU is busy for seconds, fewer for a CPU, where they would take minutes."""
        return (65_536 if self._computing.half else 16_384) if self._computing.on_gpu else 1024

    @property
    def workers(self) -> int | None:
        """How many processes score at a time unless a number is given: one for each GPU."""
        if self.device is not None or not self._computing.on_gpu:
            return None
        import torch

        return torch.cuda.device_count()

    def __repr__(self) -> str:
        return self._identity

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Score aligned pairs of texts."""
        pairs = TextPairs.of(queries, docs)
        if not len(pairs.query):
            return np.zeros(0)
        found = self._run(self._scorer, pairs)
        if not in_worker():  # else the parent watches, who sees the pairs of all workers
            self.note_scored(queries, docs)
        return found

    def note_scored(self, queries: Sequence[str], docs: Sequence[str]) -> None:
        """Note that these pairs were scored: on the first ones, what is not exact is compared with fp32."""
        if self._watch is not None:
            self._watch.add(queries, docs)

    @property
    def deviation(self) -> Deviation | None:
        """How far scores are from those of torch in fp32; None where that is what computes, or nothing was scored."""
        return self._watch.deviation if self._watch is not None else None

    @cached_property
    def tie_tolerance(self) -> float:
        """How far scores of the same pair may differ with the pairs beside it in a batch, which means nothing.

        Measured once on 16 pairs of up to some 500 words from the sample, scored together and one by one: eight times
        the largest difference, and at least 16 units in the last place of the largest score in fp32.
        """
        return measured_tolerance(f"{self!r} on {self._computing.device}, one by one", self._score_anew)

    @property
    def how_computed(self) -> str | None:
        """One line on how scores were computed, where that is not by torch in fp32."""
        return self._watch.line if self._watch is not None else None

    def _run(self, scorer: Scorer, pairs: TextPairs) -> Floats:
        if self.passages == "truncate":
            return scorer(pairs)
        cut = Passages.of(pairs, self.passages, self.window, self.stride)
        return cut.combine(scorer(cut.pairs), self.passages)

    def _load(self, folder: Path) -> Scorer:
        """Load the model."""
        raise NotImplementedError

    @cached_property
    def _scorer(self) -> Scorer:
        folder, remedy = self._folder, f"give a whole model that {self.registered}: reads"
        try:
            use_threads(self.threads)
            with quiet() as missing:
                made = self._load(folder)
        except WhyrankError:
            raise
        except Exception as error:  # the packages raise errors of any kind for a folder that they cannot use
            if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] in _PACKAGES:
                raise MissingExtra(f"ranker {self.name!r}", "models") from error
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            raise BadInput(folder, f"cannot be loaded ({reason})", remedy) from error
        if missing:
            raise BadInput(folder, f"lacks weights ({missing[0]})", remedy)
        return made

    @cached_property
    def _folder(self) -> Path:
        folder = model_folder(self.resource)
        check_folder(folder)
        return folder

    @cached_property
    def _identity(self) -> str:
        """Arguments that scores depend on, defaults included, the number format, and the digest of the model."""
        arguments = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_IDENTITY}
        call = Call(self.registered, self.resource, arguments)
        return f"{call} {self._used} model={digest_of(self._folder)}"

    @property
    def _used(self) -> Computing:
        """How scores are computed; whether a back end can take the model shows when it is loaded."""
        if self.precision == "exact" and self._backend == "torch":
            return Computing("cpu")  # which device makes no difference here, and torch need not be imported
        return self._computing if self._computing.backend == "torch" else self._scorer.computing

    @cached_property
    def _computing(self) -> Computing:
        if not is_installed(self._backend):
            raise MissingExtra(f"ranker {self.name!r}", "fast")
        try:
            return Computing.of(self.device, self.precision, self._backend)
        except ModuleNotFoundError:
            raise MissingExtra(f"ranker {self.name!r}", "models") from None

    @cached_property
    def _backend(self) -> str:
        """The requested back end; torch where no other one is known to compute this kind of model well."""
        if self.converts and (self.precision == "fast" or self.backend != "auto"):
            return self.backend
        if not self.converts and self.backend not in ("auto", "torch"):
            log.warning("%s: backend=%s is not for this kind of ranker; torch computes", self.name, self.backend)
        return "torch"

    @cached_property
    def _watch(self) -> Watch | None:
        if self._used.is_exact:
            return None
        how = f"{self.name}: {self._used.backend} {self._used.format}"

        def load_exact() -> Callable[[TextPairs], Floats]:
            return replace(self, precision="exact", backend="torch", device=self._used.device)._score_anew

        return Watch(how, repr(self), self._score_anew, load_exact)

    def _score_anew(self, pairs: TextPairs) -> Floats:
        return self._run(replace(self._scorer), pairs)  # a copy: what is kept would be no work


def measured_tolerance(key: str, score: Callable[[TextPairs], Floats]) -> float:
    """How far the scores of pairs of the sample that are scored together lie from those of each pair alone."""
    found = recall(key)
    if found is None:
        pairs = _sample_pairs()
        together = score(pairs)
        rows = zip(pairs.query.tolist(), pairs.doc.tolist(), strict=True)
        alone = [score(TextPairs.of([pairs.queries[q]], [pairs.docs[d]])) for q, d in rows]
        apart = np.maximum(np.abs(together - np.concatenate(alone)), _ULPS * np.abs(together))
        found = Deviation(len(together), None, float(np.max(apart[np.isfinite(apart)], initial=0.0)))
        remember(key, found)
    return float(f"{_SAFETY * found.largest:.0e}")


def _sample_pairs() -> TextPairs:
    """Four queries of the sample, each with 1, 2, 4 and 8 of its texts in a row: short and long ones."""
    from whyrank.data import open_collection

    sample = open_collection("sample")
    judged = [(sample.queries[q], [sample.docs[d] for d in docs]) for q, docs in islice(sample.qrels.items(), 4)]
    pairs = [(query, " ".join(texts[:size])) for query, texts in judged for size in (1, 2, 4, 8)]
    return TextPairs.of(*zip(*pairs, strict=True))
