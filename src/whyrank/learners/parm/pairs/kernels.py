"""Kernels in Triton for the layers of a PaRM over many texts of a few tokens each; see `layers`.

A tile holds as many whole texts as fit. Attention multiplies all positions of a tile and keeps what lies within a
text: the few products in vain cost less than one launch for each text or head would.
"""

from __future__ import annotations

import triton
import triton.language as tl

# ruff: noqa: ANN001, ANN201, N803
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-incomplete-defs=False


@triton.jit
def attend(
    qkv, rows, out, tokens, length, scale, WIDTH: tl.constexpr, HEADS: tl.constexpr, SIZE: tl.constexpr,
    TILE: tl.constexpr, GATHERED: tl.constexpr,
):  # fmt: skip
    """Attention of all heads within each of the texts of a tile."""
    position = tl.arange(0, TILE)
    used = TILE // length * length
    token = tl.program_id(0) * used + position
    real = (position < used) & (token < tokens)
    row = token
    if GATHERED:
        row = tl.load(rows + token, mask=real, other=0)
    text = position // length
    same = text[:, None] == text[None, :]
    column = tl.arange(0, SIZE)
    source = qkv + row.to(tl.int64)[:, None] * (3 * WIDTH) + column[None, :]
    target = out + token.to(tl.int64)[:, None] * WIDTH + column[None, :]
    for head in range(HEADS):
        query = tl.load(source + head * SIZE, mask=real[:, None], other=0.0)
        key = tl.load(source + head * SIZE + WIDTH, mask=real[:, None], other=0.0)
        value = tl.load(source + head * SIZE + 2 * WIDTH, mask=real[:, None], other=0.0)
        shares = tl.where(same, tl.dot(query, tl.trans(key)) * scale, -1e30)
        shares = tl.exp(shares - tl.max(shares, 1)[:, None])
        shares = shares / tl.sum(shares, 1)[:, None]
        mixed = tl.dot(shares.to(value.dtype), value)
        tl.store(target + head * SIZE, mixed.to(value.dtype), mask=real[:, None])


@triton.jit
def attend_first(
    query, keys, out, texts, length, scale, WIDTH: tl.constexpr, HEADS: tl.constexpr, SIZE: tl.constexpr,
    TILE: tl.constexpr, FIRSTS: tl.constexpr,
):  # fmt: skip
    """Attention of the first position of each text; `FIRSTS` is a power of two, at least the texts of a tile."""
    several = TILE // length
    position, first = tl.arange(0, TILE), tl.arange(0, FIRSTS)
    start = tl.program_id(0) * several
    real = (position < several * length) & (start + position // length < texts)
    asks = (first < several) & (start + first < texts)
    same = (position // length)[None, :] == first[:, None]
    column = tl.arange(0, SIZE)
    source = keys + (start * length + position).to(tl.int64)[:, None] * (2 * WIDTH) + column[None, :]
    at = (start + first).to(tl.int64)[:, None] * WIDTH + column[None, :]
    for head in range(HEADS):
        asking = tl.load(query + at + head * SIZE, mask=asks[:, None], other=0.0)
        key = tl.load(source + head * SIZE, mask=real[:, None], other=0.0)
        value = tl.load(source + head * SIZE + WIDTH, mask=real[:, None], other=0.0)
        shares = tl.where(same, tl.dot(asking, tl.trans(key)) * scale, -1e30)
        shares = tl.exp(shares - tl.max(shares, 1)[:, None])
        shares = shares / tl.sum(shares, 1)[:, None]
        mixed = tl.dot(shares.to(value.dtype), value)
        tl.store(out + at + head * SIZE, mixed.to(value.dtype), mask=asks[:, None])


@triton.jit
def add_norm(
    states, residual, rows, weight, bias, out, tokens, eps, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
    TILE: tl.constexpr, GATHERED: tl.constexpr,
):  # fmt: skip
    """Layer normalisation of a sum."""
    token = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column = tl.arange(0, BLOCK)
    real = (token < tokens)[:, None] & (column < WIDTH)[None, :]
    row = token
    if GATHERED:
        row = tl.load(rows + token, mask=token < tokens, other=0)
    at = token.to(tl.int64)[:, None] * WIDTH + column[None, :]
    x = tl.load(states + at, mask=real, other=0.0).to(tl.float32)
    x += tl.load(residual + row.to(tl.int64)[:, None] * WIDTH + column[None, :], mask=real, other=0.0).to(tl.float32)
    mean = tl.sum(x, 1) / WIDTH
    x = tl.where(real, x - mean[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(x * x, 1) / WIDTH + eps)
    w = tl.load(weight + column, mask=column < WIDTH, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=column < WIDTH, other=0.0).to(tl.float32)
    tl.store(out + at, (x * scale[:, None] * w[None, :] + b[None, :]).to(out.dtype.element_ty), mask=real)
