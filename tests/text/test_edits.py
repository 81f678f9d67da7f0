"""Edits: what each does by example, and that none breaks on any text."""

from __future__ import annotations

import random
import re
import time
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.text import analyzers
from whyrank.text.annotation.annotator import Annotation, Span, annotator
from whyrank.text.edits import Passage, edits, inputs_of, word_of

pytest.importorskip("spacy", reason="the extra nlp is not installed")

TEXT = "The old wall of Berlin fell in 1989.  It had stood, for decades, in the city!\nPeople don't forget it."
NEEDS_OPTIONS = {"doc2query"}
OTHERS = ["Cats purr. Dogs bark at the moon."]

ODD = [
    "", " ", "\n\t ", "word", "a", "😀", "😀 😀 🙂", "مرحبا بالعالم. كيف حالك؟", "שלום עולם",
    "<p>Hello <b>world</b></p><script>alert('x')</script>", "\x00\x01\x02 control \x7f", "caf\u00e9 cafe\u0301 \ud800 lone",
    "ÃƒÂ© mojibake Ã¢â‚¬â„¢", "....", "!!! ???", "a\u00a0b\u2003c\u200bd", "\\1 \\g<0> (regex) [chars] $",
]  # fmt: skip


def passage(text, query="berlin wall", seed=0, analyzer="lucene", compat=None, respace=False, others=OTHERS):
    return Passage(
        text, query, random.Random(seed), analyzers.create(analyzer), annotator(), lambda: others, compat, respace
    )


def edited(name, text=TEXT, options=None, **more):
    return passage(text, **more).apply(edits.factory(name), options or {})


def words(text):
    return text.split()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("case-fold", "The Old WALL", "the old wall"),
        ("remove-stops", "The old, and the (new) wall.", "old, (new) wall."),
        ("remove-stops", "It is the", ""),
        ("remove-punct", "Well-known, (old) wall...  stands!", "Well known old wall  stands"),
        ("remove-stops-punct", "The old, and the (new) wall.", "old new wall"),
        ("reverse-words", "one  two\nthree", "three  two\none"),
        ("reverse-sentences", "One is here. Two is there.", "Two is there. One is here."),
        ("replace-with-query", "anything", "berlin wall"),
        ("prepend-query", "anything", "berlin wall anything"),
        ("repeat-document", "one two", "one two one two"),
        ("re-space", "It isn't (so) bad.", "It is n't ( so ) bad ."),
        ("lemmatize", "The  walls were falling.", "The  wall were fall."),
    ],
)
def test_examples(name, text, expected):
    assert edited(name, text) == expected


SENTENCES = "One is here. Two is there. Three is gone."


@pytest.mark.parametrize(
    ("name", "text", "options", "expected"),
    [
        ("delete-sentence", SENTENCES, {}, {"Two is there. Three is gone."}),
        ("delete-sentence", SENTENCES, {"which": "last"}, {"One is here. Two is there."}),
        ("delete-sentence", "Only one.", {}, {None}),
        ("add-nonrelevant-sentence", "Text.", {}, {"Text. Cats purr.", "Text. Dogs bark at the moon."}),
        ("add-nonrelevant-sentence", "A.", {"position": "start"}, {"Cats purr. A.", "Dogs bark at the moon. A."}),
        ("swap-noun-chunks", "The old wall divided a big city.", {},
         {"The old wall divided a big city.", "a big city. divided The old wall"}),
        # chunks are extended to whole words; those that share one are exchanged as one
        ("swap-noun-chunks", "I'm with the dogs' toys.", {}, {"I'm with the dogs' toys.", "the dogs' toys. with I'm"}),
        ("swap-noun-chunks", "cat/dog/mouse", {}, {None}),
        # prepositions inside words stay
        ("shuffle-prepositions", "He came from the out-of-date office (in Rome) at/near the wall.", {},
         {"He came from the out-of-date office (in Rome) at/near the wall.",
          "He came (in the out-of-date office from Rome) at/near the wall."}),
        ("shuffle-prepositions", "Nothing here.", {}, {None}),
    ],
)  # fmt: skip
def test_examples_by_seed(name, text, options, expected):
    assert {edited(name, text, options, seed=seed) for seed in range(20)} == expected


def test_published_prepositions_have_the_slip():
    """Slots are character offsets taken for token indices: here the offset 4 of `of` hits the token with index 4."""
    text = "All of us went home"
    assert edited("shuffle-prepositions", text, compat="abnirml") == "All of us went of"


def test_published_stop_words_are_whole_tokens(tmp_path):
    """The released code looks up tokens as they are: where s is a stop word and 's is not, 's stays."""
    (tmp_path / "stop.txt").write_text("the\ns\nnot\n")
    given_ = {"analyzer": f"terrier(stopwords={tmp_path / 'stop.txt'})", "compat": "abnirml", "respace": True}
    assert edited("remove-stops", "The cat's owner (not S. Poe).", **given_) == "cat 's owner ( S. Poe ) ."
    assert edited("remove-stops-punct", "The cat's owner.", **given_).split() == ["cat", "s", "owner"]


def test_keep_noun_chunks():
    for seed in range(5):
        assert "a big city" in edited("shuffle-words-keep-noun-chunks", "Then he saw a big city far away", seed=seed)


def test_in_sentences_keeps_sentences_and_last_words():
    one, two = "One two three four.", "Five six seven eight."
    for seed in range(5):
        found = edited("shuffle-words-in-sentences", f"{one} {two}", seed=seed)
        assert found.split()[3] == "four."
        assert set(found.split()[:3]) == {"One", "two", "three"}


def test_listed_typos_stop_words_excepted(tmp_path):
    path = tmp_path / "typos.tsv"
    path.write_text("misspelling\tcorrections\nteh\tthe\nwal\twall, wail\nwlal\twall\nfel\tfell\n")
    found = {edited("typos", "The wall fell on the Wall", {"list": str(path)}, seed=seed) for seed in range(20)}
    assert found == {"The wal fel on the Wall", "The wlal fel on the Wall"}


def test_slips_change_at_least_one_word_and_more_with_the_rate():
    for seed in range(30):
        changed = [
            (a, b) for a, b in zip(words(TEXT), words(edited("typos", TEXT, seed=seed)), strict=True) if a != b
        ]
        assert 0 < len(changed) < len(words(TEXT))
        assert all(a[0] == b[0] for a, b in changed if a[0].isalpha())
    many = edited("typos", TEXT, {"rate": 1.0})
    assert sum(a != b for a, b in zip(words(TEXT), words(many), strict=True)) >= 7


def test_expansions_from_a_file(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text('{"text": "one", "queries": ["what is one", "two"]}\n')
    assert edited("doc2query", "one", {"expansions": str(path)}) == "one what is one two"
    assert edited("doc2query", "one", {"expansions": str(path), "n": 1}) == "one what is one"
    assert edited("doc2query", "other", {"expansions": str(path)}) is None


@pytest.mark.parametrize(
    ("name", "options", "content", "problem"),
    [
        ("typos", {"rate": 0}, None, "rate"),
        ("typos", {"list": "{file}"}, None, "file.txt"),
        ("typos", {"list": "{file}"}, b"", "file.txt"),
        ("typos", {"list": "{file}"}, b"misspelling\tcorrections\nno tab here\n", "file.txt:2"),
        ("doc2query", {}, None, "expansions=FILE"),
        ("doc2query", {"expansions": "{file}"}, None, "file.txt"),
        ("doc2query", {"expansions": "{file}"}, b"", "file.txt"),
        ("doc2query", {"expansions": "{file}"}, b"\xff\xfe", "file.txt"),
        ("doc2query", {"expansions": "{file}"}, b"{}\n", "file.txt:1"),
        ("doc2query", {"expansions": "{file}"}, b'{"text": "x", "queries": "abc"}\n', "file.txt:1"),
    ],
)
def test_refusals(tmp_path, name, options, content, problem):
    path = tmp_path / "file.txt"
    if content is not None:
        path.write_bytes(content)
    given_ = {key: str(path) if value == "{file}" else value for key, value in options.items()}
    with pytest.raises(WhyrankError, match=problem):
        edited(name, SENTENCES, given_)


MOVING = [name for name in edits.names() if getattr(edits.factory(name), "moves_words", False)]
WORDS = ["The", "out-of-date", "office", "I'm", "dogs'", "toys", "of", "(in", "with,", "a", "cat/dog", "wall.City", "and",
         "don't", "He", "saw", "by-and-by", "old", "John", "Smith's", "from", "--", "at/near", "end."]  # fmt: skip
TEXTS = (
    st.text(max_size=60)
    | st.sampled_from(ODD)
    | st.lists(st.sampled_from(["One two.", "Three!", "four,five", " ", "\n", "end.Start"]), max_size=8).map(" ".join)
    | st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from([" ", "  ", "\n"])), max_size=20).map(
        lambda found: "".join(map("".join, found))
    )
)


def test_edits_that_only_move_words_say_so():
    assert set(MOVING) >= {
        "shuffle-words", "reverse-words", "shuffle-words-in-sentences", "shuffle-words-keep-noun-chunks",
        "shuffle-prepositions", "swap-noun-chunks", "shuffle-sentences", "reverse-sentences",
    }  # fmt: skip


@pytest.mark.parametrize("name", MOVING)
@given(text=TEXTS, seed=st.integers(0, 9))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_edits_that_move_words_neither_split_nor_join_them(name, text, seed):
    found = edited(name, text, seed=seed)
    if found is not None:
        assert Counter(found.split()) == Counter(text.split())
        before, after = re.findall(r"\s+", text), re.findall(r"\s+", found)
        whole_units = "sentences" in name.removeprefix("shuffle-words-in-") or "chunks" in name
        assert sorted(after) == sorted(before) if whole_units else after == before
    tokens, moved = edited("re-space", text), edited(name, text, seed=seed, respace=True)
    assert moved is None or Counter(moved.split()) == Counter(tokens.split()), "the same of tokens joined by blanks"


@pytest.mark.parametrize("name", sorted(set(edits.names()) - NEEDS_OPTIONS))
def test_odd_texts(name):
    for text in ODD:
        for mode in ({}, {"respace": True}, {"compat": "abnirml"}):
            found = edited(name, text, **mode)
            assert found is None or isinstance(found, str)
            assert edited(name, text, **mode) == found, "the same generator gives the same edit"


def test_one_word_of_a_quarter_megabyte():
    """Noun chunks and prepositions by the thousand in one word, and a word full of commas: the time is linear."""
    size = 60_000
    text = "cat," * size + " and so on"
    starts = tuple(range(0, 4 * size, 4))
    one = Annotation(text, starts, tuple(start + 3 for start in starts), ("",) * size, ("ADP",) * size, (False,) * size,
                     (Span(0, size),), tuple(Span(i, i + 1) for i in range(size)), ())  # fmt: skip
    start = time.perf_counter()
    assert edits.factory("swap-noun-chunks")(one, random.Random(0)) is None
    assert Counter(edits.factory("shuffle-words-keep-noun-chunks")(one, random.Random(0)).split()) == Counter(
        text.split()
    )
    assert edits.factory("shuffle-prepositions")(one, random.Random(0), None) is None
    assert word_of("(a" + "," * 1_000_000 + "b)") == ("(", "a" + "," * 1_000_000 + "b", ")")
    assert time.perf_counter() - start < 20


def test_an_edit_that_asks_for_what_there_is_not():
    def advertise(text, product="tea"):
        return f"{text} Buy {product}!"

    with pytest.raises(WhyrankError, match=r"'advertise' cannot ask for 'product'; known: text, .* behind \*"):
        inputs_of(advertise)
