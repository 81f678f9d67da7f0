"""What holds for every analyzer: the contract, shared state, identities, analyzers of one's own, refusals."""

from __future__ import annotations

import importlib.util
import pickle
import re
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from side_by_side import in_threads
from whyrank.core import BadInput, MissingExtra, UnknownName, WhyrankError
from whyrank.testing import AnalyzerContract
from whyrank.text import Analyzer, State, TextCache, analyzers
from whyrank.text.presets import _tokenizer
from whyrank.text.steps import limits, lower, porter

SPECS = [
    "lucene", "krovetz", "terrier(stopwords={stops})", "indri(stopwords={stops})", "whitespace", "words", "lemmas",
    "chain(stop={stops},stem=porter)", "wordpiece:{tokenizer}", "wordpiece:{tokenizer}(max_tokens=2)",
]  # fmt: skip


@pytest.fixture
def files(tmp_path):
    """A list of stop words and a tokenizer, and a function that makes an analyzer from a spec that names them."""
    stops, tokenizer = tmp_path / "stop words.txt", tmp_path / "a model" / "tokenizer.json"
    stops.write_text("the\na\nof\n", encoding="utf-8")
    tokenizer.parent.mkdir()
    Tokenizer(models.WordPiece({"[UNK]": 0, "t": 1, "##h": 2}, unk_token="[UNK]")).save(str(tokenizer))
    return {"stops": repr(str(stops)), "tokenizer": str(tokenizer.parent)}


@pytest.mark.parametrize("spec", SPECS)
class TestContract(AnalyzerContract):
    @pytest.fixture(autouse=True)
    def given_spec(self, spec, files):
        self.spec = spec.format(**files)

    def make(self):
        return analyzers.create(self.spec)

    def test_equal_analyzers_share_a_vocabulary(self):
        assert self.make().vocabulary is analyzers.create(self.make().id).vocabulary
        assert self.make().identity.startswith(self.make().id)


def test_a_pickle_is_understood_by_a_fresh_process(files):
    analyzer = analyzers.create("terrier(stopwords={stops})".format(**files))
    code = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1])).terms('The houses of Rome'))"
    command = [sys.executable, "-c", code, pickle.dumps(analyzer).hex()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['hous', 'rome']"


@pytest.mark.parametrize("name", ["terrier", "indri", "chain", "words", "lemmas"])
def test_a_stop_list_that_changed_makes_another_analyzer(tmp_path, name):
    path = tmp_path / "stop.txt"
    path.write_text("the\n", encoding="utf-8")
    spec = f"{name}({'stop' if name == 'chain' else 'stopwords'}={str(path)!r})"
    before = analyzers.create(spec)
    parcel, terms = pickle.dumps(before), before.terms("the houses")
    path.write_text("houses\n", encoding="utf-8")
    after = analyzers.create(spec)
    assert after != before
    assert (after.id, after.identity != before.identity) == (before.id, True)
    assert (before.terms("the houses"), after.terms("the houses")) == (terms, ["the"])
    with pytest.raises(WhyrankError, match="has changed meanwhile"):
        pickle.loads(parcel)


@pytest.fixture
def letters():
    @analyzers.register("letters")
    def letters(longest: int = 30) -> Analyzer:
        words = re.compile("[a-z]+", re.IGNORECASE).findall
        return Analyzer.of(f"letters(longest={longest})", words, [lower, limits(max_length=longest), porter])

    yield letters
    analyzers.forget("letters")


def test_editing_your_own_makes_another_analyzer(tmp_path):
    source = (
        "from whyrank.text import Analyzer, analyzers\n"
        "@analyzers.register('own')\n"
        "def own():\n"
        "    return Analyzer.of('own', str.split, [str.{}])\n"
    )
    found = []
    for number, step in enumerate(["upper", "lower"]):
        path = tmp_path / f"own{number}.py"
        path.write_text(source.format(step))
        spec = importlib.util.spec_from_file_location("own_analyzers", path)
        sys.modules["own_analyzers"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append(analyzers.create("own"))
        analyzers.forget("own")
    del sys.modules["own_analyzers"]
    assert [analyzer.terms("Ab c") for analyzer in found] == [["AB", "C"], ["ab", "c"]]
    assert found[0].identity != found[1].identity


# The vocabulary, the text cache and the state that equal analyzers share.

TEXTS = st.lists(st.text("ab AB.", max_size=8), max_size=12)


def fresh_state(query_steps=None):
    def drop_a(token):
        return None if token == "a" else token

    return State(lambda texts: [text.split() for text in texts], (str.lower, drop_a), query_steps)


def spelled(state, tokens):
    return [[state.vocabulary.terms[i] for i in tokens.ids[a:b]] for a, b in pairwise(tokens.offsets)]


def expected(text):
    return [token.lower() for token in text.split() if token.lower() != "a"]


@given(TEXTS, TEXTS, st.integers(0, 400))
def test_cached_answers_equal_fresh_ones_however_small_the_cache(before, texts, capacity):
    state = fresh_state()
    state.docs.cache.capacity = capacity
    state.docs.tokens(before)
    for _ in range(2):
        found = state.docs.tokens(texts)
        assert spelled(state, found) == [expected(text) for text in texts]
        assert state.docs.cache.held <= capacity
        found.ids[:] = 99  # what a caller does to its answer does not change the next one


def test_texts_without_tokens_are_bounded_too():
    cache = TextCache(capacity=1000)
    for number in range(1000):
        cache.put(f"{number}", np.empty(0, np.int32))
    assert len(cache) < 100
    cache.put("." * 100_000, np.empty(0, np.int32))
    assert len(cache) == 0


def test_threads_get_one_vocabulary_without_duplicates():
    state = fresh_state(query_steps=(str.lower,))
    texts = [f"t{number} u{number % 97}" for number in range(3000)]
    assert in_threads(lambda n: (state.docs, state.queries)[n % 2].tokens(texts), 4) == []
    assert len(state.vocabulary.terms) == len(set(state.vocabulary.terms)) == 3097
    assert spelled(state, state.docs.tokens(texts)) == [text.split() for text in texts]


# Refusals.


def test_a_single_text_is_refused_because_its_characters_would_pass_for_texts():
    with pytest.raises(TypeError, match="list of texts"):
        fresh_state().docs.tokens("one text")


@pytest.mark.parametrize(
    ("spec", "error", "problem"),
    [
        ("lucen", UnknownName, "did you mean 'lucene'"),
        ("terrier(stopword=x)", UnknownName, "did you mean 'stopwords'"),
        ("lucene:x", WhyrankError, "takes no resource"),
        ("terrier", WhyrankError, r"terrier\(stopwords=FILE\) or set WHYRANK_TERRIER_STOPWORDS=FILE"),
        ("terrier(stopwords=5)", WhyrankError, "stopwords must be text, not 5"),
        ("chain(tokens=unicod)", UnknownName, "did you mean 'unicode'"),
        ("chain(stop=absent.txt)", BadInput, r"absent\.txt"),
        ("chain(lower=1)", WhyrankError, "lower must be True or False"),
        ("chain(stop=5)", WhyrankError, "stop must be text"),
        ("chain(max_length=-1)", WhyrankError, "max_length must be a whole number"),
        ("chain(max_repeat=2.5)", WhyrankError, "max_repeat must be a whole number"),
        ("wordpiece", WhyrankError, "wordpiece:PATH"),
        *((f"wordpiece:absent(max_tokens={bad})", WhyrankError, "max_tokens") for bad in ("0", "True", "2.5", "x")),
    ],
)
def test_refusals(spec, error, problem, monkeypatch):
    for name in ("TERRIER", "INDRI"):
        monkeypatch.delenv(f"WHYRANK_{name}_STOPWORDS", raising=False)
    with pytest.raises(error, match=problem):
        analyzers.create(spec)


@pytest.mark.parametrize("content", [None, b"", b"no json", b"[]", b"{}", b"\xff", b'{"model": 1}'])
def test_a_file_that_is_no_tokenizer_is_bad_input(tmp_path, content):
    if content is not None:
        (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(BadInput, match=r"tokenizer"):
        analyzers.create(f"wordpiece:{tmp_path}")


def test_missing_extras_are_named(files, monkeypatch):
    from whyrank.text.annotation import pipelines

    _tokenizer.cache_clear()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.setitem(sys.modules, "krovetzstemmer", None)
    pipelines.find_pipeline.cache_clear()
    monkeypatch.setattr(pipelines, "find_spec", lambda name: None)
    for spec, extra in (
        ("wordpiece:{tokenizer}", "models"),
        ("krovetz", "krovetz"),
        ("words", "nlp"),
        ("lemmas", "nlp"),
    ):
        with pytest.raises(MissingExtra, match=rf"whyrank\[{extra}\]"):
            analyzers.create(spec.format(**files))
    pipelines.find_pipeline.cache_clear()
