"""The named analyzers and their steps, against their published rules and independent implementations."""

from __future__ import annotations

import gzip
import json
import string
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from whyrank.core import BadInput
from whyrank.text import analyzers, steps
from whyrank.text.presets import CONTRACTIONS, FUNCTION_WORDS, chain
from whyrank.text.steps import LUCENE, read_stopwords

STOPS = ["the", "of", "being", "aaab"]


@pytest.fixture(scope="module")
def stop_list(tmp_path_factory):
    path = tmp_path_factory.mktemp("stop") / "stop.txt"
    path.write_text("\n".join(["# a small list", "", *STOPS]), encoding="utf-8")
    return path


# Steps.


@given(st.text())
def test_lower_is_str_lower_but_for_two_letters(token):
    plain = token.replace("İ", "i").replace("Σ", "σ")
    assert steps.lower(token) == plain.lower()


def longest_run(token):
    return max(len(token[i:]) - len(token[i:].lstrip(token[i])) for i in range(len(token)))


PORTER = {
    "caresses": "caress", "ponies": "poni", "ties": "ti", "feed": "feed", "agreed": "agre", "hopping": "hop",
    "sky": "sky", "happy": "happi", "enjoy": "enjoi", "relational": "relat", "conformably": "conform",
    "archaeology": "archaeolog", "geology": "geologi", "probate": "probat", "controll": "control", "is": "is",
    "dying": "dy", "news": "new",
}  # fmt: skip


def test_porter_is_the_one_of_its_author():
    assert {word: steps.porter(word) for word in PORTER} == PORTER


def test_krovetz_gives_words_and_leaves_the_shared_bytes_of_python_alone():
    stem = steps.krovetz()
    assert [stem(word) for word in ["cities", "walked", "running", "xyzzy"]] == ["city", "walk", "running", "xyzzy"]
    assert [stem(letter) for letter in string.ascii_letters] == list(string.ascii_letters.lower())
    assert [bytes([ord(letter)]).decode() for letter in string.ascii_letters] == list(string.ascii_letters)


# Stop word lists.


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"the\n\xff\xfe\n", r"words\.txt:2: .*UTF-8"),
        (b"the\n\nof course\n", r"words\.txt:3: .*'of course'"),
        (b"\n# only a remark\n", r"words\.txt: there are no stop words"),
        (None, r"words\.txt: cannot be read"),
    ],
)
def test_bad_stop_word_files_name_file_and_line(tmp_path, content, problem):
    path = tmp_path / "words.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput, match=problem):
        read_stopwords(str(path))


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


def test_stop_words_are_compared_in_lower_case(tmp_path):
    path = tmp_path / "capital.txt"
    path.write_text("The\nI\n", encoding="utf-8")
    assert analyzers.create(f"terrier(stopwords={str(path)!r})").terms("the I We") == ["we"]
    assert analyzers.create(f"chain(stop={str(path)!r},lower=False)").terms("The the") == ["the"]
    assert chain(stop=path) == analyzers.create(f"chain(stop={str(path)!r})")


# The analyzers of search engines.


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


SUFFIXES = [
    "ational",
    "tional",
    "enci",
    "anci",
    "izer",
    "abli",
    "bli",
    "alli",
    "entli",
    "eli",
    "ousli",
    "ization",
    "ation",
    "ator",
    "alism",
    "iveness",
    "fulness",
    "ousness",
    "aliti",
    "iviti",
    "biliti",
    "logi",
    "icate",
    "ative",
    "alize",
    "iciti",
    "ical",
    "ful",
    "ness",
    "al",
    "ance",
    "ence",
    "er",
    "ic",
    "able",
    "ible",
    "ant",
    "ement",
    "ment",
    "ent",
    "ion",
    "ou",
    "ism",
    "ate",
    "iti",
    "ous",
    "ive",
    "ize",
    "e",
    "ll",
    "s",
    "es",
    "ies",
    "sses",
    "eed",
    "ed",
    "ing",
    "at",
    "bl",
    "iz",
    "y",
]
WORDS = st.text("abeilostyzwxé", max_size=5) | st.builds(
    lambda start, ends: start + "".join(ends),
    st.text("abeilosty", max_size=4),
    st.lists(st.sampled_from(SUFFIXES), max_size=3),
)


@given(st.lists(WORDS, min_size=20, max_size=60))
def test_porter_is_that_of_nltk(words):
    for mode, stem in (("MARTIN_EXTENSIONS", steps.porter), ("ORIGINAL_ALGORITHM", steps.porter_original)):
        oracle = PorterStemmer(mode=mode)
        assert [stem(word) for word in words] == [oracle.stem(word, to_lowercase=False) for word in words]


TERRIER_TEXTS = st.text("thEofinG s.1aB-é_", max_size=40) | st.lists(
    st.sampled_from(
        ["the", "Being", "aaab", "AaAa", "bbb", "12345", "1234x", "x" * 3, "running", "ab" * 10, "ab" * 10 + "a", "é"]
    )
).map(" ".join)


@given(TERRIER_TEXTS)
def test_terrier_is_its_rules_read_plainly(stop_list, text):
    limits = "max_length=20,max_digits=4,max_repeat=3"
    spelled_out = f"chain(tokens=ascii,stop={str(stop_list)!r},stem=porter,keep_query_stops=True,{limits})"
    for spec in (f"terrier(stopwords={str(stop_list)!r})", spelled_out):
        analyzer = analyzers.create(spec)
        assert analyzer.terms(text) == plain_terrier(text, STOPS)
        assert analyzer.query_terms(text) == plain_terrier(text, [])


def test_lucene_on_a_sentence():
    analyzer = analyzers.create("lucene")
    text = "The U.S.A.'s dogs weren't Running to O’Neil's example.com, 3,000.5 times; AN İT 中文 👍🏽!"
    expected = ["u.s.a", "s", "dog", "weren't", "run", "o’neil", "example.com", "3,000.5", "time", "中", "文", "👍🏽"]
    assert analyzer.terms(text) == analyzer.query_terms(text) == expected
    assert analyzer.stopwords == LUCENE
    assert len(LUCENE) == 33


def test_indri_drops_stop_words_on_both_sides(stop_list):
    analyzer = analyzers.create(f"indri(stopwords={str(stop_list)!r})")
    text = "The Cities of héros: being well-known, foo_bar U.S."
    expected = ["city", "héros", "well", "known", "foo", "bar", "u", "s"]
    assert analyzer.terms(text) == analyzer.query_terms(text) == expected


# Chains.

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "tokens": st.sampled_from(["unicode", "plain", "ascii", "whitespace"]),
        "lower": st.booleans(),
        "possessive": st.booleans(),
        "stop": st.sampled_from(["", "lucene"]),
        "stem": st.sampled_from(["", "porter", "krovetz"]),
        "keep_query_stops": st.booleans(),
        "max_length": st.integers(0, 5),
        "max_digits": st.none() | st.integers(0, 3),
        "max_repeat": st.integers(0, 3),
    },
)


@given(OPTIONS, st.text("The it's 12 aAa.é_", max_size=30))
def test_ids_hold_what_differs_from_the_defaults_and_parse_back(options, text):
    made = chain(**options)
    again = analyzers.create(made.id)
    assert again == made
    assert again.terms(text) == made.terms(text)
    assert ("max_digits" in made.id) == (options.get("max_digits") is not None)
    assert ("lower" in made.id) == (options.get("lower") is False)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("chain", ["the", "dog's", "foo_bar", "2001", "aaaa"]),
        ("chain(tokens=plain)", ["the", "dog", "s", "foo", "bar", "2001", "aaaa"]),
        ("chain(tokens=whitespace,lower=False)", ["The", "DOG's", "foo_bar,", "2001", "aaaa"]),
        ("chain(possessive=True,stop=lucene)", ["dog", "foo_bar", "2001", "aaaa"]),
        ("chain(max_digits=0,max_repeat=3,max_length=5)", ["the", "dog's"]),
    ],
)
def test_what_the_options_do(spec, expected):
    assert analyzers.create(spec).terms("The DOG's foo_bar, 2001 aaaa") == expected


# Tokens of a model's own tokenizer.

VOCABULARY = ["[UNK]", "[CLS]", "[SEP]", "play", "##ing", "##ed", "the", ".", "a", "##a", "é"]


def small_tokenizer(vocabulary=VOCABULARY):
    made = Tokenizer(models.WordPiece({token: i for i, token in enumerate(vocabulary)}, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    made.enable_truncation(3)
    made.enable_padding(length=8, pad_token="[PAD]")
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a model (small)")
    small_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def greedy_tokens(word):
    """WordPiece by hand: the longest token first, or the whole word unknown."""
    tokens, at = [], 0
    while at < len(word):
        ends = (end for end in range(len(word), at, -1) if ("##" if at else "") + word[at:end] in VOCABULARY)
        end = next(ends, None)
        if end is None:
            return ["[UNK]"]
        tokens.append(("##" if at else "") + word[at:end])
        at = end
    return tokens


@given(st.lists(st.sampled_from(["Playing", "played", "the", ".", "aaa", "é", "zebra", "thea"])))
def test_tokens_without_special_tokens_truncation_or_padding(folder, words):
    analyzer = analyzers.create(f"wordpiece:{folder}")
    expected = [token for word in words for token in greedy_tokens(word.lower())]
    assert analyzer.terms(" ".join(words)) == analyzer.query_terms(" ".join(words)) == expected


def test_file_and_folder_and_limit(folder):
    by_file = analyzers.create(f"wordpiece:{folder}/tokenizer.json")
    limited = analyzers.create(f"wordpiece:{folder}(max_tokens=2)")
    assert by_file.terms("the playing \ud800 the") == ["the", "play", "##ing", "[UNK]", "the"]
    assert limited.terms("the playing the") == ["the", "play"]
    assert limited.id == f"wordpiece:{folder}(max_tokens=2)"


# `words` and `lemmas`, against spaCy itself.


@pytest.fixture(scope="module")
def blank():
    return pytest.importorskip("spacy").blank("en")


def test_words_and_lemmas_of_a_sentence():
    text = "They'll say the naïve U.S. cats weren't running; it’s John's e-mail of 2019, isn't it?"
    found = ["say", "naïve", "u.s.", "cats", "running", "john", "e", "mail", "2019"]
    analyzer = analyzers.create("words")
    assert analyzer.terms(text) == analyzer.query_terms(text) == found
    lemmas = {"cats": "cat", "running": "run"}
    assert analyzers.create("lemmas").terms(text) == [lemmas.get(word, word) for word in found]


@settings(max_examples=50)
@given(
    st.lists(st.sampled_from(["The", "don't", "we’ll", "U.K.", "a-b", "…", "ΑΣ", "x1", "\ud800", " "])).map(" ".join)
)
def test_words_are_the_tokens_of_spacy(blank, text):
    tokens = [token.text.lower() for token in blank(text.replace("\ud800", "?"))]
    kept = [t for t in tokens if t not in FUNCTION_WORDS | CONTRACTIONS and any(c.isalnum() for c in t)]
    assert analyzers.create("words").terms(text) == [t.replace("ας", "ασ") for t in kept]


@pytest.mark.parametrize(
    ("name", "kept"), [("words", ["the", "was", "was", "it"]), ("lemmas", ["the", "be", "be", "it"])]
)
def test_a_list_of_ones_own_or_of_indri(tmp_path, monkeypatch, name, kept):
    path, own = tmp_path / "stop.txt", analyzers.create(name)
    path.write_text("Cat\nrunning\n", encoding="utf-8")
    listed = analyzers.create(f"{name}(stopwords={str(path)!r})")
    assert listed.terms("The cat was running, wasn't it") == kept
    monkeypatch.setenv("WHYRANK_INDRI_STOPWORDS", str(path))
    assert analyzers.create(name) == listed != own
    (tmp_path / "other.txt").write_text("sleep\n", encoding="utf-8")
    other = analyzers.create(f"{name}(stopwords={str(tmp_path / 'other.txt')!r})")
    assert other.terms("the dog can't sleep") == ["the", "dog", "ca" if name == "words" else "can"]


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
