from __future__ import annotations

import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from side_by_side import in_threads
from whyrank.core import WhyrankError, cache_folder
from whyrank.text.annotation import Annotator
from whyrank.text.annotation import annotator as annotate
from whyrank.text.annotation.annotator import Annotation, Span, annotator, parsed_texts
from whyrank.text.annotation.parsing import Parser, load_parser

spacy = pytest.importorskip("spacy", reason="linguistic annotation needs spaCy (the extra nlp)")

WALL = "The old city wall was built by John Smith in 1850. Many visitors walk along the river."
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
ODD = [
    "",
    " ",
    "\n\n \t",
    "\0",
    "a\0b",
    "\ud800",
    "x \ud83d\ude00 \udfff!",
    "😀👩‍👩‍👧",
    "שלום עולם, مرحبا",
    "\u2028 x\x85y",
    "a\r\nb",
]


@pytest.fixture(scope="module")
def english() -> Annotator:
    try:
        return annotator()
    except WhyrankError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def blank(tmp_path_factory) -> Annotator:
    folder = tmp_path_factory.mktemp("pipelines") / "blank"
    spacy.blank("en").to_disk(folder)
    return annotator(str(folder))


def forget():
    """Forget what is held in memory, as a new process would."""
    annotate._shelf.cache_clear()


def words(annotation: Annotation, spans) -> list[str]:
    return [annotation.words_of(span) for span in spans]


def test_a_text_is_annotated(english):
    [found] = english.annotate([WALL])
    assert found.text == WALL
    assert found.tokens[:6] == ["The", "old", "city", "wall", "was", "built"]
    assert len(found) == 19
    assert words(found, found.sentences) == [
        "The old city wall was built by John Smith in 1850.",
        "Many visitors walk along the river.",
    ]
    assert words(found, found.chunks) == ["The old city wall", "John Smith", "Many visitors", "the river"]
    assert [(found.words_of(e), e.label) for e in found.entities] == [("John Smith", "PERSON"), ("1850", "DATE")]
    tagged = dict(zip(found.tokens, zip(found.lemmas, found.pos, found.stops, strict=True), strict=True))
    assert tagged["by"] == ("by", "ADP", True)
    assert tagged["along"] == ("along", "ADP", True)
    assert tagged["built"] == ("build", "VERB", False)
    assert tagged["was"] == ("be", "AUX", True)
    assert tagged["visitors"] == ("visitor", "NOUN", False)
    assert tagged["Smith"] == ("Smith", "PROPN", False)


def test_it_says_what_spacy_says(english):
    doc = load_parser(english.name)._nlp(WALL)
    [found] = english.annotate([WALL])
    assert found.lemmas == tuple(token.lemma_ for token in doc)
    assert found.pos == tuple(token.pos_ for token in doc)
    assert found.stops == tuple(token.is_stop for token in doc)
    assert found.sentences == tuple(Span(s.start, s.end) for s in doc.sents)
    assert found.chunks == tuple(Span(c.start, c.end) for c in doc.noun_chunks)
    assert found.entities == tuple(Span(e.start, e.end, e.label_) for e in doc.ents)


def check(found: Annotation, text: str) -> None:
    """Tokens and gaps are the text; sentences are all tokens, once each; spans lie inside."""
    gaps = [text[end:start] for end, start in zip([0, *found.ends], [*found.starts, len(text)], strict=True)]
    assert (
        gaps[0] + "".join(token + gap for token, gap in zip(found.tokens, gaps[1:], strict=True))
        == text
        == found.text
    )
    assert not "".join(gaps).strip()
    assert all(found.tokens)
    assert [i for start, end, _ in found.sentences for i in range(start, end)] == list(range(len(found)))
    assert len(found) == len(found.lemmas) == len(found.pos) == len(found.stops)
    for span in (*found.chunks, *found.entities):
        assert 0 <= span.start < span.end <= len(found)
        assert text[found.starts[span.start] :].startswith(found.words_of(span))


@given(ANY_TEXT)
@example("a\ud800")
@settings(max_examples=60, deadline=None)
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
    assert parsed_texts(english) - before == 7
    for _ in range(20):
        assert Annotator(english.name).annotate(texts[::-1]) == found[::-1]
    assert parsed_texts(english) - before == 7
    more = english.annotate(["A new one.", *texts[:3], "Another new one."])
    assert [annotation.text for annotation in more] == ["A new one.", *texts[:3], "Another new one."]
    assert parsed_texts(english) - before == 9


def test_how_texts_are_batched_changes_nothing(english):
    texts = [f"{WALL} The {i}th visitor from London met {'very ' * (i % 5)}old Ann." for i in range(130)]
    together = english.annotate(texts)
    for i in (0, 1, 63, 64, 129):
        assert list(load_parser(english.name).parse([texts[i]])) == [[together[i]]]


def test_an_annotator_is_a_value(english):
    assert annotator() == Annotator() == Annotator("en_core_web_sm")
    assert hash(annotator()) == hash(Annotator())
    assert pickle.loads(pickle.dumps(english)) == english
    assert "3." in english.identity
    assert f"spaCy {spacy.__version__}" in english.identity


def test_one_text_in_place_of_a_list_is_refused(english):
    with pytest.raises(TypeError, match="a list of texts"):
        english.annotate("a text")


def test_two_pipelines_do_not_answer_for_one_another(english, blank):
    [full], [bare] = english.annotate([WALL]), blank.annotate([WALL])
    assert (full.lemmas[4], bare.lemmas[4]) == ("be", "was")
    forget()
    assert (english.annotate([WALL]), blank.annotate([WALL])) == ([full], [bare])


def test_a_pipeline_without_components_says_what_it_lacks_when_asked(blank):
    for _ in range(2):
        [found] = blank.annotate(["The walls stood. They fell!"])
        assert found.lemmas == ("The", "walls", "stood", ".", "They", "fell", "!")
        assert words(found, found.sentences) == ["The walls stood.", "They fell!"]
        assert found.stops[0]
        for what, spans in (("noun chunks", found.chunks), ("entities", found.entities), ("parts of sp", found.pos)):
            with pytest.raises(WhyrankError, match=f"en_pipeline .* gives no {what}.*such as en_core_web_sm"):
                list(spans)
        forget()


def test_a_pipeline_that_drops_characters_is_refused():
    nlp = spacy.blank("en")
    nlp.tokenizer = lambda text: spacy.tokens.Doc(nlp.vocab, text.split())
    parser = Parser(nlp, "lossy")
    with pytest.raises(WhyrankError, match="the pipeline lossy changes texts"):
        list(parser.parse(["two  blanks"]))


def test_long_texts_are_annotated_in_pieces(english):
    sentence = f"The wall {'of stone' + 'x' * 900} was built by John Smith. "
    text = sentence * 260 + "\ud800 Ann left."
    assert len(text) > 200_000
    [found] = english.annotate([text])
    check(found, text)
    assert found.sentences[-1].end == len(found)
    assert words(found, found.sentences[:2]) == [sentence.strip()] * 2
    assert words(found, found.chunks).count("John Smith") == 260
    forget()
    assert english.annotate([text]) == [found]


@pytest.mark.parametrize("line", ["x" * 2_000_000, "(" * 5_000], ids=["a word of 2 MB", "nothing but brackets"])
def test_lines_without_white_space_take_no_forever(blank, line):
    began = time.perf_counter()
    [found] = blank.annotate([line])
    assert "".join(found.tokens) == line
    assert time.perf_counter() - began < 10


def test_threads_may_share_an_annotator(english):
    texts = [f"Thread text {i}." for i in range(40)]
    found = {}

    def work(n):
        found[n] = english.annotate(texts[n * 5 :])

    before = parsed_texts(english)
    assert in_threads(work, 4) == []
    assert parsed_texts(english) - before == 40
    assert all(found[n] == found[0][n * 5 :] for n in range(4))


def test_a_damaged_row_is_annotated_again(english):
    found = english.annotate([WALL])
    path = cache_folder() / "annotations.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE annotations SET annotation = x'00'")
    connection.close()
    before = parsed_texts(english)
    for _ in range(2):
        forget()
        assert english.annotate([WALL]) == found
    assert parsed_texts(english) - before == 1


CODE = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2] / "src")!r})
from whyrank.text.annotation.annotator import annotator, parsed_texts
asked = annotator(sys.argv[1])
found = asked.annotate([f"Visitor number {{i}} of the old city wall." for i in range(*map(int, sys.argv[2:]))])
print(parsed_texts(asked), sum(map(len, found)), "spacy" in sys.modules)
"""


def visitors(n: int) -> list[str]:
    return [f"Visitor number {i} of the old city wall." for i in range(n)]


def start(name, first, last):
    command = [sys.executable, "-c", CODE, name, str(first), str(last)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finish(process):
    out, _ = process.communicate(timeout=60)
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
    runs = [start(blank.name, 0, 1400), start(blank.name, 700, 2100)]
    parsed = [int(finish(run)[0]) for run in runs]
    assert stored() == 2100
    assert 2100 <= sum(parsed) <= 2800
    assert finish(start(blank.name, 0, 2100)) == ["0", str(2100 * 9), "False"]
    before = parsed_texts(blank)
    assert [annotation.text for annotation in blank.annotate(visitors(2101))] == visitors(2101)
    assert parsed_texts(blank) - before == 1


def test_a_killed_run_keeps_its_batches(english):
    process = start(english.name, 0, 3000)
    deadline = time.monotonic() + 40
    while stored() < 64:
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    kept = stored()
    assert 64 <= kept < 3000
    before = parsed_texts(english)
    english.annotate(visitors(kept + 10))
    assert parsed_texts(english) - before == 10
