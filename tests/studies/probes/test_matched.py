"""Matched probes against brute force, the published counts, and call strings of all probes."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrast_pairs import pairs_of
from whyrank.core import WhyrankError
from whyrank.data import Collection, open_collection
from whyrank.studies.probes import probes
from whyrank.studies.probes.characteristics import characteristics
from whyrank.studies.probes.matched import Tolerance, match, walk

NAMES = ["relevance", "length", "tf", "sum-tf", "overlap"]
WORD = st.sampled_from(["wall", "berlin", "fall", "cat", "a"])
COLLECTIONS = st.lists(
    st.tuples(st.lists(WORD, max_size=6).map(" ".join), st.integers(0, 2)), min_size=1, max_size=9
).map(
    lambda docs: Collection.of(
        {f"d{i}": text for i, (text, _) in enumerate(docs)},
        {"q": "berlin wall fall wall"},
        {"q": {f"d{i}": grade for i, (_, grade) in enumerate(docs)}},
    )
)


def measure(name, query, text, grade):
    """A characteristic of one document, straight from its definition; None where it is undefined."""
    words, terms = text.split(), sorted(set(query.split()))
    tf = [words.count(t) for t in terms]
    values = {"relevance": [grade], "length": [len(words)], "tf": tf, "sum-tf": [sum(tf)]}
    values["overlap"] = [sum(tf) / len(words) if sum(tf) else None]
    return values[name]


def higher(a, b):
    return None not in (*a, *b) and all(x >= y for x, y in zip(a, b, strict=True)) and a != b


def oracle(collection, variable, control):
    """Matched pairs by nested loops."""
    found = []
    for q, judged in collection.qrels.items():
        query = collection.queries[q]
        for (x, gx), (y, gy) in permutations(judged.items(), 2):
            one, two = (measure(control, query, collection.docs[d], g) for d, g in ((x, gx), (y, gy)))
            if None in (*one, *two) or one != two:
                continue
            if higher(*(measure(variable, query, collection.docs[d], g) for d, g in ((x, gx), (y, gy)))):
                found.append((q, (x, y)))
    return sorted(found)


@pytest.mark.parametrize(("variable", "control"), list(permutations(NAMES, 2)))
@given(collection=COLLECTIONS)
@settings(max_examples=15, deadline=None)
def test_equals_brute_force(variable, control, collection):
    """Same pairs, same orientation, each unordered pair once."""
    study = probes.create(f"matched/{variable}|{control}", analyzer="whitespace")
    found = study.contrasts(collection)
    ids = found.labels["doc_ids"].values().tolist()
    queries = found.labels["query_id"].values().tolist()
    assert sorted(zip(queries, map(tuple, ids), strict=True)) == oracle(collection, variable, control)
    assert all(count == 1 for count in Counter(frozenset(pair) for pair in map(tuple, ids)).values())
    texts = [tuple(collection.docs[d] for d in pair) for pair in ids]
    assert [p.docs for p in pairs_of(found)] == texts
    grades = [[collection.qrels["q"][d] for d in pair] for pair in ids]
    assert found.labels["relevance"].tolist() == grades


@given(collection=COLLECTIONS, random=st.randoms())
@settings(max_examples=15, deadline=None)
def test_order_of_judgements_does_not_matter(collection, random):
    judged = list(collection.qrels["q"].items())
    random.shuffle(judged)
    other = Collection.of(collection.docs, collection.queries, {"q": dict(judged)})
    for name in ("matched/tf|length", "matched/length|tf", "matched/overlap|relevance(tolerance=1)"):
        study = probes.create(name, analyzer="whitespace")
        assert study.contrasts(other).fingerprint == study.contrasts(collection).fingerprint


VALUES = st.integers(1, 3).flatmap(
    lambda width: st.lists(
        st.lists(st.floats(-3, 3) | st.just(np.nan) | st.integers(-2, 2).map(float), min_size=width, max_size=width),
        max_size=7,
    )
)


@given(VALUES, st.lists(st.integers(-2, 2).map(float), max_size=7), st.floats(0, 2), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=150, deadline=None)
def test_tolerance_equals_its_formula(controls, variables, absolute, relative, margin):
    n = min(len(controls), len(variables))
    control = np.array(controls[:n]).reshape(n, -1) if n else np.empty((0, 1))
    variable = np.array(variables[:n]).reshape(n, 1)
    found = set(map(tuple, match(control, variable, Tolerance(absolute, relative, margin)).tolist()))
    expected = set()
    for i, j in permutations(range(n), 2):
        near = all(
            abs(a - b) <= absolute + relative * max(abs(a), abs(b))
            for a, b in zip(control[i], control[j], strict=True)
        )
        if near and variable[i, 0] - margin > variable[j, 0]:
            expected.add((i, j))
    assert found == expected


def released_walk(control, variable):
    """The walk of the released code, as the specification tells it."""
    docs = sorted(range(len(control)), key=lambda i: sum(control[i]))
    found = []
    for at, a in enumerate(docs):
        for part in (docs[at + 1 :], docs[at - 1 :: -1]):
            for b in part:
                if list(control[a]) != list(control[b]):
                    break
                if higher(list(variable[a]), list(variable[b])):
                    found.append((a, b))
    return sorted(found)


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), max_size=9))
@settings(max_examples=150, deadline=None)
def test_compat_equals_the_released_walk(rows):
    control = np.array([row[:2] for row in rows], dtype=float).reshape(-1, 2)
    variable = np.array([row[2:] for row in rows], dtype=float).reshape(-1, 1)
    assert sorted(map(tuple, walk(control, variable, Tolerance()).tolist())) == released_walk(
        control.tolist(), variable.tolist()
    )


COUNTS = {
    "relevance|length": 19_676, "relevance|tf": 31_619, "relevance|sum-tf": 111_123, "relevance|overlap": 4_762,
    "length|relevance": 515_401, "length|tf": 88_582, "length|sum-tf": 221_332, "length|overlap": 3_963,
    "tf|relevance": 303_058, "tf|length": 19_770, "tf|overlap": 2_294, "tf|sum-tf": 0,
    "sum-tf|relevance": 413_464, "sum-tf|length": 27_948, "sum-tf|overlap": 3_963, "sum-tf|tf": 0,
    "overlap|relevance": 357_470, "overlap|length": 20_819, "overlap|tf": 13_980, "overlap|sum-tf": 146_730,
}  # fmt: skip


@pytest.fixture(scope="module")
def dl19(data_folder):
    return open_collection(str(data_folder / "msmarco_dl19"))


@pytest.fixture(scope="module")
def terrier(data_folder):
    return f"terrier(stopwords={data_folder / 'stopwords' / 'terrier.txt'})"


def test_published_counts_to_the_unit(dl19, terrier):
    """All 18 sample counts of the ABNIRML tables (arXiv v1; 12 of them also in TACL), and two that are empty."""
    studies = {name: probes.create(f"matched/{name}", analyzer=terrier, compat="abnirml") for name in COUNTS}
    assert {name: len(study.contrasts(dl19)) for name, study in studies.items()} == COUNTS


@pytest.mark.parametrize(
    ("name", "martin", "original"),
    [("relevance|tf", 57_207, 57_824), ("length|tf", 139_444, 142_512), ("overlap|tf", 64_842, 64_804)],
)
def test_full_match_set_where_the_published_walk_misses_pairs(dl19, data_folder, name, martin, original):
    """With TF as control the walk finds a part only; the full set depends on the form of the Porter stemmer."""
    stop = data_folder / "stopwords" / "terrier.txt"
    limits = "keep_query_stops=True,max_length=20,max_digits=4,max_repeat=3"
    as_first_printed = f"chain(tokens=ascii,stop={stop},stem=porter-original,{limits})"
    for analyzer, expected in ((f"terrier(stopwords={stop})", martin), (as_first_printed, original)):
        study = probes.create(f"matched/{name}", analyzer=analyzer)
        assert len(study.contrasts(dl19)) == expected


def test_registered_characteristics_make_probes():
    @characteristics.register("shouting")
    def shouting(pool):
        """more exclamation marks"""
        return np.array([text.count("!") for text in pool.texts])

    try:
        collection = Collection.of({"a": "x! y", "b": "x y", "c": "z"}, {"q": "x"}, {"q": {"a": 0, "b": 0, "c": 0}})
        study = probes.create("matched/shouting|length", analyzer="whitespace")
        assert [p.docs for p in pairs_of(study.contrasts(collection))] == [("x! y", "x y")]
        assert "exclamation marks" in study.positive
        assert "matched/length|shouting" in probes.names()
    finally:
        characteristics.forget("shouting")
    assert "matched/length|shouting" not in probes.names()


def test_queries_with_one_grade_are_counted():
    docs = {"d1": "a b", "d2": "a c", "d3": "a d"}
    qrels = {"q": {"d1": 1, "d2": 1}, "r": {"d3": 1}, "s": {"d1": 1, "d3": 2}, "none": {"gone": 1}}
    queries = dict.fromkeys(qrels, "a")
    found = probes.create("matched/relevance|length").contrasts(Collection.of(docs, queries, qrels))
    assert (len(found), found.dropped) == (1, {"queries with one grade only": 3})


def test_pairs_from_the_top_of_a_run():
    docs = {f"d{i}": "w " * i for i in range(1, 6)}
    run = {"q": {"d1": 5.0, "d2": 4.0, "d3": 3.0}}
    collection = Collection.of(docs, {"q": "w"}, {"q": {"d1": 1, "d2": 0}}, runs={"first": run})
    study = probes.create("matched/length|relevance", analyzer="whitespace", pairs="top:3")
    assert len(study.contrasts(collection)) == 0, "an unjudged document has no relevance to hold equal"
    study = probes.create("matched/sum-tf|length(tolerance=9)", analyzer="whitespace", pairs="top:3")
    found = study.contrasts(collection)
    assert sorted(map(tuple, found.labels["doc_ids"].values().tolist())) == [("d2", "d1"), ("d3", "d1"), ("d3", "d2")]
    assert set(found.labels["relevance_group"].values()) == {"one relevant", "unjudged"}


# Call strings of probes of all families.


@pytest.mark.parametrize(
    "spec",
    [
        "matched/length|tf",
        "matched/tf|overlap(tolerance=10%,margin=1.5,compat=abnirml)",
        "matched/tf|length(analyzer='terrier(stopwords=x)',pairs='top:5')",
        "edited/typos(rate=0.5)",
        "edited/delete-sentence(which=last)",
        "edited/shuffle-words(respace=True,compat=abnirml,analyzer=krovetz)",
        "transferred/fluency(pairs=x.tsv)",
        "transferred/factuality(entity=GPE)",
        "transferred/paraphrase(query=title,compat=abnirml)",
    ],
)
def test_call_strings_parse_back(spec):
    made = probes.create(spec)
    assert probes.create(made.id) == made


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("matched/length|tf(tolerance=-1)", "tolerance"),
        ("matched/length|tf(compat=x)", "compat"),
        ("matched/length|tf(margin=-2)", "margin"),
        ("edited/typos(rat=1)", "'rate'"),
        ("edited/shuffel-words", "shuffle-words"),
        ("edited/case-fold(compat=x)", "abnirml"),
        ("transferred/fluency(seed=-1)", "seed"),
    ],
)
def test_wrong_ones_are_refused(spec, says):
    with pytest.raises(WhyrankError, match=says):
        probes.create(spec)
