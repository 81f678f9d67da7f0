"""Real pair sets, with the counts that their descriptions state."""

from __future__ import annotations

import gzip
import json

import pytest

from whyrank.data.pairs import open_pairs


@pytest.mark.parametrize(
    ("folder", "kind", "count", "parts"),
    [
        ("msrp", "paraphrase", 3_900, {"train": 2_753, "test": 1_147}),
        ("jfleg", "fluency", 6_004, {"dev": 754 * 4, "test": 747 * 4}),
        ("turkcorpus", "simplicity", 18_872, {"test": 359 * 8, "tune": 2_000 * 8}),
        ("wnc_sample", "neutrality", 1_100, {"train": 1_000, "test": 100}),
    ],
)
def test_row_counts(data_folder, folder, kind, count, parts):
    found = open_pairs(str(data_folder / folder), kind)
    assert len(found) == len({pair.id for pair in found}) == count
    assert found.notes == ()
    for split, size in parts.items():
        assert len(open_pairs(f"{data_folder / folder}(split={split})")) == size


def test_identical_pairs_are_kept(data_folder):
    jfleg = open_pairs(str(data_folder / "jfleg"))
    assert sum(pair.texts["source"] != pair.texts["fluent"] for pair in jfleg) == 5_175
    assert sum(pair.texts["spellchecked"] != pair.texts["fluent"] for pair in jfleg) == 5_571
    wnc = open_pairs(str(data_folder / "wnc_sample"))
    assert sum(pair.texts["biased"] == pair.texts["neutral"] for pair in wnc) == 5


def test_no_bracket_codes_are_left_in_turkcorpus(data_folder):
    found = open_pairs(str(data_folder / "turkcorpus"))
    assert not any("-lrb-" in text or "-rrb-" in text for pair in found for text in pair.texts.values())
    assert any("(" in pair.texts["simple"] for pair in found)


def test_articles(data_folder):
    assert len(open_pairs(str(data_folder / "xsum_sample"), "succinctness")) == 1_000
    news = open_pairs(str(data_folder / "bbc_news_summary"), "succinctness")
    assert (len(news), news.roles) == (2_125, {"title", "summary", "body"})
    file = data_folder / "bbc_news_summary" / "articles.jsonl.gz"
    plain = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    assert [(pair.id, pair.texts["body"]) for pair in news] == [(each["id"], each["text"]) for each in plain]
    mapped = open_pairs(f"{file}(body=text)", "succinctness")
    assert [pair.texts["title"] for pair in mapped] == [each["title"] for each in plain]
