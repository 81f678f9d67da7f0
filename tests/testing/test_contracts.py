"""The contracts hold for all that whyrank brings."""

from __future__ import annotations

import pytest

from whyrank.rankers import Setting, open_ranker
from whyrank.studies.probes import probes
from whyrank.studies.probes.characteristics import characteristics
from whyrank.testing import AnalyzerContract, CharacteristicContract, RankerContract, StudyContract
from whyrank.testing.examples import sample
from whyrank.text import analyzers

RANKERS = ["bm25", "bm25(k1=1.2,b=0.75,variant=robertson)", "ql(smoothing=jm)", "bm25(analyzer=whitespace)"]
CHARACTERISTICS = ["relevance", "length", "tf", "sum-tf", "overlap"]
STUDIES = ["matched/relevance|length", "matched/tf|overlap", "matched/length|relevance(tolerance=10%,margin=5.0)"]
ANALYZERS = ["lucene", "whitespace", "chain", "chain(tokens=plain,stop=lucene,stem=porter,keep_query_stops=True)"]
ANALYZERS += ["chain(tokens=ascii,lower=False,possessive=True,max_length=5,max_digits=2,max_repeat=3)"]


class Case:
    """A contract whose object depends on the parameter `spec`."""

    spec: str

    @pytest.fixture(autouse=True)
    def _spec(self, request):
        self.spec = request.param


@pytest.mark.parametrize("_spec", RANKERS, indirect=True)
class TestRankers(Case, RankerContract):
    tolerance = 0.0

    def make(self):
        return open_ranker(self.spec, Setting(sample()))


class TestPythonRanker(RankerContract):
    def make(self):
        return open_ranker(f"python:{__file__}:lengths")


def lengths(queries, docs):
    return [float(len(doc) - len(query)) for query, doc in zip(queries, docs, strict=True)]


@pytest.mark.parametrize("_spec", STUDIES, indirect=True)
class TestMatchedStudies(Case, StudyContract):
    def make(self):
        return probes.create(self.spec)


@pytest.mark.parametrize("_spec", ANALYZERS, indirect=True)
class TestAnalyzers(Case, AnalyzerContract):
    def make(self):
        return analyzers.create(self.spec)


class TestKrovetz(AnalyzerContract):
    def make(self):
        pytest.importorskip("krovetzstemmer")
        return analyzers.create("krovetz")


@pytest.mark.parametrize("_spec", CHARACTERISTICS, indirect=True)
class TestCharacteristics(Case, CharacteristicContract):
    def make(self):
        return characteristics.factory(self.spec)
