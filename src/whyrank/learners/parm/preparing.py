"""Alignments of any ranker by leaving words out: what a word of a text adds for each word of a query alone.

value(a, w) = score("a", text) - score("a", text without all its w), for every word a of the query and w of the text,
as the network's pieces spell them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import Ranker, WhyrankError, parse_call
from whyrank.data import Collection
from whyrank.learners.parm.data import Asked, asked, candidates, terms_of
from whyrank.learners.parm.first import piece_texts
from whyrank.learners.parm.prepared import Occlusion, ParmPrepared
from whyrank.learners.parm.target import BI, NETWORK, attends
from whyrank.learners.parm.texts import PieceTexts
from whyrank.networks import ParmNetwork, Pieces
from whyrank.rankers import Setting, open_ranker, rankers
from whyrank.rankers.lexical import LexicalIndex, LexicalRanker
from whyrank.rankers.neural import NeuralRanker, architecture_of, config_of, model_folder
from whyrank.scoring import Engine, one_line
from whyrank.training import Recipe, Sources, Texts, analyzer_of, check_settings, first_phase, new_network, sources_of

# From a recipe, a target and collections to a prepared run of PaRM: everything that needs more than torch.

BUNDLED = "bundled"
_MOST = 512  # pieces of a text up to which a bi-encoder is asked elsewhere
Say = Callable[[str], None]


class Target(NamedTuple):
    """The ranker to explain, and the model behind it where that can be read elsewhere.

    Attributes:
        ranker: who scores.
        folder: its model, if it has one.
        asked_as: how another machine can ask it: `bi`, `network`, or not at all.
        attends: whether its model reads query and text together, and the attention between them can be read.
        reads: of a bi-encoder that is asked elsewhere, how many pieces of a text it reads, [CLS] and [SEP] included.
    """

    ranker: Ranker
    folder: Path | None = None
    asked_as: str = ""
    attends: bool = False
    reads: int | None = None


def prepare_parm(
    recipe: Recipe, ranker: str | Ranker, engine: Engine, *, travels: bool = False, say: Say = print
) -> ParmPrepared:
    """All that training needs; with `travels` the target is asked where the network is trained, if it can be.

    The target is any ranker, or the call string of one.
    """
    check_parm(recipe, ranker)
    given = asked(recipe.data)
    collection = Collection.of({str(i): text for i, text in enumerate(given.docs)}, {}, name="texts to learn from")
    analyzer = analyzer_of(recipe.phases, recipe.data)
    index = _index(collection, recipe.data, analyzer)
    doc = candidates(index, given, recipe.data)
    say(f"{len(given.queries):,} queries, {len(given.docs):,} texts, {doc.shape[1]} candidates for each query")
    target = open_target(ranker, Setting(collection, analyzer))
    alignment = aligned_by(recipe, target)
    there = _asked_there(recipe.data, target, travels)
    scores = None if there else _scores(target.ranker, engine, given, doc)
    sources = _with_target(sources_of(_plain(recipe)), target, alignment, there)
    made = ParmPrepared(
        recipe, given.queries, given.docs, doc, scores, terms_of(index, given.queries, doc), sources,
        _facts(recipe, target, alignment, analyzer),
    )  # fmt: skip
    return _occluded(made, target.ranker, engine) if alignment == "occlusion" else made


def check_parm(recipe: Recipe, ranker: str | Ranker) -> None:
    """Raise an error unless a recipe is one for `tables learn parm`, and the target a ranker."""
    if recipe.architecture != ParmNetwork.architecture or not recipe.phases:
        raise WhyrankError("this recipe has no phases of parm; take `parm` or `parm-smoke`, or copy one of these")
    if not recipe.data.get("collection") and not recipe.data.get("cut"):
        raise WhyrankError("data: name collections to learn from, with -c or data.collection")
    check_settings(recipe)
    if isinstance(ranker, str):
        rankers.factory(parse_call(ranker).name)
    if isinstance(ranker, str) and parse_call(ranker).name == "run":
        raise WhyrankError(f"target {ranker!r}: a run has no scores for other texts; take a ranker that has")


def open_target(given: str | Ranker, setting: Setting) -> Target:
    """A ranker, or the one that a call string describes, and what is behind it."""
    ranker = open_ranker(given, setting) if isinstance(given, str) else given
    if not isinstance(ranker, NeuralRanker) or parse_call(ranker.name).arguments:
        return Target(ranker)
    folder, kind = ranker._folder, type(ranker).registered
    if kind == "cross":
        return _cross(ranker, folder)
    if kind == "bi":
        return Target(ranker, folder, BI, reads=_reads(folder)) if _means(folder) else Target(ranker, folder)
    return Target(ranker)


def _cross(ranker: Ranker, folder: Path) -> Target:
    """Of models of other packages only those of BERT's layers are read; the others are asked like any ranker."""
    ours, reads = architecture_of(folder) == "cross", attends(folder)
    return Target(ranker, folder, NETWORK if ours else "", reads) if ours or reads else Target(ranker)


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


def _index(collection: Collection, data: Mapping[str, Any], analyzer: str) -> LexicalIndex:
    given = ",".join(f"{name}={data[name]}" for name in ("k1", "b", "k2") if name in data)
    ranker = open_ranker(f"bm25(variant=parm{',' if given else ''}{given})", Setting(collection, analyzer))
    assert isinstance(ranker, LexicalRanker)
    return LexicalIndex.of(ranker, collection.docs)


def _asked_there(data: Mapping[str, Any], target: Target, travels: bool) -> bool:
    how = data.get("scored", "auto")
    if how == "there" and not target.asked_as:
        raise WhyrankError("data: scored: this target can be asked here only; leave it out")
    return how == "there" or (how == "auto" and travels and bool(target.asked_as))


def _scores(ranker: Ranker, engine: Engine, given: Asked, doc: npt.NDArray[np.int32]) -> npt.NDArray[np.float32]:
    query = np.repeat(np.arange(len(doc), dtype=np.int32), doc.shape[1])
    found = engine.score(ranker, given.queries, given.docs, query, doc.reshape(-1))
    if found.failures:
        failed = f"{len(found.failures):,} of {found.values.size:,} pairs ({one_line(found.failures[0].reason)})"
        raise WhyrankError(f"the target {ranker.name!r} has no finite score for {failed}; mend it")
    if not np.ptp(found.values.reshape(doc.shape), axis=1).any():
        raise WhyrankError(f"the target {ranker.name!r} scores all texts of a query alike: nothing to learn")
    return found.values.reshape(doc.shape).astype(np.float32)


def _with_target(sources: Sources, target: Target, alignment: str, there: bool) -> Sources:
    """The sources with the target's model where it is needed; the encoder's own folder need not travel twice."""
    needed = target.folder if there or alignment != "occlusion" else None
    if needed is None or needed == sources.encoder:
        return sources
    return Sources(sources.encoder, sources.tokenizer, teachers=[needed])


def _plain(recipe: Recipe) -> Recipe:
    """The recipe as one whose tokenizer, if it wants a new one, is built from the collections' texts."""
    encoder = str(model_folder(BUNDLED)) if recipe.encoder == BUNDLED else recipe.encoder
    return replace(recipe, encoder=encoder, phases={}, data={"collection": _collections(recipe.data)})


def _facts(recipe: Recipe, target: Target, alignment: str, analyzer: str) -> dict[str, Any]:
    return {
        "learner": f"parm(preset={recipe.phases.get('preset', 'target')})",
        "ranker": repr(target.ranker), "target": target.ranker.name, "asked_as": target.asked_as,
        "alignment": alignment, "analyzer": analyzer, "collection": _collections(recipe.data),
        **({"reads": target.reads} if target.reads else {}),
    }  # fmt: skip


def _collections(data: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys([*_names(data.get("collection")), *_names(data.get("cut"))]))


def _names(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else list(given) if isinstance(given, Sequence | Mapping) else []


def _occluded(made: ParmPrepared, ranker: Ranker, engine: Engine) -> ParmPrepared:
    network = new_network(made.recipe, 0, made.sources)
    assert isinstance(network, ParmNetwork)
    texts = piece_texts(network, list(made.queries), list(made.docs))
    return made._replace(occlusion=occlusion(ranker, engine, network.pieces, *texts, made.doc))


def _means(folder: Path) -> bool:
    """Whether a bi-encoder compares means of hidden states by cosine, and does nothing else."""
    pooling, declared = (
        config_of(folder, "1_Pooling/config.json"),
        config_of(folder, "config_sentence_transformers.json"),
    )
    mode = pooling.get("pooling_mode") or ("mean" if pooling.get("pooling_mode_mean_tokens", True) else "other")
    others = [name for name, on in pooling.items() if name.startswith("pooling_mode_") and on is True]
    plain = (
        mode == "mean"
        and set(others) <= {"pooling_mode_mean_tokens"}
        and not any((declared.get("prompts") or {}).values())
    )
    cosine = (declared.get("similarity_fn_name") or "cosine") == "cosine"
    return plain and cosine and _reads(folder) <= _MOST and not list(folder.glob("*_Dense"))


def _reads(folder: Path) -> int:
    """How many pieces of a text a bi-encoder reads, [CLS] and [SEP] included, as sentence-transformers has it."""
    said = config_of(folder, "sentence_bert_config.json").get("max_seq_length")
    return int(said or config_of(folder, "tokenizer_config.json").get("model_max_length") or _MOST)


def occlusion(
    target: Ranker, engine: Engine, pieces: Pieces, queries: PieceTexts, docs: PieceTexts, doc: npt.NDArray[np.int32]
) -> Occlusion:
    """The alignments of all queries and candidates."""
    asked, told = queries.spelled(pieces), docs.spelled(pieces)
    words, texts, rows = Texts(), Texts(), []
    pairs = [(q, int(d)) for q, several in enumerate(doc) for d in several]
    for q, d in pairs:
        rows.append((words.numbers(asked[q]), _without(told[d], texts)))
    query = np.concatenate([np.repeat(a, len(t)) for a, t in rows])
    text = np.concatenate([np.tile(t, len(a)) for a, t in rows])
    scores = engine.score(target, list(words.found), list(texts.found), query, text)
    if scores.failures:
        reason = one_line(scores.failures[0].reason)
        failed = f"{len(scores.failures):,} shortened texts ({reason})"
        raise WhyrankError(f"alignment: the target {target.name!r} has no finite score for {failed}; mend it")
    return _gathered(scores.values, rows)


def _without(words: Sequence[str], texts: Texts) -> npt.NDArray[np.int32]:
    """The number of a text, and those of the text without each of its words in turn."""
    less = {word: " ".join(other for other in words if other != word) for word in dict.fromkeys(words)}
    known = {word: texts.number(text) for word, text in less.items()}
    return np.array([texts.number(" ".join(words)), *(known[word] for word in words)], np.int32)


def _gathered(scores: npt.NDArray[np.float64], rows: Sequence[tuple[npt.NDArray[np.int32], ...]]) -> Occlusion:
    found, sizes, start = [], [], 0
    for query, text in rows:
        end = start + len(query) * len(text)
        grid = scores[start:end].reshape(len(query), len(text))
        found.append((grid[:, :1] - grid[:, 1:]).astype(np.float32).ravel())
        sizes.append(found[-1].size)
        start = end
    return Occlusion(np.concatenate(found), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
