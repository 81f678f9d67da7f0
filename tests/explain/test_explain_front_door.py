"""Explanations of rankers: exact ones, by leaving words out, and edits that turn an order round."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whyrank
from whyrank.core import WhyrankError
from whyrank.data import Collection
from whyrank.explain import Explanation
from whyrank.rankers import Setting, open_ranker
from whyrank.tables import TermTable

HOSTILE = "<script>alert(1)</script> \"quotes' & \u202eright-to-left \x1b[31mred mercury"


def additive(weights, constant=0.0):
    """A ranker whose score is the sum of the weights of the words of a text; it notes the texts that it scores."""

    def score(queries, docs):
        scored.update(docs)
        return [constant + sum(weights.get(word, 0.0) for word in doc.split()) for doc in docs]

    scored = set()
    score.scored = scored
    return score


def accounted(found):
    """What parts and rest add up to."""
    return math.fsum([*(part.share for part in found.parts), found.rest])


@pytest.mark.parametrize("docs", [["a jacket with a hood."], ["a jacket with a hood.", "a waterproof jacket"]])
def test_words_that_do_nothing_have_no_share_at_all(docs):
    found = whyrank.explain(additive({"jacket": 1 / 3, "waterproof": 1 / 7}), "jacket", *docs)
    shares = [*(part.share for part in found.parts), found.rest]
    assert {abs(share) > 1e-9 for share in shares if share} == {True}
    assert sum(not share for share in shares) == sum(len(doc.split()) for doc in docs) + 1 - (
        1 if len(docs) == 1 else 3
    )
    assert "e-1" not in found.to_text()


weights = st.dictionaries(st.text("abcde", min_size=1, max_size=3), st.floats(-5, 5), min_size=1, max_size=12)


class TestAdditiveBlackBox:
    @settings(max_examples=40)
    @given(weights, st.floats(-9, 9), st.data())
    def test_shares_are_the_weights(self, weights, constant, data):
        words = st.lists(st.sampled_from([*weights, "zero"]), min_size=1, max_size=30)
        docs = [" ".join(data.draw(words)) for _ in range(data.draw(st.integers(1, 2)))]
        ranker = additive(weights, constant)
        found = whyrank.explain(ranker, "query", *docs)
        assert [part.text for part in found.parts] == [word for doc in docs for word in doc.split()]
        for part in found.parts:
            assert docs[part.doc][part.start : part.end] == part.text
            assert part.share == pytest.approx((-1) ** part.doc * weights.get(part.text, 0.0), abs=1e-6)
        assert found.rest == pytest.approx(constant if len(docs) == 1 else 0.0, abs=1e-6)
        assert found.fit is None or found.fit == pytest.approx(1, abs=1e-6)
        assert found.calls == len(ranker.scored) <= 200

    def test_as_many_words_as_calls_allow(self):
        weights = {f"w{i}": i / 7 for i in range(199)}
        found = whyrank.explain(additive(weights), "q", " ".join(weights), calls=200)
        assert [part.share for part in found.parts] == pytest.approx(list(weights.values()), abs=1e-6)
        assert (found.calls, found.fit) == (200, None)
        assert "too few changed texts" in found.note

    @pytest.mark.parametrize("docs", [1, 2])
    def test_a_long_text_is_cut_where_it_matters(self, docs):
        heavy = {"gold": 5.0, "lead": -3.0}
        words = [f"w{i}" for i in range(3000)]
        words[700], words[2100] = heavy
        ranker = additive(heavy, 1.0)
        found = whyrank.explain(ranker, "q", *[" ".join(words), "gold"][:docs])
        shares = {part.text: part.share for part in found.parts if part.doc == 0}
        assert shares["gold"] == pytest.approx(5)
        assert shares["lead"] == pytest.approx(-3)
        assert sum(map(abs, shares.values())) == pytest.approx(8)
        assert "".join(re.findall(r"w\d+|gold|lead", " ".join(shares))) == "".join(words)
        assert "words are too many to leave out one by one: some are phrases" in found.note
        assert len(ranker.scored) <= 200


class TestTrust:
    def test_words_that_act_together_are_predicted_poorly(self):
        def parity(queries, docs):
            return [float(len(doc.split()) % 2) for doc in docs]

        found = whyrank.explain(parity, "q", " ".join(f"w{i}" for i in range(21)))
        assert found.fit < 0.5
        assert "poorly" in found.to_text()
        assert accounted(found) == pytest.approx(1.0)

    def test_the_seed_decides(self):
        def score(queries, docs):
            return [math.sqrt(len(doc)) for doc in docs]

        text = "one three five seven nine eleven"
        first, again, other = (whyrank.explain(score, "q", text, calls=30, seed=seed) for seed in (1, 1, 2))
        assert first == again != other


class TestTwoTexts:
    def test_the_smallest_edit_is_found_and_verified(self):
        ranker = additive({"gold": 3.0, "silver": 2.0, "tin": 1.0, "rust": -1.5})
        first, second = "gold and silver and tin are here now", "silver and rust lie at the door"
        found = whyrank.explain(ranker, "q", first, second)
        assert found.scores == (6.0, 0.5)
        edit = found.counterfactual
        assert (edit.doc, edit.words_changed, edit.share_changed) == (0, 3, 3 / 8)
        assert sorted(part.text for part in edit.removed) == ["gold", "silver", "tin"]
        assert edit.text == "and and are here now"
        assert edit.scores == (0.0, 0.5)
        turned = whyrank.explain(ranker, "q", second, first).counterfactual
        assert (turned.doc, turned.text, turned.scores) == (1, edit.text, (0.5, 0.0))

    @settings(max_examples=40)
    @given(weights, st.data())
    def test_an_edit_reverses_the_order_and_needs_all_its_words(self, weights, data):
        words = st.lists(st.sampled_from([*weights]), min_size=1, max_size=20).map(" ".join)
        docs = data.draw(words), data.draw(words)
        ranker = additive(weights)
        found = whyrank.explain(ranker, " ".join(weights), *docs)
        edit, before = found.counterfactual, found.scores[0] - found.scores[1]
        assert (edit is None) == ("order" in found.note)
        if edit is not None:
            changed = [*docs]
            changed[edit.doc] = edit.text
            assert edit.scores == pytest.approx(tuple(ranker([""] * 2, changed)))
            assert edit.scores[1] > edit.scores[0] if before > 0 else edit.scores[1] < edit.scores[0]
            assert edit.words_changed == len(edit.removed) + len(edit.inserted)
            moved = [*(abs(part.share) for part in edit.removed), *(weights[word] for word in edit.inserted)]
            if len(moved) > 1:  # without any one of its words, it does not reverse the order
                assert abs(edit.scores[0] - edit.scores[1]) - min(moved) <= 1e-6
            assert accounted(found) == pytest.approx(before, abs=1e-6)

    def test_a_word_is_put_in_where_taking_out_does_not_help(self):
        def has_cat(queries, docs):
            return [3.0 * doc.count("cat") - 5.0 * (not doc.count("big")) for doc in docs]

        found = whyrank.explain(has_cat, "cat", "big", "small")
        edit = whyrank.explain(lambda queries, docs: [2.0 * ("cat" in doc) + ("big" in doc) for doc in docs], "cat",
                               "big big big big", "small").counterfactual  # fmt: skip
        assert found.counterfactual is not None
        assert (edit.doc, edit.inserted, edit.removed, edit.text) == (1, ("cat",), (), "cat small")

    def test_no_edit_and_ties_are_said(self):
        def never(queries, docs):
            return [float(doc != "b b b") for doc in docs]

        found = whyrank.explain(never, "q", "a a a", "b b b")
        assert found.counterfactual is None
        assert "no edit that turns the order round was found" in found.to_text().replace("\n", " ")
        tie = whyrank.explain(never, "q", "a a a", "c")
        assert tie.counterfactual is None
        assert "the texts tie: there is no order to turn round" in tie.note
        assert "level with" in tie.to_text()


DOCS = {"a": "t1 t2 t1 t3", "b": "t2 t4 t3 t5", "c": "t6", "d": "t1 t6 t2 t5 t5 t4 t7 t7"}
SAMPLE = Collection.of(DOCS, {"q": "t1 t6"})
texts = st.lists(st.sampled_from([f"t{i}" for i in range(10)]), min_size=1, max_size=15).map(" ".join)


class TestExact:
    @settings(max_examples=40)
    @given(st.sampled_from(["bm25", "bm25(variant=robertson)", "ql", "ql(smoothing=jm)"]), texts, texts, texts)
    def test_parts_and_rest_are_the_score(self, spec, query, text, other):
        ranker = open_ranker(spec, Setting(SAMPLE, "whitespace"))
        found = whyrank.explain(ranker, query, text)
        [score] = ranker.score([query], [text])
        assert (found.method, found.fit, found.scores) == ("exact", None, (score,))
        assert accounted(found) == pytest.approx(score)
        if spec.startswith("bm25"):
            assert found.rest == pytest.approx(0, abs=1e-9)
        assert {part.text for part in found.parts} <= {*query.split()}
        assert accounted(whyrank.explain(ranker, query, text, other)) == pytest.approx(
            score - ranker.score([query], [other])[0]
        )

    def test_a_log_ranker_compares_with_the_background(self):
        """With mu = 10, P(t1|C) = 3/17 and four words: P(t1|D) = (2 + 30/17) / 14, and (30/17) / 14 without t1."""
        ranker = open_ranker("ql(mu=10)", Setting(SAMPLE, "whitespace"))
        found = whyrank.explain(ranker, "t1", "t1 t2 t1 t3")
        gain = math.log((2 + 30 / 17) / (30 / 17))
        assert [(part.start, part.share) for part in found.parts] == [
            (0, pytest.approx(gain / 2)), (6, pytest.approx(gain / 2))
        ]  # fmt: skip
        assert found.rest == pytest.approx(math.log(30 / 17 / 14))

    def test_words_keep_their_form_and_their_table(self, tmp_path):
        TermTable.from_triples(["heart", "heart"], ["cardiac", "heart"], [0.5, 0.3], analyzer="lucene").save(
            tmp_path / "t.tsv"
        )
        found = whyrank.explain(
            f"bm25t:{tmp_path}/t.tsv(match=sum)", "heart", "Cardiac arrest, of hearts!", collection="sample"
        )
        assert [part.text for part in found.parts] == ["Cardiac", "hearts!"]
        assert accounted(found) == pytest.approx(found.scores[0])


class TestOddTexts:
    def test_a_text_without_words(self):
        found = whyrank.explain(additive({}, 2.0), "q", " \n")
        assert (found.parts, found.rest, found.calls) == ((), 2.0, 1)
        assert "no edit" in whyrank.explain(additive({"a": 1.0}), "", "a", "").note
        assert whyrank.explain(additive({"a": 1.0}, -1.0), "a", "a a", "").scores == (1.0, -1.0)

    def test_a_text_of_one_word(self):
        found = whyrank.explain(additive({"one": 1.5}, 1.0), "q", "one")
        assert [(part.text, part.share) for part in found.parts] == [("one", 1.5)]
        assert (found.rest, found.fit, found.calls) == (1.0, None, 2)

    def test_words_without_blanks(self):
        found = whyrank.explain(lambda queries, docs: [doc.count("東") for doc in docs], "q", "東京都 in 東北")
        assert {(part.text, part.start): round(part.share, 6) for part in found.parts} == {
            ("東", 0): 1, ("京", 1): 0, ("都", 2): 0, ("in", 4): 0, ("東", 7): 1, ("北", 8): 0,
        }  # fmt: skip

    @pytest.mark.parametrize("text", ["x" * 2_000_000, "word " * 400_000], ids=["one word", "many words"])
    def test_two_megabytes_in_a_line(self, text):
        found = whyrank.explain(lambda queries, docs: [len(doc) for doc in docs], "q", text)
        assert accounted(found) == pytest.approx(len(text))
        assert max(map(len, found.to_text().splitlines())) <= 80
        exact = whyrank.explain("bm25", "word", text, collection="sample")
        assert accounted(exact) == pytest.approx(exact.scores[0])

    def test_texts_that_cannot_be_scored(self):
        def picky(queries, docs):
            return [math.nan if doc.startswith("b") else float(len(doc.split())) for doc in docs]

        found = whyrank.explain(picky, "q", "a b c d e f")
        assert all(math.isfinite(part.share) for part in found.parts)
        assert "changed texts have no finite score and are left out" in found.note
        with pytest.raises(WhyrankError, match="'picky' has no finite score for 'b a': score is nan"):
            whyrank.explain(picky, "q", "b a")

    def test_a_ranker_that_raises(self):
        def broken(queries, docs):
            raise RuntimeError("out of\nmemory")

        with pytest.raises(WhyrankError, match="'broken' has no finite score for 'a': RuntimeError: out of memory"):
            whyrank.explain(broken, "q", "a")

    def test_what_is_refused(self):
        for request, says in [
            (("run:bm25", "q", "a"), "cannot score changed texts"),
            (("bm25", "q", 3), "explain takes texts, not 3"),
            ((3, "q", "a"), "needs a name and a method score"),
        ]:
            with pytest.raises(WhyrankError, match=says):
                whyrank.explain(*request, collection="sample")
        with pytest.raises(WhyrankError, match="calls must be"):
            whyrank.explain("bm25", "q", "a", calls=1)


class Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = set(), ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


class TestViews:
    @pytest.fixture(params=[1, 2])
    def found(self, request):
        ranker = additive({"mercury": 2.0, "&": -1.0})
        return whyrank.explain(ranker, HOSTILE, HOSTILE, *["mercury mercury " + HOSTILE] * (request.param - 1))

    def test_terminal(self, found):
        shown = found.to_text()
        assert max(map(len, shown.splitlines())) <= 80
        assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", shown)
        [row] = re.findall(r"^ +\S+ (?:A )? *mercury +(.+)$", shown, re.MULTILINE)
        assert set(row) == {"+"}
        assert "R²=1.00" in shown

    def test_html(self, found):
        page = Tags(found.to_html())
        assert page.tags == {"div", "p", "b", "bdi", "span"}
        assert all(doc in page.text for doc in found.docs)
        assert found._repr_html_() == found.to_html()

    def test_json(self, found):
        plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert plain["parts"][0] == {"text": "<script>alert(1)</script>", "doc": 0, "start": 0, "end": 25,
                                     "share": pytest.approx(0, abs=1e-9)}  # fmt: skip
        assert set(plain) == {*Explanation.__dataclass_fields__}

    def test_the_package_is_called_as_the_function(self):
        import whyrank.explain as package

        assert package("bm25", "a", "a") == package.explain("bm25", "a", "a")


@pytest.mark.slow
def test_neighbours_in_a_ranking_change_places():
    """Of pairs of neighbours in the ranking of the bundled cross-encoder, most change places by a few words."""
    collection = whyrank.open_collection("sample")
    ranker = whyrank.open_ranker("cross:bundled", Setting(collection))
    texts, edits = list(collection.docs.values()), []
    for query in list(collection.queries.values())[::5]:
        order = np.argsort(-ranker.score([query] * 60, texts[:60]))
        found = whyrank.explain(ranker, query, texts[order[2]], texts[order[3]])
        assert found.calls <= 200
        edits.append(found.counterfactual)
    assert np.mean([edit is not None and edit.share_changed <= 0.2 for edit in edits]) >= 0.6
