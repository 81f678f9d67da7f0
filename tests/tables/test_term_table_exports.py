"""Synonym files and expansions: what a search engine would read from them is what the table says."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from term_table_samples import as_dict, tables

from whyrank.core import WhyrankError
from whyrank.data import Collection
from whyrank.tables import TermTable, collection_words, write_expansions, write_synonyms
from whyrank.text import analyzers

SHARES = st.floats(0, 1, width=32)
TRIMMED = "".join(chr(i) for i in range(33))
QUICK = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def split(text: str, separator: str) -> list[str]:
    """Cut at a separator that has no backslash before it; empty parts are dropped. This is how the engines do it."""
    parts, part, at = [], "", 0
    while at < len(text):
        if text.startswith(separator, at):
            parts, part, at = [*parts, part] if part else parts, "", at + len(separator)
            continue
        step = 2 if text[at] == "\\" else 1
        part, at = part + text[at : at + step], at + step
    return [*parts, part] if part else parts


def meant(text: str) -> str:
    found, at = "", 0
    while at < len(text):
        if text[at] == "\\" and at < len(text) - 1:
            at += 1
        found, at = found + text[at], at + 1
    return found.strip(TRIMMED)


def engine(path) -> dict[str, list[str]]:
    """What each term becomes: lists with commas alone map each term to all, lines with an arrow the left to the right."""
    rules: dict[str, list[str]] = {}
    text = re.sub(r"^# (?:name|opposite): ", "", path.read_bytes().decode(), flags=re.MULTILINE)
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line or line.startswith("#"):
            continue
        sides = split(line, "=>")
        assert len(sides) in (1, 2), line
        left, right = ([meant(term) for term in split(side, ",")] for side in (sides[0], sides[-1]))
        for term in left:
            rules.setdefault(term, []).extend(right)
    return rules


def sets(rules: dict[str, list[str]]) -> dict[str, set[str]]:
    return {term: set(others) for term, others in rules.items()}


def fits(*terms: str) -> bool:
    return all(t == t.strip() == t.strip(TRIMMED) and "\n" not in t and "\r" not in t for t in terms)


@given(tables(SHARES), SHARES, st.none() | st.integers(1, 3))
@QUICK
def test_mappings_are_what_the_engine_reads(tmp_path, drawn, threshold, top):
    table, entries = drawn
    path = tmp_path / "synonyms.txt"
    written = write_synonyms(table, path, threshold, top)
    expected: dict[str, list[str]] = {}
    count = left_out = 0
    for q in table.query_terms:
        mine = [
            (-w, table.doc_terms.index(d), d)
            for (query, d), w in entries.items()
            if query == q != d and w >= threshold
        ]
        for _, _, d in sorted(mine)[:top]:
            if fits(q, d):
                expected.setdefault(q, [q]).append(d)
                count += 1
            else:
                left_out += 1
    assert sets(engine(path)) == sets(expected)  # what is in comments comes last
    assert written.entries + written.flagged == count
    assert written.left_out == left_out
    write_synonyms(table, path, threshold, top, replace=True)
    assert sets(engine(path)) == sets({q: answers[1:] for q, answers in expected.items()})


@given(tables(SHARES), SHARES, st.none() | st.integers(1, 3))
@QUICK
def test_equivalent_pairs(tmp_path, drawn, threshold, top):
    table, path = drawn[0], tmp_path / "synonyms.txt"
    write_synonyms(table, path, threshold, top)
    pairs = {frozenset((q, d)) for q, answers in engine(path).items() for d in answers if d != q}
    written = write_synonyms(table, path, threshold, top, equivalent=True)
    rules = engine(path)
    assert {frozenset((a, b)) for a, others in rules.items() for b in others if a != b} == pairs
    assert all(a in rules[b] for a, others in rules.items() for b in others)
    lines = path.read_text(encoding="utf-8").split("\n")
    assert written.lines + written.flagged == len(pairs) == len(lines) - 1


def test_a_file_by_hand(tmp_path):
    pairs = [("car", "motor vehicle", 0.5), ("car", "car", 0.9), ("car", "a,b", 0.4), ("car", "bus", 0.1), ("#1", "x => y", 0.5), ("back\\slash", "bus", 0.5), ("a\nb", "bus", 0.5)]  # fmt: skip
    table = TermTable.from_triples(*zip(*pairs, strict=True))
    written = write_synonyms(table, tmp_path / "s.txt", threshold=0.2)
    assert (tmp_path / "s.txt").read_text() == (
        "car => car, motor vehicle, a\\,b\n\\#1 => \\#1, x \\=> y\nback\\\\slash => back\\\\slash, bus\n"
    )
    assert written == (3, 4, 0, 1, 0)
    write_synonyms(table, tmp_path / "s.txt", top=1, equivalent=True)
    assert (tmp_path / "s.txt").read_text() == "car, motor vehicle\n\\#1, x \\=> y\nback\\\\slash, bus\n"


@given(tables(SHARES), SHARES, st.none() | st.integers(1, 3))
@QUICK
def test_expansions(tmp_path, drawn, threshold, top):
    written = write_expansions(drawn[0], tmp_path / "e.json", threshold, top)
    found = json.loads((tmp_path / "e.json").read_text(encoding="utf-8"))
    left = as_dict(drawn[0].prune(threshold, top))
    assert {(q, d): pytest.approx(w, rel=1e-7) for q, answers in found.items() for d, w in answers} == left
    assert all([w for _, w in answers] == sorted((w for _, w in answers), reverse=True) for answers in found.values())
    assert written[:2] == (len(found), len(left))


def test_words_of_texts_instead_of_stems(tmp_path):
    """In lower case, as engines put queries; opposites and names are comments, in which a rule waits."""
    pairs = [("car", "vehicl", 0.9), ("car", "volvo", 0.8), ("cheap", "expens", 0.7), ("cheap", "inexpens", 0.6), ("volvo", "zzz", 0.5)]  # fmt: skip
    table = TermTable.from_triples(*zip(*pairs, strict=True), analyzer="lucene")
    texts = {"d": "cheap vehicles, expensive vehicles, a vehicle; a Volvo is inexpensive, this Volvo, that volvo"}
    words = collection_words(Collection.of(texts, {"q": "the car"}), analyzers.create("lucene"))
    file = tmp_path / "s.txt"
    assert write_synonyms(table, file, top=9, words=words) == (2, 2, 2, 0, 1)
    assert file.read_text().splitlines() == [
        "car => car, vehicles", "# name: car => car, volvo",
        "cheap => cheap, inexpensive", "# opposite: cheap => cheap, expensive",
    ]  # fmt: skip
    assert write_synonyms(table, file, top=9, equivalent=True, words=words)[:3] == (2, 2, 2)
    assert file.read_text().splitlines()[:2] == ["car, vehicles", "# name: car, volvo"]
    write_expansions(table, file, words=words)
    assert json.loads(file.read_text())["cheap"] == [["expensive", 0.7], ["inexpensive", 0.6]]
    for write in (write_synonyms, write_expansions):
        with pytest.raises(WhyrankError, match=r"stems or pieces of words \(lucene\).*--collection"):
            write(table, file)
