"""Tiny models for the tests of neural rankers, made once and only where they are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest


class Models:
    """Folders of tiny models by the name of the function that makes them."""

    def __init__(self, root: Path) -> None:
        self.root, self.made = root, {}

    def folder(self, kind: str, *arguments: object, **more: object) -> Path:
        import tiny_models

        key = (kind, arguments, tuple(sorted(more.items())))
        if key not in self.made:
            self.made[key] = getattr(tiny_models, kind)(self.root / str(len(self.made)), *arguments, **more)
        return self.made[key]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """Tiny models with random weights; torch computes with one thread."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("sentence_transformers")
    torch.set_num_threads(1)
    return Models(tmp_path_factory.mktemp("models"))
