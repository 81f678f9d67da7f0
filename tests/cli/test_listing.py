"""`whyrank list NAME`: the parameters of every registered thing."""

from __future__ import annotations

import json

import pytest

from whyrank.cli.listing import registries

DOCUMENTED = ("probes", "axioms", "bias_studies", "rankers", "networks", "table_learners", "analyzers")


@pytest.mark.parametrize("kind", registries())
def test_every_name_can_be_listed(whyrank, kind):
    registry = registries()[kind]
    code, out, err = whyrank("list", *registry.names(), "--json")
    assert code == 0, err
    shown = {title: each for title, each in json.loads(out).items() if title.startswith(f"{registry.one} ")}
    assert set(shown) == {f"{registry.one} {name}" for name in registry.names()}
    assert all(each["line"] for each in shown.values())
    bare = {f"{title}: {name}" for title, each in shown.items() for name, p in each["parameters"].items()
            if not p["help"]}  # fmt: skip
    assert not bare or kind not in DOCUMENTED


def test_defaults_and_help_are_those_of_the_class(whyrank):
    shown = json.loads(whyrank("list", "http", "edited/typos", "bm25", "--json")[1])
    assert shown["ranker http"]["parameters"]["options"]["default"] == "{}"
    assert shown["ranker bm25"]["parameters"]["k1"]["help"].startswith("how slowly")
    assert shown["probe edited/typos"]["parameters"]["rate"]["default"] == "0.15"


def test_values_in_help_are_written_as_they_are_given(whyrank):
    code, out, _ = whyrank("audit", "--help")
    assert code == 0
    assert "serial, processes, ray" in out
    assert "Serial" not in out
