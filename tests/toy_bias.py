"""Rankers with a bias that is known, and a collection and a table to look for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from whyrank.data import Collection, open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.report import run_plan
from whyrank.scoring import Engine
from whyrank.studies import Plan, Threshold
from whyrank.studies.bias import BiasResult, bias_studies
from whyrank.tables import TermTable

_BRANDS = "honda ford toyota volvo audi mazda fiat jeep renault nissan lexus peugeot"
_TERMS = "car engine price driver family garage motor wheel road travel city market safety speed repair insurance"
BRANDS, TERMS = tuple(_BRANDS.split()), tuple(_TERMS.split())
YEARS = tuple(str(year) for year in range(2000, 2013))
_WORDS = re.compile(r"\w+")


def noise(seed: int, *texts: str) -> float:
    """A number that looks normal, of standard deviation 1, and depends on the texts alone."""
    digest = blake2b("\x1f".join((str(seed), *texts)).encode(), digest_size=24).digest()
    parts = np.frombuffer(digest, "<u2").astype(np.float64) / 65536
    return float(parts.sum() - 6)  # twelve uniform numbers


@dataclass(frozen=True)
class Toy:
    """A ranker: noise for every pair of texts, and what it adds for words, and for endings of words of the query."""

    seed: int = 0
    words: tuple[tuple[str, float], ...] = ()
    endings: tuple[tuple[str, float], ...] = ()
    scale: float = 0.1

    @property
    def name(self) -> str:
        return f"toy{self.seed}"

    def one(self, query: str, doc: str) -> float:
        words = set(_WORDS.findall(doc.lower()))
        longer = {q + ending: gain for q in _WORDS.findall(query.lower()) for ending, gain in self.endings}
        gains = [gain for word, gain in (*self.words, *longer.items()) if word in words]
        return 1 + sum(gains) + self.scale * noise(self.seed, query, doc)

    def score(self, queries, docs):
        return np.array([self.one(q, d) for q, d in zip(queries, docs, strict=True)])


PLANTED = Toy(words=(("honda", 0.3), ("2007", -0.25)), endings=(("q", 0.2),), scale=0.05)


def toy_collection(texts: int = 24, about: str = "") -> Collection:
    """Texts with a brand or a year each, and a query with a word of the text that is judged for it, `about` something."""
    docs, queries, qrels = {}, {}, {}
    for i in range(texts):
        term, brand, year = TERMS[i % len(TERMS)], BRANDS[i % len(BRANDS)], YEARS[i % len(YEARS)]
        queries[f"q{i}"] = f"when is a {term} {i} useful{about}"
        docs[f"b{i}"] = f"Note {i}. The {term} of a {brand.capitalize()} is described on page {i}."
        docs[f"y{i}"] = f"Note {i}. The {term} was described in {year} on page {i}."
        qrels[f"q{i}"] = {f"b{i}": 1, f"y{i}": 1}
    return Collection.of(docs, queries, qrels, name="toys")


def toy_table(ranker: Toy, letters: str = "abcdeq") -> TermTable:
    """What the ranker says of every query term with every brand, year and longer form, moved to be above zero."""
    pairs = [(q, d) for q in TERMS for d in (*BRANDS, *YEARS, *(q + letter for letter in letters))]
    weights = ranker.score([q for q, _ in pairs], [d for _, d in pairs])
    return TermTable.from_triples([q for q, _ in pairs], [d for _, d in pairs], np.clip(weights - 0.4, 0.001, None))


def ask_bias(studies, ranker, collection="sample", *, resamples=None, delta=None, seed=0, **plan) -> list[BiasResult]:
    """The details of bias studies that one ranker was asked, with so many draws in every test."""
    opened = open_collection(collection) if isinstance(collection, str) else collection
    asked = open_ranker(ranker, Setting(opened)) if isinstance(ranker, str) else ranker
    listed = studies if isinstance(studies, list) else [studies]
    made = [bias_studies.create(each, seed=seed) if isinstance(each, str) else each for each in listed]
    used = Threshold(known=False) if delta is None else Threshold(delta)
    named = {each if isinstance(each, str) else each.id: study for each, study in zip(listed, made, strict=True)}
    plan = {"engine": Engine(), "draws": resamples} | plan
    return run_plan(Plan(opened, named, [asked], thresholds={asked.name: used}, seed=seed, **plan), {}).details
