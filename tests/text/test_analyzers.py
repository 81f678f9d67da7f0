"""What holds for every analyzer: batches, caches, ids, pickles, and analyzers of one's own."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import re
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whyrank.core import UnknownName, WhyrankError
from whyrank.text import Analyzer, analyzers
from whyrank.text.steps import limits, lower, porter

SPECS = [
    "lucene",
    "krovetz",
    "terrier(stopwords={})",
    "indri(stopwords={})",
    "whitespace",
    "chain(stop={},stem=porter)",
]
TEXTS = st.lists(st.text("thEéa 's.1\n中", max_size=15) | st.text(max_size=20), max_size=6)
every_spec = pytest.mark.parametrize("spec", SPECS)
relaxed = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture
def stop_list(tmp_path):
    path = tmp_path / "stop words.txt"
    path.write_text("the\na\nof\n", encoding="utf-8")
    return path


@pytest.fixture
def make(stop_list):
    return lambda spec: analyzers.create(spec.format(repr(str(stop_list))))


def split(analyzer, tokens):
    pairs = pairwise(tokens.offsets)
    return [[analyzer.vocabulary.terms[i] for i in tokens.ids[a:b]] for a, b in pairs]


@every_spec
@relaxed
@given(texts=TEXTS)
def test_a_batch_is_its_texts_one_by_one(make, spec, texts):
    analyzer = make(spec)
    assert split(analyzer, analyzer.docs(texts)) == [analyzer.terms(text) for text in texts]
    assert split(analyzer, analyzer.queries(texts)) == [analyzer.query_terms(text) for text in texts]


@every_spec
@relaxed
@given(texts=TEXTS, at=st.integers(0, 6), order=st.randoms(use_true_random=False))
def test_order_and_batches_do_not_matter(make, spec, texts, at, order):
    analyzer = make(spec)
    whole = split(analyzer, analyzer.docs(texts))
    assert split(analyzer, analyzer.docs(texts[:at])) + split(analyzer, analyzer.docs(texts[at:])) == whole
    shuffled = order.sample(range(len(texts)), len(texts))
    assert split(analyzer, analyzer.docs([texts[i] for i in shuffled])) == [whole[i] for i in shuffled]


@every_spec
def test_ids_parse_back_and_pickles_arrive_equal(make, spec):
    analyzer = make(spec)
    for other in (analyzers.create(analyzer.id), pickle.loads(pickle.dumps(analyzer)), copy.deepcopy(analyzer)):
        assert other == analyzer
        assert hash(other) == hash(analyzer)
        assert other.vocabulary is analyzer.vocabulary
    assert analyzer.identity.startswith(analyzer.id)


@every_spec
def test_nothing_in_gives_nothing_out(make, spec):
    ids, offsets = make(spec).docs([])
    assert (ids.tolist(), offsets.tolist()) == ([], [0])
    assert make(spec).terms("") == []


def test_a_pickle_is_understood_by_a_fresh_process(make):
    analyzer = make("terrier(stopwords={})")
    code = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1])).terms('The houses of Rome'))"
    done = subprocess.run(
        [sys.executable, "-c", code, pickle.dumps(analyzer).hex()], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['hous', 'rome']"


@pytest.mark.parametrize("spec", [spec for spec in SPECS if "{}" in spec])
def test_a_stop_list_that_changed_makes_another_analyzer(make, stop_list, spec):
    before = make(spec)
    parcel = pickle.dumps(before)
    assert before.terms("the houses") == before.terms("houses")
    stop_list.write_text("houses\n", encoding="utf-8")
    after = make(spec)
    assert after != before
    assert (after.id, after.identity != before.identity) == (before.id, True)
    assert after.terms("the houses") == ["the"]
    assert before.terms("the houses") == before.terms("houses")
    with pytest.raises(WhyrankError, match="has changed meanwhile"):
        pickle.loads(parcel)


def test_unknown_names_and_arguments_suggest_the_known():
    with pytest.raises(UnknownName, match="did you mean 'lucene'"):
        analyzers.create("lucen")
    with pytest.raises(UnknownName, match="did you mean 'stopwords'"):
        analyzers.create("terrier(stopword=x)")
    with pytest.raises(WhyrankError, match="takes no resource"):
        analyzers.create("lucene:x")


def test_an_analyzer_without_parts_says_so():
    with pytest.raises(WhyrankError, match=r"analyzers\.create"):
        Analyzer("made up", "made up").docs(["x"])


@pytest.fixture
def letters():
    @analyzers.register("letters")
    def letters(longest: int = 30) -> Analyzer:
        words = re.compile("[a-z]+", re.IGNORECASE).findall
        steps = [lower, limits(max_length=longest), porter]
        return Analyzer.of(f"letters(longest={longest})", words, steps)

    yield letters
    analyzers.forget("letters")


def test_one_of_your_own(letters):
    made = analyzers.create("letters(longest=6)")
    assert made.terms("The cats sat; 12 elephants") == ["the", "cat", "sat"]
    assert analyzers.create(made.id) == made == pickle.loads(pickle.dumps(made))
    assert analyzers.create("letters").terms("elephants") == ["eleph"]


def load(path):
    spec = importlib.util.spec_from_file_location("own_analyzers", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["own_analyzers"] = module
    spec.loader.exec_module(module)


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
        load(path)
        found.append(analyzers.create("own"))
        analyzers.forget("own")
    del sys.modules["own_analyzers"]
    assert [analyzer.terms("Ab c") for analyzer in found] == [["AB", "C"], ["ab", "c"]]
    assert found[0].identity != found[1].identity
