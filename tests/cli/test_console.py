"""Figures on the terminal have the form that they have in a report."""

from __future__ import annotations

import pytest

from whyrank.cli import console
from whyrank.report import words


@pytest.mark.parametrize("value", [None, 0.0, 0.0004, 0.02, 1.0, float("nan")])
def test_p_values(value):
    assert console.p_value(value) == words.p_value(value)
    assert console.p_value(0.0004) == "<0.001"


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [(-0.00004, "+.3f", "+0.000"), (-0.00004, ".3f", "0.000"), (-1.5, "+.2f", "-1.50"), (None, ".3f", "–"),
     (0.25, ".1%", "25.0%"), (1234, ",", "1,234")],
)  # fmt: skip
def test_figures(value, form, shown):
    assert console.figure(value, form) == shown
    assert words.figure(value, form) == shown.replace("-", words.MINUS)


def test_intervals():
    assert console.interval(-0.5, 0.25) == "[-0.500, +0.250]"
    assert console.interval(None, None) == "–"


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns without colour."""
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "80"}.items():
        monkeypatch.setenv(name, value)


def test_names_of_studies_and_figures_stay_whole_in_80_columns(terminal, capsys):
    names = ["Cadillac, Jaguar, Mazda and 1 more", "Buick, Porsche, Jeep and 8 more"]
    rows = [
        [study, "the neural model", "-0.7143*", "2.34", *names] for study in ("bias/car-brand", "bias/first-name")
    ]
    console.table("", ["study", "ranker", "range", "deltas", "highest", "lowest"], rows, 2, "lowest: values")
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    for whole in (
        "bias/car-brand",
        "bias/first-name",
        "-0.7143*",
        "2.34",
        "Cadillac,",
        "left out for want of room: lowest",
    ):
        assert whole in shown
    assert "lowest: values" not in shown, "nothing is said of a column that is left out"


def test_sentences_are_broken_between_words_on_a_terminal_alone(terminal, capsys, monkeypatch):
    said = "Brands and names. [b]With[/b] only the car brand changed, mine favours Cadillac, Jaguar and Mazda over :car: Buick."
    console.write(said)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert " ".join(line.rstrip() for line in lines) == said
    monkeypatch.delenv("FORCE_COLOR")
    console.write(said)
    assert capsys.readouterr().out == f"{said}\n"
