"""Transferred probes: queries, discards, wrong answers, published counts."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.core import Call, WhyrankError
from whyrank.data import open_collection
from whyrank.data.pairs import TextPair
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine
from whyrank.studies import Calibration, Plan, Threshold, answers
from whyrank.studies.files import pairs_of
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


class TestStrategies:
    def draft(self, first="", second="", **roles):
        return Draft(TextPair("1", roles), first, second, lambda text: annotator().annotate([text])[0])

    def ask(self, name, draft):
        return query_strategies.factory(name)(draft)

    def test_given(self):
        assert self.ask("title", self.draft(title=" On walls ")) == "On walls"
        assert self.ask("question", self.draft(question="Why?")) == "Why?"
        with pytest.raises(Discard, match="no title"):
            self.ask("title", self.draft(title=" "))

    def test_shared_noun_chunk(self):
        draft = self.draft("The old city wall still stands.", "Tourists love the old city wall.")
        assert self.ask("noun-chunk", draft) == "the old city wall"
        for texts in (("The old wall stands.", "Cats purr."), ("I saw a cat.", "You saw a cat.")):
            with pytest.raises(Discard, match="no shared noun chunk"):  # short ones do not count
                self.ask("noun-chunk", self.draft(*texts))

    def test_overlapping_terms(self):
        draft = self.draft("Old walls protect cities from floods.", "A city needs walls against the flood.")
        assert self.ask("overlapping-terms", draft) == "walls cities floods"
        with pytest.raises(Discard, match="no shared term"):
            self.ask("overlapping-terms", self.draft("Old walls.", "Cats purr."))

    def test_registered(self, tmp_path):
        @query_strategies.register("first-words")
        def first_words(draft):
            """The first two words."""
            return " ".join(draft.first.split()[:2])

        try:
            path = write(tmp_path / "p.jsonl", [{"neutral": "One two three", "biased": "One two four"}])
            assert [p.query for p in pairs_of(contrasts("neutrality", path, query="first-words"))] == ["One two"]
        finally:
            query_strategies.forget("first-words")

    def test_unknown(self, tmp_path):
        path = write(tmp_path / "p.jsonl", [{"neutral": "One", "biased": "Two"}])
        with pytest.raises(WhyrankError, match="noun-chunk"):
            contrasts("neutrality", path, query="noun-chunks")


class TestDiscards:
    rows = [
        {"fluent": "Tourists admire the old city wall.", "source": "Tourists admires the old city wall."},
        {"fluent": "Tourists admire the old city wall.", "source": "Tourists admire the old city wall."},
        {"fluent": "Cats purr.", "source": "Tourists admires the old city wall."},
        {"fluent": " ", "source": "Tourists admires the old city wall."},
    ]

    def test_counted(self, tmp_path):
        found = contrasts("fluency", write(tmp_path / "p.jsonl", self.rows))
        assert len(found) == 1
        assert dict(found.dropped) == {"identical": 1, "no shared noun chunk": 1, "empty text": 1}

    def test_compat_keeps_identical_texts_unless_they_are_paraphrases(self, tmp_path):
        assert len(contrasts("fluency", write(tmp_path / "p.jsonl", self.rows), compat="abnirml")) == 2
        path = write(tmp_path / "s.jsonl", [{"a": "The old city wall stands.", "b": "The old city wall stands."}])
        assert len(contrasts("paraphrase", path, compat="abnirml")) == 0

    def test_a_word_of_the_question_must_be_in_both_answers(self, tmp_path):
        rows = [
            {"question": "Which songs do you like?", "formal": "I enjoy that song.", "informal": "love dat song lol"},
            {"question": "Which songs do you like?", "formal": "I enjoy that song.", "informal": "no idea"},
            {"question": "", "formal": "I enjoy that song.", "informal": "song!"},
        ]
        found = contrasts("formality", write(tmp_path / "p.jsonl", rows))
        assert len(found) == 1
        assert dict(found.dropped) == {"no word shared by query and both texts": 1, "no question": 1}

    def test_a_pair_set_that_keeps_nothing_names_a_strategy(self, tmp_path):
        rows = [
            {"neutral": "Cats purr.", "biased": "Dogs bark.", "title": "pets"},
            {"neutral": "It rained a lot.", "biased": "It rained.", "title": "rain"},
        ]
        found = contrasts("neutrality", write(tmp_path / "p.jsonl", rows))
        assert dict(found.dropped) == {"no shared noun chunk (query=title keeps 2 of the first 2)": 2}
        untitled = [{"neutral": row["neutral"], "biased": row["biased"]} for row in rows]
        found = contrasts("neutrality", write(tmp_path / "u.jsonl", untitled))
        assert dict(found.dropped) == {"no shared noun chunk (query=overlapping-terms keeps 1 of the first 2)": 2}
        found = contrasts("neutrality", write(tmp_path / "n.jsonl", untitled[:1]))
        assert dict(found.dropped) == {"no shared noun chunk": 1}, "no strategy keeps any"

    def test_missing_roles_and_files(self, tmp_path):
        with pytest.raises(WhyrankError, match="source"):
            contrasts("fluency", write(tmp_path / "p.jsonl", [{"fluent": "a", "b": "c"}]))
        with pytest.raises(WhyrankError, match=r"none\.jsonl"):
            contrasts("fluency", "none.jsonl")


class TestFactuality:
    def row(self, question, answer, passage, entity="GPE"):
        return {"question": question, "answer": answer, "passage": passage, "entity": entity}

    def test_another_answer_of_the_same_kind_is_put_in(self, tmp_path):
        rows = [
            self.row("Where is the Eiffel Tower?", "Paris", "It stands in Paris. PARIS is large."),
            self.row("Where is the Colosseum?", "Rome", "It stands in Rome."),
            self.row("Where is the Golden Gate?", "San Francisco", "It stands in San Francisco."),
        ]
        found = contrasts("factuality", write(tmp_path / "p.jsonl", rows))
        assert [p.docs for p in pairs_of(found)] == [
            ("It stands in Paris. PARIS is large.", "It stands in Rome. Rome is large."),
            ("It stands in Rome.", "It stands in Paris."),
        ]
        assert dict(found.dropped) == {"no other answer of the kind": 1}
        assert found.labels["entity"].values().tolist() == ["GPE", "GPE"]

    def test_discards(self, tmp_path):
        rows = [
            self.row("Is Paris where the tower is?", "Paris", "It stands in Paris."),
            self.row("Where?", "Rome", "It stands on Romero street."),
            self.row("Where?", "Oslo", "It stands in Oslo.", "DATE"),
        ]
        found = contrasts("factuality", write(tmp_path / "p.jsonl", rows))
        assert dict(found.dropped) == {
            "a word of the answer is in the question": 1,
            "answer not in the passage": 1,
            "no entity of the type in the answer": 1,
        }

    def test_whole_words_are_replaced(self, tmp_path):
        """Inside words only by the released code: "rural" holds "Ural"."""
        rows = [
            self.row("Which range?", "Ural", "The Ural's rural south, east of the URAL.", "LOC"),
            self.row("Which other range?", "Alps", "In the Alps.", "LOC"),
            self.row("Which town?", "St . Gallen", "In St. Gallen, not in Gallenst.Gallen."),
            self.row("Which other town?", "El . Paso", "In El . Paso."),
        ]
        path = write(tmp_path / "p.jsonl", rows)
        [ural, _, gallen, _] = [p.docs[1] for p in pairs_of(contrasts("factuality", path))]
        assert ural == "The Alps's rural south, east of the Alps."
        assert gallen == "In El . Paso, not in Gallenst.Gallen."
        [ural, *_] = [p.docs[1] for p in pairs_of(contrasts("factuality", path, compat="abnirml"))]
        assert ural == "The Alps's rAlps south, east of the Alps."

    def test_backslashes_are_taken_as_they_are(self, tmp_path):
        rows = [self.row("Where?", "Paris", "In Paris."), self.row("Where to?", r"\1", r"In \1 now.")]
        found = {
            p.docs
            for p in pairs_of(contrasts("factuality", write(tmp_path / "p.jsonl", rows), analyzer="whitespace"))
        }
        assert ("In Paris.", r"In \1.") in found

    def test_types_by_parser_where_none_is_declared(self, tmp_path):
        rows = [
            {"question": "Who?", "answer": name, "passage": f"{name} said so."}
            for name in ("Angela Merkel", "Barack Obama")
        ]
        found = contrasts("factuality", write(tmp_path / "p.jsonl", rows), entity="PERSON")
        assert len(found) == 2
        with pytest.raises(WhyrankError, match="PERSON"):
            contrasts("factuality", write(tmp_path / "p.jsonl", rows), entity="PERSONS")


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


def test_versions_of_one_sentence_are_one_cluster(tmp_path):
    """Contrasts about the same sentence are clustered, as those of one query are elsewhere."""
    source = "Tourists admires the old city wall."
    rows = [{"fluent": f"Tourists {verb} the old city wall.", "source": source} for verb in ("admire", "love")]
    rows.append({"fluent": "Visitors like the old city wall.", "source": "Visitors likes the old city wall."})
    found = contrasts("fluency", write(tmp_path / "p.jsonl", rows))
    assert found.clusters.tolist() == [0, 0, 1]
    assert found.labels["doc_ids"].values().tolist()[0] == ["1/fluent", "1/source"]


def test_versions_on_either_side_are_one_cluster(tmp_path):
    """Formality has rewritings in both directions, and the two texts of a paraphrase have no order."""
    formal, informal = "Tourists admire the old city wall.", "tourists luv the old city wall"
    rows = [{"formal": formal, "informal": f"{word} the old city wall!!"} for word in ("luv", "dig")]
    rows += [{"formal": f"Visitors {word} the old city wall.", "informal": informal} for word in ("love", "like")]
    found = contrasts("formality", write(tmp_path / "f.jsonl", rows), query="noun-chunk")
    assert found.clusters.tolist() == [0, 0, 1, 1]
    swapped = [{"a": row["informal"], "b": row["formal"]} for row in rows]
    paraphrases = contrasts("paraphrase", write(tmp_path / "a.jsonl", swapped))
    assert paraphrases.clusters.tolist() == [0, 0, 1, 1]


def test_pairs_with_one_question_are_one_cluster(tmp_path):
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
