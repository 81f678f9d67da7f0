"""Every axiom on two documents by plain loops over tokens, straight from its definition, and collections to try them on."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from whyrank.data import Collection, open_collection
from whyrank.text import analyzers, cut_texts

WORD = st.sampled_from(["a", "b", "c", "x", "y"])
QUERY = st.lists(st.sampled_from(["a", "b", "c", "unseen"]), max_size=4).map(" ".join)
DOCS = st.lists(st.lists(WORD, max_size=8).map(" ".join), min_size=1, max_size=8)
SCORES = st.lists(st.sampled_from([1.0, 1.05, 1.1, 1.25, -2.0, -1.9, 0.0, math.inf, None]), min_size=8, max_size=8)
CUTS = st.sampled_from([None, 3, 5])
LENGTHS = st.sampled_from([0, 1, 2, 10, "0%", "25%", "60%", "150%"])


def made(docs, queries, scores=()):
    """A collection in which all documents are judged for all queries, and a run `first` scores some for the first."""
    texts = {f"d{i}": text for i, text in enumerate(docs)}
    named = {f"q{i}": text for i, text in enumerate(queries)}
    scored = {d: score for d, score in zip(texts, scores, strict=False) if score is not None}
    judged = {d: i % 3 for i, d in enumerate(texts)}
    return Collection.of(texts, named, dict.fromkeys(named, judged), runs={"first": {"q0": scored}})


COLLECTIONS = st.builds(made, DOCS, st.lists(QUERY, min_size=1, max_size=2), SCORES)


def crowd(size=36, longest=12, seed=0):
    """Enough documents of few words for each axiom to have instances."""
    draw = random.Random(seed)
    docs = [" ".join(draw.choices("aabbcxyz", k=draw.randint(0, longest))) for _ in range(size)]
    scores = [draw.choice([1.0, 1.05, 1.2, None]) for _ in docs]
    return made(docs, ["a b", "a b c b", "c b a"], scores)


def real(folder, size=24):
    """Ten short queries of a real collection with so many judged documents each, the first of them shortened too."""
    whole = open_collection(str(folder))
    shortest = sorted(whole.qrels, key=lambda q: (len(whole.queries[q].split()), q))[:10]
    qrels = {q: [d for d in whole.qrels[q] if d in whole.docs][:size] for q in shortest}
    docs = {d: whole.docs[d] for judged in qrels.values() for d in judged}
    docs |= {f"{d}-": " ".join(docs[d].split()[:-2]) for judged in qrels.values() for d in judged[:6]}
    listed = {q: dict.fromkeys([*judged, *(f"{d}-" for d in judged[:6])], 0) for q, judged in qrels.items()}
    runs = {"first": {q: {d: 1.0 + i % 7 / 50 for i, d in enumerate(judged)} for q, judged in listed.items()}}
    return Collection.of(docs, {q: whole.queries[q] for q in qrels}, listed, runs=runs)


class Doc(NamedTuple):
    id: str
    tokens: tuple
    count: Counter
    length: int


class Facts(NamedTuple):
    """A query, how common words are, word vectors, and the scores of a run."""

    query: tuple
    terms: list
    df: Counter
    cf: Counter
    n_docs: int
    space: Space
    run: dict

    def idf(self, term):
        return math.log((self.n_docs + 1) / max(self.df[term], 1))

    def sum(self, doc):
        return sum(doc.count[q] for q in self.terms)

    def distinct(self, doc):
        return sum(doc.count[q] > 0 for q in self.terms)


def allowance(one, two, tolerance):
    if str(tolerance).endswith("%"):
        return Fraction(tolerance[:-1]) / 100 * Fraction(max(abs(one), abs(two)))
    return Fraction(tolerance)


def near(one, two, tolerance):
    return tolerance is None or Fraction(abs(one - two)) <= allowance(one, two, tolerance)


def alike_in_length(axiom, one, two):
    return near(one.length, two.length, axiom.length)


# Counts of query terms.


def tfc1(axiom, facts, one, two):
    least = all(one.count[q] >= two.count[q] for q in facts.terms)
    return alike_in_length(axiom, one, two) and facts.sum(one) > facts.sum(two) >= 1 and least


def tfc3(axiom, facts, one, two):
    for a, b in permutations(facts.terms, 2):
        if one.count[a] == 0 or one.count[b] == 0 or two.count[b] != 0:
            continue
        others = all(one.count[q] == two.count[q] for q in facts.terms if q not in (a, b))
        similar = near(facts.idf(a), facts.idf(b), axiom.idf) and alike_in_length(axiom, one, two)
        if two.count[a] == one.count[a] + one.count[b] and others and similar:
            return True
    return False


def tdc(axiom, facts, one, two):
    differ = [q for q in facts.terms if one.count[q] != two.count[q]]
    if len(differ) != 2 or not alike_in_length(axiom, one, two):
        return False
    for a, b in (differ, differ[::-1]):
        same = one.count[a] + one.count[b] == two.count[a] + two.count[b]
        if same and one.count[a] > two.count[a] and facts.idf(a) >= facts.idf(b):
            return True
    return False


def m_tdc(axiom, facts, one, two):
    differ = [q for q in facts.terms if one.count[q] != two.count[q]]
    if facts.sum(one) != facts.sum(two) or not differ or not alike_in_length(axiom, one, two):
        return False
    covered = set()
    for a, b in permutations(differ, 2):
        rarity = [1 / max(facts.cf[q], 1) if axiom.compat else facts.idf(q) for q in (a, b)]
        swapped = one.count[a] == two.count[b] and one.count[b] == two.count[a] and one.count[a] > two.count[a]
        if swapped and rarity[0] >= rarity[1] and facts.query.count(a) >= facts.query.count(b):
            covered |= {a, b}
    return covered == set(differ)


def tf_lnc(axiom, facts, one, two):
    for w in facts.terms:
        others = all(one.count[q] == two.count[q] for q in facts.terms if q != w)
        rests = [doc.length - doc.count[w] for doc in (one, two)]
        if one.count[w] > two.count[w] and others and near(*rests, axiom.length):
            return True
    return False


def lnc1(axiom, facts, one, two):
    same = all(one.count[q] == two.count[q] for q in facts.terms)
    others = [t for t in two.count if t not in facts.terms]
    if axiom.compat:
        return any(one.count[t] >= 1 and two.count[t] == one.count[t] + 1 for t in others)
    if axiom.variant == "length":
        return same and two.length > one.length
    return same and any(two.count[t] == one.count[t] + 1 for t in others)


def lb1(axiom, facts, one, two):
    only = [w for w in facts.terms if one.count[w] > 0 and two.count[w] == 0]
    if axiom.scores is None:
        others = all(one.count[q] == two.count[q] for q in facts.terms if q not in only)
        similar = near(one.length, two.length, axiom.length) and len(only) == 1 and others
    else:
        scores = [facts.run.get(doc.id, math.nan) for doc in (one, two)]
        lacking = any(two.count[q] and not one.count[q] for q in facts.terms)
        similar = all(map(math.isfinite, scores)) and near(*scores, axiom.margin) and only and not lacking
    return bool(similar) and len(facts.terms) >= 2


def and_(axiom, facts, one, two):
    full = [facts.distinct(doc) == len(facts.terms) for doc in (one, two)]
    return len(facts.terms) >= 2 and alike_in_length(axiom, one, two) and full == [True, False]


def m_and(axiom, facts, one, two):
    more = facts.distinct(one) > facts.distinct(two)
    return len(facts.terms) >= 2 and alike_in_length(axiom, one, two) and more


def div(axiom, facts, one, two):
    def jaccard(doc):
        terms, words = set(facts.terms), set(doc.count)
        return Fraction(len(terms & words), max(1, len(terms | words)))

    return alike_in_length(axiom, one, two) and jaccard(one) < jaccard(two)


# Positions of query terms; here a text is a tuple of tokens.


@cache
def gap(query, doc):
    found = [abs(i - j) for i, s in enumerate(doc) for j, t in enumerate(doc) if s in query and t in query and s != t]
    return min(found, default=None)


@cache
def phrase(query, doc):
    return next((i for i in range(len(doc)) if doc[i : i + len(query)] == query), math.inf)


@cache
def complete(query, doc):
    """All windows (first, last) with all query terms."""
    ends = [(i, j) for i in range(len(doc)) for j in range(i, len(doc))]
    return {(i, j) for i, j in ends if set(query) <= set(doc[i : j + 1])}


@cache
def grouping(query, doc):
    """Other tokens in the tightest minimal window, and minus how many windows are as tight: smaller is better."""
    windows = complete(query, doc)
    minimal = [(i, j) for i, j in windows if not {(i + 1, j), (i, j - 1)} & windows]
    others = [sum(token not in query for token in doc[i : j + 1]) for i, j in minimal]
    return min(others), -others.count(min(others))


@cache
def mean_span(query, doc):
    windows = complete(query, doc)
    hits = [i for i, token in enumerate(doc) if token in query]
    return Fraction(sum(min(j - i + 1 for i, j in windows if i <= k <= j) for k in hits), len(hits))


def tp(query, one, two, compat):
    distances = [gap(query, doc) for doc in ((two, one) if compat else (one, two))]
    return None not in distances and distances[0] < distances[1]


def prox1(query, one, two, compat):
    shared = set(query) & set(one) & set(two)
    sums = [sum(abs(d.index(q) - d.index(r)) - 1 for q, r in combinations(shared, 2)) for d in (one, two)]
    return len(shared) >= 2 and sums[0] < sums[1]


def prox2(query, one, two, compat):
    shared = set(query) & set(one) & set(two)
    return len(shared) >= 1 and sum(one.index(q) for q in shared) < sum(two.index(q) for q in shared)


def prox3(query, one, two, compat):
    return len(query) >= 2 and phrase(query, one) < phrase(query, two)


def qphra(query, one, two, compat):
    return len(query) >= 2 and phrase(query, one) < phrase(query, two) == math.inf


def with_all(query, one, two):
    return len(set(query)) >= 2 and set(query) <= set(one) and set(query) <= set(two)


def prox4(query, one, two, compat):
    return with_all(query, one, two) and grouping(query, one) < grouping(query, two)


def prox5(query, one, two, compat):
    return with_all(query, one, two) and mean_span(query, one) < mean_span(query, two)


def positional(rule):
    def rule_of(axiom, facts, one, two):
        return alike_in_length(axiom, one, two) and rule(facts.query, one.tokens, two.tokens, axiom.compat)

    return rule_of


# Meaning of words.


class Space:
    """Unit vectors of words, and the directions of texts, each computed once."""

    def __init__(self, vectors):
        self.vectors = {word: self.unit(np.asarray(v, np.float32).astype(float)) for word, v in vectors.items()}
        self.known = {}

    @staticmethod
    def unit(vector):
        size = math.sqrt(sum(x * x for x in vector))
        return vector / size if size > 1e-9 else None

    def mean(self, words):
        key = tuple(sorted(words))
        if key not in self.known:
            found = [self.vectors[word] for word in key if word in self.vectors]
            self.known[key] = self.unit(sum(found) / len(found)) if found else None
        return self.known[key]

    def cosine(self, one, two):
        return math.nan if one is None or two is None else float(one @ two)

    def others(self, facts, doc):
        return self.mean([word for word in doc.tokens if word not in facts.terms])

    def to_query(self, facts, doc):
        return self.cosine(self.others(facts, doc), self.mean(facts.query))


def stmc1(axiom, facts, one, two):
    counted = facts.sum if axiom.compat or axiom.coverage == "occurrences" else facts.distinct
    first, second = (facts.space.to_query(facts, doc) for doc in ((two, one) if axiom.compat else (one, two)))
    return counted(one) == counted(two) and first > second + 1e-9


def stmc2(axiom, facts, one, two):
    alike = facts.space.cosine(facts.space.others(facts, one), facts.space.others(facts, two))
    return 1 - alike <= axiom.distance + 1e-9 and facts.sum(one) > facts.sum(two)


def stmc3(axiom, facts, one, two):
    first, second = (facts.space.to_query(facts, doc) for doc in (one, two))
    room = allowance(one.length, two.length, axiom.length)
    if abs(one.length - two.length) >= room or facts.distinct(one) != facts.distinct(two):
        return False
    if axiom.compat:
        return two.length - facts.sum(two) > one.length - facts.sum(one) and first + 1e-9 < second
    return facts.sum(two) > facts.sum(one) and first > second + 1e-9


def reg(axiom, facts, one, two, best=min):
    space, known = facts.space, [q for q in facts.terms if q in facts.space.vectors]
    if len(known) < 3 or facts.sum(one) != facts.sum(two) or not alike_in_length(axiom, one, two):
        return False
    like = {}
    for q in known:
        cosines = [space.cosine(space.vectors[q], space.vectors[other]) for other in known if other != q]
        like[q] = sum(cosines) / len(cosines)
    [star, *more] = [q for q in known if abs(like[q] - best(like.values())) <= 1e-9]
    return not more and one.count[star] > two.count[star]


def anti_reg(axiom, facts, one, two):
    return reg(axiom, facts, one, two, best=max)


RULES: dict[str, Callable[..., bool]] = {
    "TFC1": tfc1, "TFC3": tfc3, "TDC": tdc, "M-TDC": m_tdc, "TF-LNC": tf_lnc, "LNC1": lnc1, "LB1": lb1, "AND": and_,
    "M-AND": m_and, "DIV": div, "STMC1": stmc1, "STMC2": stmc2, "STMC3": stmc3, "REG": reg, "ANTI-REG": anti_reg,
    "TP": positional(tp), "PROX1": positional(prox1), "PROX2": positional(prox2), "PROX3": positional(prox3),
    "PROX4": positional(prox4), "PROX5": positional(prox5), "QPHRA": positional(qphra),
}  # fmt: skip


def pools(axiom, collection, space=None):
    """For each query its id, the facts and the judged documents, as the analyzer (or `split`) cuts and splits them."""
    analyzer = analyzers.create(axiom.analyzer)
    plain = axiom.analyzer == "whitespace"
    docs, run = collection.docs, collection.runs.get("first", {})
    whole = {d: text.split() if plain else analyzer.terms(text) for d, text in docs.items()}
    short = dict(zip(docs, cut_texts(analyzer, list(docs.values()), axiom.max_tokens), strict=True))
    cut = {d: whole[d][: axiom.max_tokens] if plain else analyzer.terms(short[d]) for d in docs}
    df, cf = Counter(t for words in whole.values() for t in set(words)), Counter(t for w in whole.values() for t in w)
    for q, judged in collection.qrels.items():
        query = tuple(collection.queries[q].split() if plain else analyzer.query_terms(collection.queries[q]))
        facts = Facts(query, sorted(set(query)), df, cf, len(docs), space, run.get(q, {}))
        yield q, facts, {d: Doc(d, tuple(cut[d]), Counter(cut[d]), len(cut[d])) for d in judged}


def expected(axiom, collection, space=None):
    """All instances: where both documents must win, none, but in both orders as some released code has it."""
    both_ways, rule, found = axiom.compat is not None and axiom.name in ("M-TDC", "LNC1"), RULES[axiom.name], []
    for query_id, facts, docs in pools(axiom, collection, space):
        for i, j in combinations(docs, 2):
            first, second = rule(axiom, facts, docs[i], docs[j]), rule(axiom, facts, docs[j], docs[i])
            found += [(query_id, (i, j))] * (first and (both_ways or not second))
            found += [(query_id, (j, i))] * (second and (both_ways or not first))
    return sorted(found)


def found_by(axiom, collection):
    """What the axiom finds: query ids and document ids, sorted."""
    contrasts = axiom.contrasts(collection)
    ids = contrasts.labels["doc_ids"].values().tolist()
    return sorted(zip(contrasts.labels["query_id"].values().tolist(), map(tuple, ids), strict=True))
