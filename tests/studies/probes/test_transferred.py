"""Transferred probes: queries, discards, wrong answers, published counts."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrast_pairs import pairs_of
from whyrank.core import Call, WhyrankError
from whyrank.data import open_collection
from whyrank.data.pairs import TextPair
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine
from whyrank.studies import Calibration, Plan, Threshold, answers
from whyrank.studies.probes import probes, query_strategies
from whyrank.studies.probes.queries import Discard, Draft
from whyrank.studies.probes.transferred import KINDS, cluster_names
from whyrank.text.annotation.annotator import annotator

pytest.importorskip("spacy", reason="the extra nlp is not installed")


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def contrasts(name, path, **arguments):
    return probes.create(str(Call(f"transferred/{name}", None, {"pairs": str(path), **arguments}))).contrasts()


@pytest.mark.parametrize("name", KINDS)
def test_bundled_pairs(name):
    """Sixty or more of every kind survive, all texts differ, and every discard has a reason."""
    found = probes.create(f"transferred/{name}").contrasts()
    minimum = 40 if name == "fluency-spellchecked" else 60
    assert len(found) >= minimum, dict(found.dropped)
    for pair in pairs_of(found):
        assert pair.query.strip()
        assert pair.docs[0] != pair.docs[1]


def ask(name, first="", second="", **roles):
    draft = Draft(TextPair("1", roles), first, second, lambda text: annotator().annotate([text])[0])
    return query_strategies.factory(name)(draft)


def test_query_strategies():
    assert ask("title", title=" On walls ") == "On walls"
    assert ask("question", question="Why?") == "Why?"
    assert (
        ask("noun-chunk", "The old city wall still stands.", "Tourists love the old city wall.")
        == "the old city wall"
    )
    texts = ("Old walls protect cities from floods.", "A city needs walls against the flood.")
    assert ask("overlapping-terms", *texts) == "walls cities floods"
    with pytest.raises(Discard, match="no title"):
        ask("title", title=" ")
    for name in ("noun-chunk", "overlapping-terms"):
        with pytest.raises(Discard, match="no shared"):
            ask(name, "Old walls.", "Cats purr.")
    with pytest.raises(Discard, match="no shared noun chunk"):
        ask("noun-chunk", "I saw a cat.", "You saw a cat.")  # short ones do not count


def test_a_registered_strategy(tmp_path):
    @query_strategies.register("first-words")
    def first_words(draft):
        """The first two words."""
        return " ".join(draft.first.split()[:2])

    try:
        path = write(tmp_path / "p.jsonl", [{"neutral": "One two three", "biased": "One two four"}])
        assert [p.query for p in pairs_of(contrasts("neutrality", path, query="first-words"))] == ["One two"]
    finally:
        query_strategies.forget("first-words")


WALL = "Tourists admires the old city wall."
FLUENT = [
    {"fluent": "Tourists admire the old city wall.", "source": WALL},
    {"fluent": WALL, "source": WALL},
    {"fluent": "Cats purr.", "source": WALL},
    {"fluent": " ", "source": WALL},
]
SONGS = {"question": "Which songs do you like?", "formal": "I enjoy that song."}
FORMAL = [{**SONGS, "informal": "love dat song lol"}, {**SONGS, "informal": "no idea"}, {**SONGS, "question": "", "informal": "song!"}]  # fmt: skip
TITLED = [
    {"neutral": "Cats purr.", "biased": "Dogs bark.", "title": "pets"},
    {"neutral": "It rained a lot.", "biased": "It rained.", "title": "rain"},
]
UNTITLED = [{"neutral": row["neutral"], "biased": row["biased"]} for row in TITLED]


@pytest.mark.parametrize(
    ("name", "rows", "options", "kept", "dropped"),
    [
        ("fluency", FLUENT, {}, 1, {"identical": 1, "no shared noun chunk": 1, "empty text": 1}),
        ("fluency", FLUENT, {"compat": "abnirml"}, 2, {"no shared noun chunk": 1, "empty text": 1}),
        ("paraphrase", [{"a": WALL, "b": WALL}], {"compat": "abnirml"}, 0, {"identical": 1}),
        ("formality", FORMAL, {}, 1, {"no word shared by query and both texts": 1, "no question": 1}),
        # where a pair set keeps nothing, a strategy that keeps some is named
        ("neutrality", TITLED, {}, 0, {"no shared noun chunk (query=title keeps 2 of the first 2)": 2}),
        ("neutrality", UNTITLED, {}, 0, {"no shared noun chunk (query=overlapping-terms keeps 1 of the first 2)": 2}),
        ("neutrality", UNTITLED[:1], {}, 0, {"no shared noun chunk": 1}),
    ],
)
def test_discards_are_counted_by_reason(tmp_path, name, rows, options, kept, dropped):
    found = contrasts(name, write(tmp_path / "p.jsonl", rows), **options)
    assert (len(found), dict(found.dropped)) == (kept, dropped)


def factual(question, answer, passage, entity="GPE"):
    return {"question": question, "answer": answer, "passage": passage, "entity": entity}


@pytest.mark.parametrize(
    ("name", "rows", "options", "says"),
    [
        ("neutrality", UNTITLED, {"query": "noun-chunks"}, "noun-chunk"),
        ("fluency", [{"fluent": "a", "b": "c"}], {}, "source"),
        ("factuality", [factual("Who?", "Merkel", "Merkel.")], {"entity": "PERSONS"}, "PERSON"),
    ],
)
def test_wrong_requests(tmp_path, name, rows, options, says):
    with pytest.raises(WhyrankError, match=says):
        contrasts(name, write(tmp_path / "p.jsonl", rows), **options)
    with pytest.raises(WhyrankError, match=r"none\.jsonl"):
        contrasts(name, "none.jsonl")


class TestFactuality:
    def test_another_answer_of_the_same_kind_is_put_in(self, tmp_path):
        rows = [
            factual("Where is the Eiffel Tower?", "Paris", "It stands in Paris. PARIS is large."),
            factual("Where is the Colosseum?", "Rome", "It stands in Rome."),
            factual("Where is the Golden Gate?", "San Francisco", "It stands in San Francisco."),
            factual("Is Oslo where the tower is?", "Oslo", "It stands in Oslo."),
            factual("Where?", "Rome", "It stands on Romero street."),
            factual("Where?", "Bonn", "It stands in Bonn.", "DATE"),
        ]
        found = contrasts("factuality", write(tmp_path / "p.jsonl", rows), analyzer="whitespace")
        first, second = (p.docs for p in pairs_of(found))
        assert first[1] in (f"It stands in {x}. {x} is large." for x in ("Rome", "Oslo"))
        assert second[1] in (f"It stands in {x}." for x in ("Paris", "Oslo"))
        assert dict(found.dropped) == {
            "no other answer of the kind": 1,
            "a word of the answer is in the question": 1,
            "answer not in the passage": 1,
            "no entity of the type in the answer": 1,
        }
        assert found.labels["entity"].values().tolist() == ["GPE", "GPE"]

    def test_whole_words_are_replaced(self, tmp_path):
        """Inside words only by the released code: "rural" holds "Ural"; backslashes are taken as they are."""
        rows = [
            factual("Which range?", "Ural", "The Ural's rural south, east of the URAL.", "LOC"),
            factual("Which other range?", r"\1", r"In the \1 now.", "LOC"),
            factual("Which town?", "St . Gallen", "In St. Gallen, not in Gallenst.Gallen."),
            factual("Which other town?", "El . Paso", "In El . Paso."),
        ]
        path = write(tmp_path / "p.jsonl", rows)
        [ural, _, gallen, _] = [p.docs[1] for p in pairs_of(contrasts("factuality", path, analyzer="whitespace"))]
        assert ural == r"The \1's rural south, east of the \1."
        assert gallen == "In El . Paso, not in Gallenst.Gallen."
        found = contrasts("factuality", path, analyzer="whitespace", compat="abnirml")
        assert next(pairs_of(found)).docs[1] == r"The \1's r\1 south, east of the \1."

    def test_types_by_parser_where_none_is_declared(self, tmp_path):
        names = ("Angela Merkel", "Barack Obama")
        rows = [{"question": "Who?", "answer": name, "passage": f"{name} said so."} for name in names]
        assert len(contrasts("factuality", write(tmp_path / "p.jsonl", rows), entity="PERSON")) == 2


def test_the_seed_redraws_queries_and_wrong_answers(tmp_path):
    """Seed 0 draws what the released code draws, and `compat` always does."""
    names = ["the old city wall", "a young farmer", "the narrow bridge", "seven black horses", "the town council"]
    text = ", ".join(names)
    path = write(tmp_path / "p.jsonl", [{"neutral": f"{text} {i}.", "biased": f"{text} {i}!"} for i in range(12)])
    drawn = [[p.query for p in pairs_of(contrasts("neutrality", path, **asked))] for asked in (
        {}, {"seed": 0}, {"compat": "abnirml"}, {"seed": 7, "compat": "abnirml"}, {"seed": 7}, {"seed": 7})]  # fmt: skip
    assert drawn[0] == drawn[1] == drawn[2] == drawn[3]
    assert drawn[4] == drawn[5] != drawn[0]
    one, same, other = (
        probes.create("transferred/factuality", seed=seed).contrasts().fingerprint for seed in (0, 0, 1)
    )
    assert one == same != other


def test_paraphrase_is_tested_against_chance():
    """A symmetric finding is compared with the share of ordinary neighbours that differ by more than delta."""
    sample = open_collection("sample")
    ranker = open_ranker("bm25", Setting(sample))
    study = {"transferred/paraphrase": probes.create("transferred/paraphrase")}
    calibration = Calibration(np.linspace(0, 2, 200), "made up")
    plan = Plan(sample, study, [ranker], Engine(), {"bm25": Threshold(1.0, calibration)})
    found = next(answers(plan)).findings[0]
    assert (found.negative, found.collection) == (0, "pairs of sample")
    assert 0 <= found.score <= 1
    assert found.p_value is not None
    assert found.p_t is None
    bare = Plan(sample, study, [ranker], Engine(), {"bm25": Threshold(1.0)})
    assert next(answers(bare)).findings[0].p_value is None
    assert math.isnan(Threshold(1.0).chance)


def test_pairs_that_share_a_text_are_one_cluster(tmp_path):
    """Versions of one sentence, on either side, and answers to one question, as contrasts of one query elsewhere."""
    rows = [{"fluent": f"Tourists {verb} the old city wall.", "source": WALL} for verb in ("admire", "love")]
    rows.append({"fluent": "Visitors like the old city wall.", "source": "Visitors likes the old city wall."})
    assert contrasts("fluency", write(tmp_path / "p.jsonl", rows)).clusters.tolist() == [0, 0, 1]
    formal, informal = "Tourists admire the old city wall.", "tourists luv the old city wall"
    rows = [{"formal": formal, "informal": f"{word} the old city wall!!"} for word in ("luv", "dig")]
    rows += [{"formal": f"Visitors {word} the old city wall.", "informal": informal} for word in ("love", "like")]
    found = contrasts("formality", write(tmp_path / "f.jsonl", rows), query="noun-chunk")
    assert found.clusters.tolist() == [0, 0, 1, 1]
    texts = [("Red wine is old.", "red wine is oldd"), ("I drink wine daily.", "i drink wine daily lol")]
    rows = [{"formal": a, "informal": b, "question": "Is wine healthy?"} for a, b in texts]
    rows.append({"formal": "Wine is cheap.", "informal": "wine is cheapp", "question": "How much is wine?"})
    assert contrasts("formality", write(tmp_path / "q.jsonl", rows)).clusters.tolist() == [0, 0, 1]


@given(st.lists(st.tuples(st.sampled_from("abcdefg"), st.sampled_from("abcdefg")), max_size=8), st.randoms())
def test_clusters_are_what_can_be_reached(rows, random):
    """Against a search from row to row; the order of rows does not matter."""
    names = cluster_names(rows)
    for start in range(len(rows)):
        reached, edge = {start}, [start]
        while edge:
            here = edge.pop()
            near = {i for i, row in enumerate(rows) if set(row) & set(rows[here])} - reached
            reached |= near
            edge += near
        assert reached == {i for i, name in enumerate(names) if name == names[start]}
    order = random.sample(range(len(rows)), len(rows))
    assert cluster_names([rows[i] for i in order]) == [names[i] for i in order]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "layout", "published"),
    [
        ("fluency", "jfleg", 5_073),
        ("fluency-spellchecked", "jfleg", 5_187),
        ("paraphrase", "msrp", 3_421),
        ("simplicity", "turkcorpus", 17_849),
    ],
)
def test_published_counts_within_one_percent(data_folder, name, layout, published):
    found = contrasts(name, f"{layout}:{data_folder / layout}", compat="abnirml")
    assert abs(len(found) - published) <= 0.01 * published, dict(found.dropped)


def test_neutrality_of_the_real_sample(data_folder):
    """The hundred pairs of its test part, of which one is unchanged."""
    found = contrasts("neutrality", f"wnc:{data_folder / 'wnc_sample' / 'test.tsv'}", compat="abnirml")
    assert len(found) + sum(found.dropped.values()) == 100
    assert found.dropped["identical"] == 1
