"""What the author of the toy plugin writes: every object it brings keeps its contract."""

from __future__ import annotations

from toy_plugin import Exclamation, Overlap, Short, digits, letters, toy

from whyrank.data import open_collection
from whyrank.testing import AnalyzerContract, AxiomContract, CharacteristicContract, RankerContract, StudyContract


class TestOverlap(RankerContract):
    def make(self):
        return Overlap(share=True)


class TestExclamation(StudyContract):
    def make(self):
        return Exclamation("?!")


class TestExclamationOnItsOwnCollection(StudyContract):
    def make(self):
        return Exclamation()

    def collection(self):
        return open_collection("toy")


class TestShort(AxiomContract):
    def make(self):
        return Short(length="50%")


class TestShortOnItsOwnCollection(AxiomContract):
    def make(self):
        return Short()

    def collection(self):
        return open_collection("toy")


class TestDigits(CharacteristicContract):
    def make(self):
        return digits

    def collection(self):
        return toy()


class TestLetters(AnalyzerContract):
    def make(self):
        return letters(longest=5)
