"""Pieces of a model's tokenizer as terms, on a small tokenizer made here."""

from __future__ import annotations

import json
import pickle
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from whyrank.core import BadInput, MissingExtra, WhyrankError
from whyrank.text import analyzers
from whyrank.text.presets import _tokenizer

PIECES = ["[UNK]", "[CLS]", "[SEP]", "play", "##ing", "##ed", "the", ".", "a", "##a", "é"]


def small_tokenizer(pieces=PIECES):
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    made.enable_truncation(3)
    made.enable_padding(length=8, pad_token="[PAD]")
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a model (small)")
    small_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def greedy_pieces(word):
    """WordPiece by hand: the longest piece first, or the whole word unknown."""
    pieces, at = [], 0
    while at < len(word):
        ends = (end for end in range(len(word), at, -1) if ("##" if at else "") + word[at:end] in PIECES)
        end = next(ends, None)
        if end is None:
            return ["[UNK]"]
        pieces.append(("##" if at else "") + word[at:end])
        at = end
    return pieces


@settings(deadline=None)
@given(st.lists(st.sampled_from(["Playing", "played", "the", ".", "aaa", "é", "zebra", "thea"])))
def test_pieces_without_special_tokens_truncation_or_padding(folder, words):
    analyzer = analyzers.create(f"wordpiece:{folder}")
    expected = [piece for word in words for piece in greedy_pieces(word.lower())]
    assert analyzer.terms(" ".join(words)) == analyzer.query_terms(" ".join(words)) == expected


@settings(deadline=None)
@given(st.lists(st.text("the playing.é\ud800", max_size=20), max_size=5))
def test_a_batch_is_its_texts_one_by_one(folder, texts):
    analyzer = analyzers.create(f"wordpiece:{folder}")
    ids, offsets = analyzer.docs(texts)
    pairs = pairwise(offsets)
    assert [[analyzer.vocabulary.terms[i] for i in ids[a:b]] for a, b in pairs] == [analyzer.terms(t) for t in texts]


def test_file_and_folder_and_limit(folder):
    by_file = analyzers.create(f"wordpiece:{folder}/tokenizer.json")
    limited = analyzers.create(f"wordpiece:{folder}(max_tokens=2)")
    assert by_file.terms("the playing the") == ["the", "play", "##ing", "the"]
    assert limited.terms("the playing the") == ["the", "play"]
    assert limited.id == f"wordpiece:{folder}(max_tokens=2)"
    for analyzer in (by_file, limited, analyzers.create(f"wordpiece:{folder}()")):
        assert analyzers.create(analyzer.id) == analyzer == pickle.loads(pickle.dumps(analyzer))


def test_a_tokenizer_that_changed_makes_another_analyzer(tmp_path):
    path = tmp_path / "tokenizer.json"
    small_tokenizer().save(str(path))
    before = analyzers.create(f"wordpiece:{path}")
    parcel = pickle.dumps(before)
    small_tokenizer([*PIECES, "zebra"]).save(str(path))
    after = analyzers.create(f"wordpiece:{path}")
    assert (before.id, before.identity) != (after.id, after.identity)
    assert (before.terms("zebra"), after.terms("zebra")) == (["[UNK]"], ["zebra"])
    with pytest.raises(WhyrankError, match="has changed meanwhile"):
        pickle.loads(parcel)


@pytest.mark.parametrize("content", [b"", b"no json", b"[]", b"{}", b"\xff", json.dumps({"model": 1}).encode()])
def test_a_file_that_is_no_tokenizer_is_bad_input(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"tokenizer\.json: this is no tokenizer that can be loaded"):
        analyzers.create(f"wordpiece:{path}")


def test_missing_things_are_clear_errors(tmp_path, folder, monkeypatch):
    with pytest.raises(BadInput, match=r"tokenizer\.json: cannot read this tokenizer \(No such file"):
        analyzers.create(f"wordpiece:{tmp_path}")
    with pytest.raises(BadInput, match="absent: cannot read"):
        analyzers.create(f"wordpiece:{tmp_path}/absent")
    with pytest.raises(WhyrankError, match="write wordpiece:PATH"):
        analyzers.create("wordpiece")
    for bad in ("0", "True", "2.5", "x"):
        with pytest.raises(WhyrankError, match="must be a number from 1 up"):
            analyzers.create(f"wordpiece:{folder}(max_tokens={bad})")
    _tokenizer.cache_clear()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtra, match=r"whyrank\[models\]"):
        analyzers.create(f"wordpiece:{folder}")
