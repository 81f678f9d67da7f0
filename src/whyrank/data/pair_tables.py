"""Pair sets that come as tables: the Microsoft Research Paraphrase Corpus and the Wikipedia Neutrality Corpus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from whyrank.core.errors import BadInput
from whyrank.data.lines import find_file
from whyrank.data.pair_files import tsv_cells, tsv_records
from whyrank.data.pair_parts import Part, laid_out, located, parts
from whyrank.data.pair_rows import TextPair
from whyrank.data.pairs import PairSet

_MSRP_HEADERS = (
    ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"],
    ["label", "id1", "id2", "sentence1", "sentence2"],
)
_WNC_PLACES = ("biased.full", "WNC/biased.full", "bias_data/WNC/biased.full")
_WNC_COLUMNS = 5  # id, source and target in tokens, source and target as they were; tags may follow


def msrp(resource: str, split: str | None = None) -> PairSet:
    """Paraphrases (roles a, b) of the MSR Paraphrase Corpus (Dolan and Brockett 2005): train and test, label 1.

    Args:
        resource: a folder with `msr_paraphrase_train.txt` and `msr_paraphrase_test.txt`, or with `train.tsv`
            and `test.tsv` (label, id1, id2, sentence1, sentence2); or one such file.
        split: `train` or `test`, instead of both.
    """
    path = located(resource)
    files = parts(path, ("train", "test"), split, "msr_paraphrase_{}.txt", "{}.tsv")
    return laid_out("msrp", path, (pair for part in files for pair in _paraphrases(part.file)))


def wnc(resource: str, split: str | None = None) -> PairSet:
    """Sentences before and after an edit for neutrality (roles biased, neutral; Pryzant et al. 2020).

    Args:
        resource: `biased.full` or a folder that has it (the raw columns are read), or a folder with `train.tsv`
            and `test.tsv` under the header biased, neutral, or one such file.
        split: `train` or `test` of the second form, instead of both.
    """
    path = located(resource)
    full = find_file(path, *_WNC_PLACES) if path.is_dir() and split is None else None
    files = [Part("full", full)] if full else parts(path, ("train", "test"), split, "{}.tsv")
    return laid_out("wnc", path, (pair for part in files for pair in _edits(part)))


def _paraphrases(file: Path) -> Iterator[TextPair]:
    for number, (cells, line) in enumerate(tsv_cells(file)):
        if number == 0 and cells not in _MSRP_HEADERS:
            expected = ", ".join(_MSRP_HEADERS[0])
            raise BadInput(file, "this is not the header of MSRP", f"the columns are {expected}", line)
        if len(cells) != len(_MSRP_HEADERS[0]) or (number and cells[0] not in ("0", "1")):
            raise BadInput(file, "expected 0 or 1, two ids and two sentences", "separate them by tabs", line)
        if cells[0] == "1":
            yield TextPair(f"{cells[1]}-{cells[2]}", {"a": cells[3], "b": cells[4]})


def _edits(part: Part) -> Iterator[TextPair]:
    first, _ = next(tsv_cells(part.file), ([], 0))
    if not {"biased", "neutral"} <= set(first):
        yield from _full_edits(part.file)
        return
    for number, record in enumerate(tsv_records(part.file)):
        yield TextPair(f"{part.split}-{number}", {role: record.text(role) for role in ("biased", "neutral")})


def _full_edits(file: Path) -> Iterator[TextPair]:
    for cells, line in tsv_cells(file):
        if len(cells) < _WNC_COLUMNS:
            what = f"expected {_WNC_COLUMNS} columns or more, found {len(cells)}"
            raise BadInput(file, what, "the columns are id, src_tok, tgt_tok, src_raw, tgt_raw, ...", line)
        yield TextPair(cells[0], {"biased": cells[3], "neutral": cells[4]})
