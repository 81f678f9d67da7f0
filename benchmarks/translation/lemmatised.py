"""The field of lemmas: the analyzer `lemmas` without what lemmas do not need, kept from run to run.

    WHYRANK_DATA=FOLDER python benchmarks/translation/lemmatised.py

spaCy's lemmas come from its tagger and from rules; its parser and its entities take half of the time and are left
out. The command lemmatises the documents and questions of all targets, and says how fast that was.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from targets import targets

from whyrank.core import cache_folder
from whyrank.text import Analyzer, analyzers, steps
from whyrank.text.annotation import ENGLISH, find_pipeline
from whyrank.text.presets import CONTRACTIONS, FUNCTION_WORDS

NAME, STOPS, AT_ONCE = "tagged-lemmas", FUNCTION_WORDS | CONTRACTIONS, 64


@analyzers.register(NAME)
def tagged_lemmas() -> Analyzer:
    """Lemmas in lower case, without function words and contractions."""
    return Analyzer.of_batches(NAME, lemmatised, [steps.lower, steps.stop(STOPS), with_a_letter])


def with_a_letter(token: str) -> str | None:
    """The token, or None when it has neither a letter nor a digit."""
    return token if any(map(str.isalnum, token)) else None


def lemmatised(texts: Sequence[str]) -> list[list[str]]:
    """The lemmas of texts whose tokens are no function words; what is not known yet is found and kept."""
    known, keys = kept(), [hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24] for text in texts]
    fresh = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    with open(place(), "a", encoding="utf-8") as file:
        for key, tokens in zip(fresh, tagged(list(fresh.values())), strict=True):
            known[key] = tokens
            file.write(json.dumps([key, tokens]) + "\n")
    return [known[key] for key in keys]


def tagged(texts: Sequence[str]) -> Any:
    """Lemmas, or tokens that have none, in batches whose words are forgotten after each."""
    nlp = pipeline()
    for start in range(0, len(texts), AT_ONCE):
        batch = [text.encode("utf-8", "replace").decode() for text in texts[start : start + AT_ONCE]]
        with nlp.memory_zone():
            yield from [
                [t.lemma_ or t.text for t in doc if steps.lower(t.text) not in STOPS]
                for doc in nlp.pipe(batch, batch_size=AT_ONCE)
            ]


@cache
def pipeline() -> Any:
    nlp = find_pipeline(ENGLISH).load()
    for name in ("parser", "ner"):
        nlp.disable_pipe(name)
    return nlp


@cache
def kept() -> dict[str, list[str]]:
    """What was found before, a half-written last line aside."""
    found = {}
    if place().exists():
        for line in place().read_text(encoding="utf-8").splitlines():
            if line.endswith("]]"):
                key, tokens = json.loads(line)
                found[key] = tokens
    return found


def place() -> Path:
    cache_folder().mkdir(parents=True, exist_ok=True)
    return cache_folder() / "translation-lemmas.jsonl"


def main() -> None:
    begin, words = time.process_time(), 0
    for name, target in sorted(
        targets(Path(os.environ["WHYRANK_DATA"])).items(), key=lambda row: len(row[1].test.docs)
    ):
        parts = [part for part in (target.test, target.fusion, target.dev) if part is not None]
        texts = [*target.test.docs.values(), *(text for part in parts for text in part.queries.values())]
        for start in range(0, len(texts), 1024):
            lemmatised(texts[start : start + 1024])
        words += sum(len(text.split()) for text in texts)
        seconds = time.process_time() - begin
        print(
            f"{name}: {words:,} words, {seconds:.0f} processor seconds, {words / seconds:,.0f} a second", flush=True
        )


if __name__ == "__main__":
    main()
