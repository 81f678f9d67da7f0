"""LB1 against nested loops, and the texts that LB2 makes against all that its definition allows."""

from __future__ import annotations

import math
import re
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from whyrank.core import WhyrankError
from whyrank.data import Collection, open_collection, write_run
from whyrank.rankers import Setting, open_ranker
from whyrank.studies.axioms.bounds import LB1, LB2, TRIES, replace_word, spellings
from whyrank.studies.files import pairs_of
from whyrank.text import Analyzer, analyzers

WORD = st.sampled_from(["wall", "berlin", "fall", "cat", "a"])
TEXT = st.lists(WORD, max_size=7).map(" ".join)
QUERY = st.lists(WORD, max_size=5).map(" ".join)
SCORE = st.sampled_from([1.0, 1.05, 1.1, 1.0, 1.05, 1.25, -2.0, -1.9, 0.0, math.inf, None])


def judged_for_all(docs, queries, scores=()):
    """Every document is judged for every query but the last, which no query judges; a run scores some."""
    named = {f"d{i}": text for i, text in enumerate(docs)}
    asked = {f"q{i}": query for i, query in enumerate(queries)}
    judged = list(named)[: max(1, len(named) - 1)]
    scored = {d: score for d, score in zip(judged, scores, strict=False) if score is not None}
    run = dict.fromkeys(list(asked)[:1], scored)
    return Collection.of(
        named, asked, {q: {d: i % 3 for i, d in enumerate(judged)} for q in asked}, runs={"first": run}
    )


COLLECTIONS = st.builds(
    judged_for_all,
    st.lists(TEXT, min_size=1, max_size=9),
    st.lists(QUERY, min_size=1, max_size=2),
    st.lists(SCORE, min_size=9, max_size=9),
)


def near(tolerance, one, two):
    share = isinstance(tolerance, str)
    allowed = float(tolerance.rstrip("%")) / 100 * max(abs(one), abs(two)) if share else tolerance
    return tolerance is None or abs(one - two) <= allowed


def missing_term(asked, one, two):
    """LB1 without a run: one query term is in the first text only, all others are equally frequent."""
    only = [w for w in asked if one.count(w) > 0 and two.count(w) == 0]
    others = [q for q in asked if q not in only]
    return len(only) == 1 and all(one.count(q) == two.count(q) for q in others)


def more_terms(asked, one, two):
    """LB1 with a run: the first has a query term that the second lacks, but not the other way round."""
    return any(q in one and q not in two for q in asked) and not any(q in two and q not in one for q in asked)


def lb1_oracle(collection, study, terms=str.split):
    found = []
    for q, judged in collection.qrels.items():
        asked = set(terms(collection.queries[q]))
        words = {d: terms(collection.docs[d]) for d in judged}
        for x, y in permutations(judged, 2):
            one, two = words[x], words[y]
            if study.scores is None:
                holds = near(study.length, len(one), len(two)) and missing_term(asked, one, two)
            else:
                run = {
                    d: score for d, score in collection.runs[study.scores].get(q, {}).items() if math.isfinite(score)
                }
                holds = x in run and y in run and near(study.margin, run[x], run[y]) and more_terms(asked, one, two)
            if holds and len(asked) >= 2:
                found.append((q, (x, y), (collection.docs[x], collection.docs[y])))
    return sorted(found)


def asked_of(found):
    if not len(found):
        return []
    queries, ids = (found.labels[name].values().tolist() for name in ("query_id", "doc_ids"))
    texts = [pair.docs for pair in pairs_of(found)]
    return sorted(zip(queries, map(tuple, ids), texts, strict=True))


LB1S = st.builds(
    LB1,
    analyzer=st.just("whitespace"),
    length=st.sampled_from([None, 0, 1, 10, "30%"]),
    scores=st.sampled_from([None, "first"]),
    margin=st.sampled_from(["10%", "0%", 0.1, "50%"]),
)


@given(collection=COLLECTIONS, study=LB1S)
@settings(max_examples=200)
def test_lb1_equals_brute_force(collection, study):
    assert asked_of(study.contrasts(collection)) == lb1_oracle(collection, study)


def ten_queries(folder, name):
    """The ten shortest queries, with up to 60 judged documents each and a run of half of them."""
    whole = open_collection(str(folder / name))
    shortest = sorted(whole.qrels, key=lambda q: len(whole.queries[q].split()))[:10]
    qrels = {q: dict(list(whole.qrels[q].items())[:60]) for q in shortest}
    docs = {d: whole.docs[d] for judged in qrels.values() for d in judged}
    collection = Collection.of(docs, {q: whole.queries[q] for q in qrels}, qrels)
    bm25 = open_ranker("bm25", Setting(collection))
    for q, judged in qrels.items():
        some = list(judged)[::2]
        scores = bm25.score([collection.queries[q]] * len(some), [docs[d] for d in some])
        collection.runs.setdefault("bm25", {})[q] = dict(zip(some, scores.tolist(), strict=True))
    return collection


@pytest.fixture(scope="module", params=["cranfield", "msmarco_dl19"])
def real(request, data_folder):
    return ten_queries(data_folder, request.param)


def known_terms(collection):
    texts = (*collection.docs.values(), *collection.queries.values())
    return {text: analyzers.create("lucene").terms(text) for text in texts}


def test_lb1_equals_brute_force_on_real_texts(real):
    terms = known_terms(real).__getitem__
    for study in (LB1(max_tokens=None), LB1(max_tokens=None, length=None), LB1(max_tokens=None, scores="bm25")):
        found = asked_of(study.contrasts(real))
        assert found == lb1_oracle(real, study, terms)
        assert found


@pytest.mark.parametrize(
    ("query", "first", "second", "wanted"),
    [
        ("berlin wall", "berlin wall", "wall cat", 1),
        ("berlin wall", "berlin berlin wall", "wall cat", 1),  # present is enough
        ("berlin berlin", "berlin", "cat", 0),  # one distinct term
        ("berlin wall", "berlin wall wall", "wall cat", 0),  # another term differs
        ("berlin wall", "berlin", "wall", 0),  # each lacks one
        ("berlin wall", "berlin berlin", "berlin", 0),  # no term is missing
        ("berlin wall", "berlin wall " + "a " * 10, "wall", 0),  # 12 and 1 tokens
        ("berlin wall fall", "berlin fall wall", "wall", 0),  # two terms are missing
    ],
)
def test_lb1_small_cases(query, first, second, wanted):
    study = LB1(analyzer="whitespace")
    assert study.preference(query, first, second) == wanted
    assert study.preference(query, second, first) == -wanted


def test_lb1_leaves_out_what_is_not_in_the_run(tmp_path):
    docs = {"both": "berlin wall", "wall": "wall", "also": "wall cat", "far": "wall wall"}
    collection = Collection.of(docs, {"q": "berlin wall"}, {"q": dict.fromkeys(docs, 0)})
    write_run(tmp_path / "run", {"q": {"both": 10.0, "wall": 9.0, "far": 8.9}})
    found = LB1(analyzer="whitespace", scores=str(tmp_path / "run")).contrasts(collection)
    assert found.labels["doc_ids"].values().tolist() == [["both", "wall"]]
    assert len(LB1(analyzer="whitespace").contrasts(collection)) == 2


@pytest.mark.parametrize(
    ("query", "first", "second", "wanted"),
    [
        ("berlin wall fall", "berlin wall", "wall wall wall", 1),
        ("berlin wall fall", "berlin wall", "fall", 0),  # each lacks one
        ("berlin berlin", "berlin", "cat", 0),  # one distinct term
    ],
)
def test_lb1_with_equal_scores(query, first, second, wanted):
    docs, run = {"x": first, "y": second}, {"q": {"x": 1.0, "y": 1.0}}
    collection = Collection.of(docs, {"q": query}, {"q": {"x": 0, "y": 0}}, runs={"run": run})
    found = asked_of(LB1(analyzer="whitespace", scores="run").contrasts(collection))
    assert [row[1] for row in found] == [("x", "y")] * wanted


def test_lb1_with_a_wrong_run_is_one_line(tmp_path):
    collection = open_collection("sample")
    write_run(tmp_path / "other", {"nobody": {"x": 1.0}})
    for run in ("no-such-run", str(tmp_path / "other")):
        with pytest.raises(WhyrankError, match=re.escape(run)) as error:
            LB1(scores=run).contrasts(collection)
        assert len(str(error.value).splitlines()) == 1
    with pytest.raises(WhyrankError, match="leave scores out"):
        LB1(scores="bm25").preference("berlin wall", "berlin", "wall")


def two_terms(query, words, documents, tolerance):
    """The query terms of LB2, straight from the definition: one that the text has, one that it lacks."""
    best = None
    df = {q: sum(q in other for other in documents) for q in query}
    idf = {q: math.log((len(documents) + 1) / max(df[q], 1)) for q in query}
    for had in dict.fromkeys(query):
        for lacked in dict.fromkeys(query):
            gap = abs(idf[had] - idf[lacked])
            allowed = float(tolerance.rstrip("%")) / 100 * max(idf[had], idf[lacked])
            if (
                had in words
                and lacked not in words
                and gap <= allowed + 1e-9
                and (best is None or gap < best[0] - 1e-9)
            ):
                best = gap, had, lacked
    return best and best[1:]


def lb2_oracle(collection, tolerance):
    """For each instance by query and ids, all pairs of texts that may be asked: any one word replaced in both."""
    found = {}
    documents = [set(text.split()) for text in collection.docs.values()]
    for q, judged in collection.qrels.items():
        query = collection.queries[q].split()
        for d in judged:
            words = collection.docs[d].split()
            terms = two_terms(query, words, documents, tolerance)
            places = [i for i, word in enumerate(words) if word not in query]
            if terms and places:
                had, lacked = terms
                made = [tuple(" ".join([*words[:i], w, *words[i + 1 :]]) for w in (lacked, had)) for i in places]
                found[q, (f"{d}+{lacked}", f"{d}+{had}")] = made
    return found


@given(collection=COLLECTIONS, tolerance=st.sampled_from(["10%", "0%", "50%", "1000%"]), seed=st.integers(0, 3))
@settings(max_examples=200)
def test_lb2_equals_brute_force(collection, tolerance, seed):
    found = LB2(analyzer="whitespace", idf=tolerance, seed=seed).contrasts(collection)
    allowed = lb2_oracle(collection, tolerance)
    rows = asked_of(found)
    assert [row[:2] for row in rows] == sorted(allowed)
    assert all(texts in allowed[q, ids] for q, ids, texts in rows)


def test_lb2_replaces_any_word_and_the_seed_says_which():
    docs = {f"d{i}": f"berlin {' '.join(f'w{j}' for j in range(i, i + 8))}" for i in range(40)}
    collection = Collection.of(docs, {"q": "wall berlin"}, {"q": dict.fromkeys(docs, 1)})
    places = [set(), set()]
    for seed in (0, 1):
        found = LB2(analyzer="whitespace", idf="1000%", seed=seed).contrasts(collection)
        for pair in pairs_of(found):
            places[seed].add((pair.docs[0].split()[-1], pair.docs[0].split().index("wall")))
    assert {place for _, place in places[0]} == set(range(1, 9))
    assert places[0] != places[1]


@pytest.mark.parametrize(
    ("query", "text", "why"),
    [
        ("berlin berlin", "berlin cat", "one distinct term"),
        ("berlin wall", "berlin wall cat", "no term is missing"),
        ("berlin wall", "cat cat", "no term is there"),
        ("berlin often", "berlin cat", "the one term is much more frequent"),
        ("berlin wall", "", "nothing at all"),
    ],
)
def test_lb2_leaves_out(query, text, why):
    docs = {"d": text, **{f"e{i}": "often" for i in range(9)}}
    found = LB2(analyzer="whitespace").contrasts(Collection.of(docs, {"q": query}, {"q": {"d": 0}}))
    assert (len(found), found.dropped) == (0, {}), why


def test_lb2_counts_texts_without_a_word_to_replace():
    found = LB2(analyzer="whitespace").contrasts(
        Collection.of({"d": "berlin ??"}, {"q": "berlin wall"}, {"q": {"d": 0}})
    )
    assert (len(found), found.dropped) == (0, {"no word to replace": 1})


def test_lb2_leaves_all_but_the_word_alone():
    text = "  Berlin,\n (cats) "
    collection = Collection.of({"d": text}, {"q": "The Walls, in Berlin?"}, {"q": {"d": 1}})
    [pair] = pairs_of(LB2(idf="1000%").contrasts(collection))
    assert pair.docs == ("  Berlin,\n (Walls) ", "  Berlin,\n (Berlin) ")


def replaced_place(analyzer, text, made):
    """Where the tokens of a made text differ from those of the text: exactly one place."""
    before, after = analyzer.terms(text), analyzer.terms(made)
    assert len(before) == len(after)
    [place] = [i for i, (x, y) in enumerate(zip(before, after, strict=True)) if x != y]
    return place, before[place], after[place]


def assert_lb2_texts_are_right(collection, study, least):
    analyzer, found = analyzers.create(study.analyzer), study.contrasts(collection)
    assert len(found) >= least
    for q, (first, second), (winner, loser) in asked_of(found):
        doc_id, _, lacked = first.rpartition("+")
        had = second.removeprefix(f"{doc_id}+")
        text, query = collection.docs[doc_id], analyzer.query_terms(collection.queries[q])
        assert replaced_place(analyzer, text, winner)[:2] == replaced_place(analyzer, text, loser)[:2]
        assert replaced_place(analyzer, text, winner)[1] not in query
        assert len([1 for x, y in zip(winner.split(), loser.split(), strict=True) if x != y]) == 1
        counts = [[analyzer.terms(t).count(term) for term in query] for t in (text, winner, loser)]
        assert counts[1] == [n + (term == lacked) for n, term in zip(counts[0], query, strict=True)]
        assert counts[2] == [n + (term == had) for n, term in zip(counts[0], query, strict=True)]
        assert analyzer.terms(text).count(lacked) == 0 < analyzer.terms(text).count(had)


@pytest.mark.parametrize(("analyzer", "least"), [("lucene", 200), ("whitespace", 100)])
def test_lb2_texts_are_right_on_the_sample(analyzer, least):
    assert_lb2_texts_are_right(open_collection("sample"), LB2(analyzer=analyzer), least)


def test_lb2_texts_are_right_on_real_texts(real):
    assert_lb2_texts_are_right(real, LB2(max_tokens=None), 20)


def test_lb2_texts_are_right_in_word_pieces(tmp_path):
    """Pieces such as ##ed have no spelling of their own and are never put in; marks are pieces too."""
    pieces = ["[UNK]", "wall", "##ed", "##s", "berlin", "cat", "fall", "the", ".", ",", "play"]
    made = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    made.save(str(tmp_path / "tokenizer.json"))
    docs = {"d": "Berlin cats, the cat.", "e": "the play, the wall.", "f": "The cats played. Walls!"}
    queries = {"q": "Berlin played, walled?", "r": "wall fall berlin."}
    collection = Collection.of(docs, queries, {q: dict.fromkeys(docs, 0) for q in queries})
    study = LB2(analyzer=f"wordpiece:{tmp_path}", idf="1000%")
    assert_lb2_texts_are_right(collection, study, 3)
    ids = study.contrasts(collection).labels["doc_ids"].values().ravel().tolist()
    assert not any("##" in doc_id or doc_id[-1] in ".,?" for doc_id in ids)


@pytest.mark.parametrize("name", ["sample", "cranfield", "msmarco_dl19"])
def test_bm25_gives_more_for_a_new_term(request, name):
    """BM25 has diminishing returns and the terms are about as rare: it obeys LB2, and LB1 at similar length."""
    spec = name if name == "sample" else str(request.getfixturevalue("data_folder") / name)
    collection = open_collection(spec)
    bm25 = open_ranker("bm25", Setting(collection))
    for study in (LB1(), LB2()):
        found = study.contrasts(collection)
        queries = [found.queries[i] for i in found.query]
        winner, loser = (bm25.score(queries, [found.docs[i] for i in column]) for column in found.doc.T)
        assert (winner > loser).mean() > 0.99
        assert len(found) > 40


# One word of a text replaced, such that the analyzer sees one token replaced and nothing else.


def glued(calls):
    """An analyzer that glues `berlin` to the word after it, so that it stands alone at the end only."""

    def tokens(text):
        calls.append(text)
        return re.findall(r"berlin \S+|\S+", text)

    return Analyzer.of(f"glued{len(calls)}-{id(calls)}", tokens)


@pytest.mark.parametrize("n", [TRIES, 40 * TRIES])
def test_so_many_words_are_tried(n):
    calls = []
    analyzer = glued(calls)
    text = " ".join(f"w{i}" for i in range(n))
    berlin = analyzer.vocabulary.id("berlin")
    found = replace_word(analyzer, text, analyzer.docs([text]).ids, {berlin: "berlin"}, frozenset({berlin}))
    tried = [call for call in calls if "berlin" in call]
    assert found == ((text.rpartition(" ")[0] + " berlin",) if n == TRIES else None)
    assert len(tried) <= TRIES
    assert n == TRIES or len(tried) == TRIES


def test_spellings_are_those_of_the_query():
    english = analyzers.create("lucene")
    found = spellings(english, "The walls' (Wall) of well-known cities, cities!")
    assert {english.vocabulary.terms[i]: word for i, word in found.items()} == {"wall": "walls", "citi": "cities"}


def replaced(analyzer, text, *words, kept=(), seed=0):
    """The text with one word replaced by each of `words`; the terms `kept` stay."""
    number = analyzer.vocabulary.id
    given_ = {number(word): word for word in words}
    return replace_word(analyzer, text, analyzer.docs([text]).ids, given_, frozenset(map(number, kept)), seed)


def test_what_is_kept_is_not_replaced():
    plain = analyzers.create("whitespace")
    assert replaced(plain, "a b", "c", "d", kept=["b"]) == ("c b", "d b")
    assert replaced(plain, "a b", "c", "d", kept=["a", "b"]) is None


def test_words_that_are_kept_do_not_count_as_tried():
    text = "b " * 10 * TRIES + "a"
    assert replaced(analyzers.create("whitespace"), text, "c", kept=["b"]) == (text[:-1] + "c",)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_kept_in_its_context_is_not_replaced(seed):
    """An analyzer that reads `x` as `wall`, unless it stands alone."""

    def tokens(text):
        return ["wall" if word == "x" != text else word for word in text.split()]

    assert replaced(Analyzer.of("context", tokens), "x y", "berlin", kept=["wall"], seed=seed) == ("x berlin",)


def test_punctuation_stays_unless_it_is_part_of_the_token():
    """Lucene does not see the comma; between white space it belongs to the word."""
    assert replaced(analyzers.create("lucene"), "(cats), and", "wall") == ("(wall), and",)
    assert replaced(analyzers.create("whitespace"), "(cats), 'and'", "wall", kept=["'and'"]) == ("wall 'and'",)


@pytest.mark.parametrize("text", ["", " \n ", "?? -- !", "well-known state-of-the-art", "the of and"])
def test_texts_without_such_a_word(text):
    assert replaced(analyzers.create("lucene"), text, "wall") is None


def test_half_a_surrogate_pair_is_a_text_too():
    assert replaced(analyzers.create("whitespace"), "\ud800 x", "wall") == ("\ud800 wall",)
