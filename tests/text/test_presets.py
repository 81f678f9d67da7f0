"""The named analyzers, against their published rules."""

from __future__ import annotations

import gzip
import json
import string
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer

from whyrank.core import BadInput, WhyrankError
from whyrank.text import analyzers
from whyrank.text.unicode_words import unicode_words

STOPS = ["the", "of", "being", "aaab"]


@pytest.fixture(scope="module")
def stop_list(tmp_path_factory):
    path = tmp_path_factory.mktemp("stop") / "stop.txt"
    path.write_text("\n".join(["# a small list", "", *STOPS]), encoding="utf-8")
    return path


@settings(deadline=None)
@given(st.text())
def test_whitespace_is_str_split(text):
    analyzer = analyzers.create("whitespace")
    assert analyzer.terms(text) == analyzer.query_terms(text) == text.split()


def longest_run(token):
    return max(len(token[i:]) - len(token[i:].lstrip(token[i])) for i in range(len(token)))


def plain_terrier(text, stops):
    """Terrier's rules as loops: runs of ASCII letters and digits, limits, stop words, Porter."""
    tokens, run = [], ""
    for char in text + " ":
        if char in string.ascii_letters + string.digits:
            run += char.lower()
        elif run:
            tokens.append(run)
            run = ""
    stemmer = PorterStemmer(mode=PorterStemmer.MARTIN_EXTENSIONS)
    kept = [t for t in tokens if len(t) <= 20 and sum(c.isdigit() for c in t) <= 4 and longest_run(t) <= 3]
    return [stemmer.stem(t) for t in kept if t not in stops]


TERRIER_TEXTS = st.text("thEofinG s.1aB-é_", max_size=40) | st.lists(
    st.sampled_from(
        ["the", "Being", "aaab", "AaAa", "bbb", "12345", "1234x", "x" * 3, "running", "ab" * 10, "ab" * 10 + "a", "é"]
    )
).map(" ".join)


@settings(deadline=None)
@given(TERRIER_TEXTS)
def test_terrier_is_its_rules_read_plainly(stop_list, text):
    analyzer = analyzers.create(f"terrier(stopwords={str(stop_list)!r})")
    assert analyzer.terms(text) == plain_terrier(text, STOPS)
    assert analyzer.query_terms(text) == plain_terrier(text, [])


@settings(deadline=None)
@given(TERRIER_TEXTS)
def test_a_chain_can_spell_terrier_out(stop_list, text):
    limits = "max_length=20,max_digits=4,max_repeat=3"
    spec = f"chain(tokens=ascii,stop={str(stop_list)!r},stem=porter,keep_query_stops=True,{limits})"
    chain, terrier = analyzers.create(spec), analyzers.create(f"terrier(stopwords={str(stop_list)!r})")
    assert chain.terms(text) == terrier.terms(text)
    assert chain.query_terms(text) == terrier.query_terms(text)


def test_lucene_on_a_sentence():
    analyzer = analyzers.create("lucene")
    text = "The U.S.A.'s dogs weren't Running to O’Neil's example.com, 3,000.5 times; AN İT 中文 👍🏽!"
    expected = ["u.s.a", "s", "dog", "weren't", "run", "o’neil", "example.com", "3,000.5", "time", "中", "文", "👍🏽"]
    assert analyzer.terms(text) == analyzer.query_terms(text) == expected


WORDS = ["the", "Running", "dog's", "flies", "U.S.", "it", "CITIES", "héros", "Naïveté’s", "x1", "中文"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(WORDS)).map(" ".join) | st.text())
def test_krovetz_differs_from_lucene_in_the_stemmer_alone(text):
    spec = "chain(possessive=True,stop=lucene,stem={})"
    for name, stem in (("lucene", "porter"), ("krovetz", "krovetz")):
        preset, chain = analyzers.create(name), analyzers.create(spec.format(stem))
        assert preset.terms(text) == chain.terms(text)
        unstemmed = analyzers.create(spec.format("''"))
        assert len(preset.terms(text)) == len(unstemmed.terms(text)) <= len(unicode_words(text))


def test_krovetz_on_a_sentence():
    assert analyzers.create("krovetz").terms("The cities' ponies walked") == ["city", "pony", "walk"]


def test_indri_drops_stop_words_on_both_sides(stop_list):
    analyzer = analyzers.create(f"indri(stopwords={str(stop_list)!r})")
    text = "The Cities of héros: being well-known, foo_bar U.S."
    expected = ["city", "héros", "well", "known", "foo", "bar", "u", "s"]
    assert analyzer.terms(text) == analyzer.query_terms(text) == expected


@pytest.mark.parametrize("name", ["terrier", "indri"])
def test_a_stop_list_from_the_environment_becomes_part_of_the_id(stop_list, monkeypatch, name):
    variable = f"WHYRANK_{name.upper()}_STOPWORDS"
    monkeypatch.chdir(stop_list.parent)
    monkeypatch.setenv(variable, stop_list.name)
    analyzer = analyzers.create(name)
    monkeypatch.delenv(variable)
    monkeypatch.chdir("/")
    assert analyzer.id == f"{name}(stopwords={stop_list})"
    assert analyzers.create(analyzer.id) == analyzer
    with pytest.raises(WhyrankError, match=rf"{name}\(stopwords=FILE\) or set {variable}=FILE"):
        analyzers.create(name)


@pytest.mark.parametrize("name", ["terrier", "indri"])
def test_bad_stop_lists_are_clear_errors(name, tmp_path):
    with pytest.raises(BadInput, match=r"absent\.txt: cannot read"):
        analyzers.create(f"{name}(stopwords={str(tmp_path / 'absent.txt')!r})")
    with pytest.raises(WhyrankError, match="stopwords=5 is not a path"):
        analyzers.create(f"{name}(stopwords=5)")


def test_stop_words_are_compared_in_lower_case(tmp_path):
    path = tmp_path / "capital.txt"
    path.write_text("The\nI\n", encoding="utf-8")
    assert analyzers.create(f"terrier(stopwords={str(path)!r})").terms("the I We") == ["we"]
    assert analyzers.create(f"chain(stop={str(path)!r},lower=False)").terms("The the") == ["the"]


def test_published_sample_counts_come_out_to_the_unit(data_folder):
    """Relevance, sum of tf and overlap at equal length on TREC DL 2019 (MacAvaney et al. 2020, v1, table 1)."""
    folder = data_folder / "msmarco_dl19"
    analyzer = analyzers.create(f"terrier(stopwords={str(data_folder / 'stopwords' / 'terrier.txt')!r})")
    lines = gzip.decompress((folder / "corpus.jsonl.gz").read_bytes()).decode().splitlines()
    docs = {doc["id"]: doc["text"] for doc in map(json.loads, lines)}
    queries = dict(line.split("\t") for line in (folder / "queries.tsv").read_text(encoding="utf-8").splitlines())
    rows = defaultdict(list)
    for line in (folder / "qrels.txt").read_text().splitlines():
        query, _, doc, grade = line.split()
        rows[query].append((analyzer.terms(docs[doc]), int(grade)))
    found = Counter()
    for query, judged in rows.items():
        wanted, by_length = set(analyzer.query_terms(queries[query])), defaultdict(list)
        for terms, grade in judged:
            by_length[len(terms)].append((grade, sum(term in wanted for term in terms)))
        for same in by_length.values():
            for i, (grade, tf) in enumerate(same):
                for other_grade, other_tf in same[:i]:
                    found["relevance"] += grade != other_grade
                    found["sum of tf"] += tf != other_tf
                    found["overlap"] += tf != other_tf and tf > 0 and other_tf > 0
    assert found == {"relevance": 19_676, "sum of tf": 27_948, "overlap": 20_819}
