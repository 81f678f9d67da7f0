"""The contract of studies for axioms by call string."""

from __future__ import annotations

from whyrank.studies.axioms import axioms
from whyrank.testing import StudyContract


class FromRegistry(StudyContract):
    """Made through the registry, on the bundled sample."""

    spec: str

    def registry(self):
        return axioms

    def make(self):
        return axioms.create(self.spec)
