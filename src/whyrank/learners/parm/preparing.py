"""From a recipe, a target and collections to all that PaRM learns from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import Ranker, WhyrankError, parse_call
from whyrank.data import Collection
from whyrank.learners.parm.alignment import Occlusion, attends, occlusion
from whyrank.learners.parm.data import Candidates, Terms, asked, candidates, terms_of
from whyrank.learners.parm.texts import token_texts
from whyrank.networks import ParmNetwork
from whyrank.rankers import Setting, open_ranker, rankers
from whyrank.rankers.lexical import LexicalIndex, LexicalRanker
from whyrank.rankers.neural import NeuralRanker, architecture_of, model_folder
from whyrank.scoring import Engine, one_line
from whyrank.training import Recipe, Sources, analyzer_of, check_settings, first_phase, new_network, sources_of

BUNDLED = "bundled"
Say = Callable[[str], None]


class ParmPrepared(NamedTuple):
    """All that training needs.

    Attributes:
        recipe: what is trained, and how.
        queries: texts of the queries.
        docs: texts of the candidates.
        candidates: the candidates of each query, and the target's scores.
        terms: the terms of queries and texts.
        sources: what the network starts from.
        facts: what the network will tell: target, alignment, analyzer, collections.
        reader: the folder of the model that aligns, unless words are left out for that.
        occlusion: alignments that were found by leaving words out.
    """

    recipe: Recipe
    queries: Sequence[str]
    docs: Sequence[str]
    candidates: Candidates
    terms: Terms
    sources: Sources
    facts: Mapping[str, Any]
    reader: Path | None = None
    occlusion: Occlusion | None = None

    def identity(self, seed: int) -> str:
        """A digest of all that the result depends on: two runs that share it are the same run."""
        recipe = {name: value for name, value in self.recipe.as_dict().items() if name != "seeds"}
        digest = hashlib.sha256(json.dumps([recipe, dict(self.facts), seed], sort_keys=True, default=str).encode())
        for texts in (self.queries, self.docs, self.terms.names):
            digest.update(hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).digest())
        for array in (*self.candidates, *self.terms[1:], *(self.occlusion or ())):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]

    def network(self, seed: int) -> ParmNetwork:
        """The network before its training."""
        made = new_network(self.recipe, seed, self.sources)
        assert isinstance(made, ParmNetwork)
        return made


class Target(NamedTuple):
    """The ranker to explain, and the model behind it where that can be read.

    Attributes:
        ranker: who scores.
        folder: its model, if it has one.
        attends: whether its model reads query and text together, and the attention between them can be read.
    """

    ranker: Ranker
    folder: Path | None = None
    attends: bool = False


def prepare_parm(recipe: Recipe, ranker: str | Ranker, engine: Engine, say: Say = print) -> ParmPrepared:
    """All that training needs; the target is any ranker, or the call string of one."""
    check_parm(recipe, ranker)
    given = asked(recipe.data)
    collection = Collection.of({str(i): text for i, text in enumerate(given.docs)}, {}, name="texts to learn from")
    setting = Setting(collection, analyzer_of(recipe.phases, recipe.data))
    index = _index(setting, recipe.data)
    doc = candidates(index, given, recipe.data)
    say(f"{len(given.queries):,} queries, {len(given.docs):,} texts, {doc.shape[1]} candidates for each query")
    target = open_target(ranker, setting)
    alignment = aligned_by(recipe, target)
    scores = _scores(target.ranker, engine, given.queries, given.docs, doc)
    names = list(dict.fromkeys([*_names(recipe.data.get("collection")), *_names(recipe.data.get("cut"))]))
    encoder = str(model_folder(BUNDLED)) if recipe.encoder == BUNDLED else recipe.encoder
    sources = sources_of(replace(recipe, encoder=encoder, phases={}, data={"collection": names}))
    facts = {
        "learner": f"parm(preset={recipe.phases.get('preset', 'target')})", "ranker": repr(target.ranker),
        "target": target.ranker.name, "alignment": alignment, "analyzer": setting.analyzer, "collection": names,
    }  # fmt: skip
    terms, reader = terms_of(index, given.queries, doc), target.folder or sources.encoder
    made = ParmPrepared(recipe, given.queries, given.docs, Candidates(doc, scores), terms, sources, facts, reader)
    if alignment != "occlusion":
        return made
    network = made.network(0)
    texts = token_texts(network, made.queries, made.docs)
    return made._replace(occlusion=occlusion(target.ranker, engine, network.tokenizer, *texts, doc))


def check_parm(recipe: Recipe, ranker: str | Ranker) -> None:
    """Raise an error unless a recipe is one for `tables learn parm`, and the target a ranker."""
    if recipe.architecture != ParmNetwork.architecture or not recipe.phases:
        raise WhyrankError("this recipe has no phases of parm; take `parm` or `parm-smoke`, or copy one of these")
    if not recipe.data.get("collection") and not recipe.data.get("cut"):
        raise WhyrankError("data: name collections to learn from, with -c or data.collection")
    check_settings(recipe)
    if isinstance(ranker, str):
        rankers.factory(parse_call(ranker).name)
        if parse_call(ranker).name == "run":
            raise WhyrankError(f"target {ranker!r}: a run has no scores for other texts; take a ranker that has")


def open_target(given: str | Ranker, setting: Setting) -> Target:
    """A ranker, or the one that a call string describes, and what is behind it."""
    ranker = open_ranker(given, setting) if isinstance(given, str) else given
    call = parse_call(ranker.name) if isinstance(ranker, NeuralRanker) else None
    if call is None or call.arguments or call.name not in ("cross", "bi"):
        return Target(ranker)
    folder = model_folder(str(call.resource))
    if call.name == "bi":
        return Target(ranker, folder)
    reads = attends(folder)  # other packages' cross-encoders without it are asked like any ranker
    return Target(ranker, folder, reads) if reads or architecture_of(folder) == "cross" else Target(ranker)


def aligned_by(recipe: Recipe, target: Target) -> str:
    """What aligns queries and texts: what the recipe says, or the best that there is."""
    asked_for = first_phase(recipe.phases).alignment
    if asked_for == "attention" and not target.attends:
        raise WhyrankError("alignment: the target has no attention to offer; choose embeddings or occlusion")
    if asked_for == "embeddings" and target.folder is None and not isinstance(recipe.encoder, str):
        raise WhyrankError("alignment: a new encoder has no embeddings to align by; choose occlusion")
    if asked_for != "auto":
        return asked_for
    if target.attends:
        return "attention"
    return "embeddings" if target.folder is not None or isinstance(recipe.encoder, str) else "occlusion"


def _index(setting: Setting, data: Mapping[str, Any]) -> LexicalIndex:
    given = "".join(f",{name}={data[name]}" for name in ("k1", "b", "k2") if name in data)
    ranker = open_ranker(f"bm25(variant=parm{given})", setting)
    assert isinstance(ranker, LexicalRanker)
    assert setting.collection is not None
    return LexicalIndex.of(ranker, setting.collection.docs)


def _scores(
    ranker: Ranker, engine: Engine, queries: Sequence[str], docs: Sequence[str], doc: npt.NDArray[np.int32]
) -> npt.NDArray[np.float32]:
    query = np.repeat(np.arange(len(doc), dtype=np.int32), doc.shape[1])
    found = engine.score(ranker, queries, docs, query, doc.reshape(-1))
    if found.failures:
        failed = f"{len(found.failures):,} of {found.values.size:,} pairs ({one_line(found.failures[0].reason)})"
        raise WhyrankError(f"the target {ranker.name!r} has no finite score for {failed}; mend it")
    if not np.ptp(found.values.reshape(doc.shape), axis=1).any():
        raise WhyrankError(f"the target {ranker.name!r} scores all texts of a query alike: nothing to learn")
    return found.values.reshape(doc.shape).astype(np.float32)


def _names(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else list(given) if isinstance(given, Sequence | Mapping) else []
