"""How many tokens a transformer can read at once, seen on the model itself."""

from __future__ import annotations

from typing import Any


def positions_of(model: Any) -> int | None:
    """Tokens that a model of torch has a vector of their position for; None where it needs none.

    What counts is the table, not what the configuration declares: models with relative or rotary positions declare a
    length and read more. Of several tables (an image's is one) the longest counts.
    """
    tables = [part for name, part in model.named_modules() if _is_table(name.rpartition(".")[2], part)]
    return max((_room(table) for table in tables), default=None)


def _is_table(name: str, part: Any) -> bool:
    return hasattr(part, "num_embeddings") and (name == "wpe" or ("position" in name and "relative" not in name))


def _room(table: Any) -> int:
    """The rows for tokens: RoBERTa and its kin begin after the row of padding, BART and its kin at an offset."""
    padding = getattr(table, "padding_idx", None)
    return int(table.num_embeddings) - int(getattr(table, "offset", 0 if padding is None else padding + 1))
