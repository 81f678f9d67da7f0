"""Contract test cases for authors of plugins: inherit one, say how your object is made, and run pytest.

    from whyrank.testing import RankerContract

    class TestMyRanker(RankerContract):
        def make(self):
            return MyRanker(depth=3)

Every object that whyrank brings passes the same contracts.
"""

from whyrank.testing.analyzers import AnalyzerContract
from whyrank.testing.axioms import AxiomContract
from whyrank.testing.rankers import RankerContract
from whyrank.testing.studies import CharacteristicContract, StudyContract

__all__ = ["AnalyzerContract", "AxiomContract", "CharacteristicContract", "RankerContract", "StudyContract"]
