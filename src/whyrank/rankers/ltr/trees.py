"""Gradient-boosted trees in LightGBM's text form: read, check and evaluate them; LightGBM itself is not needed.

A model that is cut off or damaged is an error here; LightGBM ends the whole process over some of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core import EMPTY, KEY, BadInput, Codes, Floats, check_seal, file_digest, sealed_text

FACTS = "whyrank"
_REMEDY = "give a model that was saved by train_ltr, or by save_model of a LightGBM booster"
_INNER = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
_CATEGORICAL, _DEFAULT_LEFT, _MISSING_ZERO, _MISSING_NAN = 1, 2, 4, 8  # bits of a decision type
_ZERO = 1e-35  # what LightGBM takes for zero


class Malformed(Exception):
    """Something in a model that cannot be; the caller knows the file."""


class Tree(NamedTuple):
    """One tree: inner node `i` asks whether a feature is at most a threshold; child `-1 - j` is leaf `j`."""

    feature: Codes
    threshold: Floats
    decision: Codes
    left: Codes
    right: Codes
    values: Floats


@dataclass(frozen=True, eq=False)
class Trees:
    """A model, the sum of its trees: `names` are the features by column, `facts` what training noted."""

    names: tuple[str, ...]
    trees: tuple[Tree, ...]
    digest: str
    facts: Mapping[str, Any]

    def predict(self, matrix: Floats) -> Floats:
        """The sum of all trees for each row of features; the same to the bit as LightGBM's raw score."""
        found, rows = np.zeros(len(matrix)), np.ascontiguousarray(matrix, dtype=np.float64)
        for tree in self.trees:
            _add(rows, *tree, found)
        return found


def read_trees(path: str | PathLike[str]) -> Trees:
    """Read a model; all that evaluation relies on is checked."""
    try:
        check_seal(path, "train it again")
        text = Path(path).read_text(encoding="utf-8")
        header, trees = _split(text)
        names = tuple(header.get("feature_names", "").split())
        found = tuple(_tree(lines, len(names)) for lines in trees)
        return Trees(names, found, file_digest(path), _facts(header))
    except (OSError, UnicodeDecodeError, Malformed) as error:
        raise BadInput(path, f"is no model that can be used ({error})", _REMEDY) from None


def with_facts(model: str, facts: Mapping[str, Any]) -> str:
    """The text of a model with facts noted in its header, where LightGBM leaves them alone."""
    first, _, rest = model.partition("\n")
    noted = json.dumps(facts).replace("=", "\\u003d")  # LightGBM reads KEY=VALUE with one sign of equality only
    return sealed_text(f"{first}\n{FACTS}={noted}\n{KEY}={EMPTY}\n{rest}")


def _split(text: str) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The lines KEY=VALUE of the header and of each tree."""
    head, *blocks = text.partition("\nend of trees")[0].split("\nTree=")
    if not head.startswith("tree\n") or "\nend of trees" not in text:
        raise Malformed("it is not LightGBM's text form, or cut off")
    header = _lines(head)
    if header.get("num_class") != "1" or header.get("num_tree_per_iteration", "1") != "1":
        raise Malformed("it has more than one class")
    if "average_output" in header:
        raise Malformed("it is a random forest")
    if len(blocks) != len(header.get("tree_sizes", "").split()):
        raise Malformed("a tree is missing")
    return header, [_lines(block) for block in blocks]


def _lines(block: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in block.splitlines())
    return {key: value for key, _, value in pairs if key}


def _tree(lines: Mapping[str, str], n_features: int) -> Tree:
    if lines.get("num_cat", "0") != "0" or lines.get("is_linear", "0") != "0":
        raise Malformed("it has categorical features or linear leaves")
    leaves = _numbers(lines, "leaf_value", None)
    inner = [_numbers(lines, name, len(leaves) - 1) for name in _INNER]
    feature, threshold, decision, left, right = inner
    found = Tree(_whole(feature), threshold, _whole(decision), _whole(left), _whole(right), leaves)
    _check(found, n_features)
    return found


def _check(tree: Tree, n_features: int) -> None:
    """Every feature is one of the model's, and every way ends in a leaf: inner children come after their parent."""
    inner = np.arange(len(tree.feature))
    if ((tree.feature < 0) | (tree.feature >= n_features)).any():
        raise Malformed("it asks for a feature without a name")
    if (tree.decision & _CATEGORICAL).any():
        raise Malformed("it has categorical features or linear leaves")
    for child in (tree.left, tree.right):
        if ((child < -len(tree.values)) | (child >= len(inner)) | ((child >= 0) & (child <= inner))).any():
            raise Malformed("a branch leads nowhere")


def _numbers(lines: Mapping[str, str], name: str, expected: int | None) -> Floats:
    written = lines.get(name, "").split()
    try:
        found = np.array([float(number) for number in written], dtype=np.float64)
    except ValueError:
        raise Malformed(f"{name} is not numbers") from None
    if len(found) != (max(len(found), 1) if expected is None else expected):
        raise Malformed(f"{name} is incomplete")
    return found


def _whole(numbers: Floats) -> Codes:
    if not np.isfinite(numbers).all() or (np.abs(numbers) >= 1 << 31).any() or (numbers % 1).any():
        raise Malformed("a number should be whole")
    return numbers.astype(np.int32)


def _facts(header: Mapping[str, str]) -> dict[str, Any]:
    try:
        found = json.loads(header.get(FACTS, "{}"))
    except ValueError:
        raise Malformed(f"the line {FACTS} is damaged") from None
    return found if isinstance(found, dict) else {}


@njit(cache=True, nogil=True)
def _add(
    matrix: npt.NDArray[np.float64],
    feature: Codes,
    threshold: Floats,
    decision: Codes,
    left: Codes,
    right: Codes,
    values: Floats,
    found: Floats,
) -> None:
    """Add the values of one tree."""
    for i in range(len(matrix)):
        node = 0 if len(feature) else -1
        while node >= 0:
            x, kind = matrix[i, feature[node]], decision[node]
            if np.isnan(x) and not kind & _MISSING_NAN:
                x = 0.0
            missing = np.isnan(x) or (kind & _MISSING_ZERO != 0 and abs(x) <= _ZERO)
            down = kind & _DEFAULT_LEFT != 0 if missing else x <= threshold[node]
            node = left[node] if down else right[node]
        found[i] += values[-1 - node]
