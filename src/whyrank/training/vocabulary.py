"""A tokenizer from the texts of a collection: word pieces, the same ones for the same texts every time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from whyrank.core.checks import check_whole
from whyrank.core.errors import MissingExtra, WhyrankError

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]")
CHARACTERS = 1000  # different ones that have a piece of their own
LONGEST = 100  # characters of a word: the finished tokenizer reads longer ones as unknown
_INSIDE = "##"
_LONG = re.compile(rf"[^ \t\r\n]{{{LONGEST + 1},}}")


def word_pieces(texts: Sequence[str], size: int = 8000) -> bytes:
    """The tokenizer.json of at most about `size` lower-case word pieces, built from the most frequent pairs.

    Schuster and Nakajima, "Japanese and Korean voice search", ICASSP 2012; cut greedily, the longest piece first. The
    package numbers the pieces inside words in no fixed order, and so breaks ties in none; here they are numbered
    beforehand, which makes the result depend on the texts alone. Words of more than 100 characters are left out: no
    piece of them would ever be used, and one of millions of characters would take hours.
    """
    check_whole("tokenizer: size", size, 100)
    try:
        from tokenizers import Tokenizer, models, trainers
    except ImportError:
        raise MissingExtra("a tokenizer of one's own", "models") from None
    normalizer, splitter = _steps()
    used = [_LONG.sub(lambda found: _short(found[0], normalizer, splitter), _valid(text)) for text in texts]
    letters = _letters(map(normalizer.normalize_str, used))
    if not letters:
        raise WhyrankError("tokenizer: the collection has no texts to build word pieces from")
    learner = _put_together(Tokenizer(models.WordPiece(unk_token=SPECIAL[1])), normalizer, splitter)
    inside = [_INSIDE + letter for letter in letters]
    learner.train_from_iterator(used, trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=2, show_progress=False, special_tokens=[*SPECIAL, *inside],
        initial_alphabet=letters, limit_alphabet=len(letters),
    ))  # fmt: skip
    made = Tokenizer(models.WordPiece(learner.get_vocab(), unk_token=SPECIAL[1]))
    made.add_special_tokens(list(SPECIAL))
    return str(_put_together(made, normalizer, splitter).to_str()).encode()


def _steps() -> tuple[Any, Any]:
    from tokenizers import normalizers, pre_tokenizers

    return normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()


def _put_together(tokenizer: Any, normalizer: Any, splitter: Any) -> Any:
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    return tokenizer


def _short(run: str, normalizer: Any, splitter: Any) -> str:
    """The words of a run of characters as the tokenizer cuts it, without those that are too long."""
    words = splitter.pre_tokenize_str(normalizer.normalize_str(run))
    return " ".join(word for word, _ in words if len(word) <= LONGEST)


def _letters(texts: Iterable[str]) -> list[str]:
    """The most frequent characters, sorted."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    by_count = sorted((c for c in counts if not c.isspace()), key=lambda c: (-counts[c], c))
    return sorted(by_count[:CHARACTERS])


def _valid(text: str) -> str:
    """The text without half surrogate pairs, which the package refuses."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
