"""What grades mean: known scales, declared ones, and the careful guess."""

from __future__ import annotations

import pytest

from whyrank.core import BadInput, WhyrankError
from whyrank.data import Grades, open_collection
from whyrank.data.grades import ANTIQUE, LIVEQA, TREC_DL, grades_for, known_grades

KNOWN = {
    "dl19 msmarco_dl19 DL20 dl-2021:test dl_22 dl23 irds:msmarco-passage/trec-dl-2019/judged "
    "irds:msmarco-passage-v2/trec-dl-2022 trec-dl-2020": TREC_DL,
    "antique irds:antique/test/non-offensive ANTIQUE:test": ANTIQUE,
    "liveqa_med2017 LiveQA-Med": LIVEQA,
    "cranfield dl18 dl190 idl19 antiques irds:msmarco-document/trec-dl-2019 dl24": None,
}


@pytest.mark.parametrize(
    ("name", "scale"), [(name, scale) for names, scale in KNOWN.items() for name in names.split()]
)
def test_known_scales(name, scale):
    assert known_grades(name) is scale


def test_a_scale_on_its_head_is_refused():
    with pytest.raises(WhyrankError, match=r"non-relevant 2, lowest relevant 2"):
        Grades({}, relevant=2, nonrelevant=2)


@pytest.mark.parametrize(
    ("present", "noted"),
    [([], False), ([0, 1], False), ([0, 2, 4], False), ([-2, 0, 1], False), ([-1, 1], False),
     ([1], True), ([2], True), ([1, 2], True), ([1, 2, 3, 4], True), ([2, 4], True)],
)  # fmt: skip
def test_unknown_scales_are_relevant_from_1_whatever_grades_occur(present, noted):
    notes: list[str] = []
    qrels = {"q": {str(grade): grade for grade in present}}
    grades = grades_for("something", qrels, notes)
    note = (
        "no judgement is below grade 1, the lowest relevant: the collection lists relevant documents only; "
        "if some grades mean non-relevant, say so in collection.yaml, or files(..., relevant=2)"
    )
    assert (grades.relevant, grades.nonrelevant, notes) == (1, 0, [note] * noted)
    assert all(grades.name(grade) == str(grade) for grade in present)
    assert set(present) <= set(grades.names)


def test_a_declared_scale_wins_over_a_known_one():
    notes: list[str] = []
    only = "no judgement is below grade {}, the lowest relevant: the collection lists relevant documents only"
    assert grades_for("dl19", {"q": {"d": 3}}, notes, Grades({}, relevant=3)).relevant == 3
    assert grades_for("dl19", {"q": {"d": 3}}, notes) is TREC_DL
    assert notes == [only.format(3), only.format(2)]


def test_grades_that_do_not_fit_the_scale_are_noted():
    notes: list[str] = []
    grades_for("dl19", {"q": {"a": 0, "b": 1}}, notes)
    assert notes == ["no judgement reaches grade 2, the lowest relevant: nothing counts as relevant"]
    notes.clear()
    grades_for("dl19", {"q": {"z": 0, "a": 4, "b": 7}}, notes)
    assert notes == ["grades without a declared name: 4, 7"]


def declare(tmp_path, text):
    """The name and the grades of a collection of one document that declares them."""
    (tmp_path / "corpus.jsonl").write_text('{"id": "a", "text": "x"}')
    (tmp_path / "queries.tsv").write_text("1\tx")
    (tmp_path / "collection.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    found = open_collection(str(tmp_path))
    return found.name, found.grades


def test_a_declaration_is_read(tmp_path):
    text = "name: mine\ngrades:\n  names: {0: bad, 1: so so, 2: good}\n  relevant: 2\n  nonrelevant: 0\n"
    assert declare(tmp_path, text) == ("mine", Grades({0: "bad", 1: "so so", 2: "good"}, 2, 0))
    assert declare(tmp_path, "name: only\n") == ("only", Grades())
    assert declare(tmp_path, "grades: {relevant: 2}\n") == (tmp_path.name, Grades({0: "0", 2: "2"}, 2))
    aliases = "name: &a mine\ngrades: {names: {0: *a, 1: *a}}\n"
    assert declare(tmp_path, aliases) == ("mine", Grades({0: "mine", 1: "mine"}))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", r"collection\.yaml: the file is empty"),
        ("nmae: x\n", r"collection\.yaml: nmae: .*; known keys: name, grades"),
        ("grades: {relevant: high}\n", r"collection\.yaml: grades\.relevant: Input should be a valid integer"),
        ("grades: {relevant: 0}\n", r"collection\.yaml: the non-relevant grade must lie below .*; mend 'relevant'"),
        ("name: x\ngrades: [1\n", r"collection\.yaml:3: malformed YAML"),
        (b"name: \xff\xff\n", r"collection\.yaml: cannot be read"),
    ],
)
def test_a_bad_declaration_is_named(tmp_path, text, what):
    with pytest.raises(BadInput, match=what):
        declare(tmp_path, text)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (BOMB, "its aliases stand for more than 100,000 values"),
        ("name: &a [*a]\n", "its aliases stand for more than 100,000 values"),
        ("name: " + "x" * 2**20, "it has more than 1,048,576 bytes"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_a_declaration_has_a_size_limit(tmp_path, text, what):
    with pytest.raises(BadInput, match=rf"collection\.yaml: malformed YAML \(.*{what}") as caught:
        declare(tmp_path, text)
    assert "\n" not in str(caught.value)
