"""Kernels in Triton for the layers of a PaRM over many texts of a few pieces each; see `term_pairs_operations`.

A tile holds as many whole texts as fit. Attention multiplies all positions of a tile and keeps what lies within a
text: the few products in vain cost less than one launch for each text or head would.
"""

from __future__ import annotations

import triton
import triton.language as tl

# ruff: noqa: ANN001, ANN201, ANN202, N803
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-incomplete-defs=False


@triton.jit
def attend(
    qkv, rows, out, tokens, length, scale, WIDTH: tl.constexpr, HEADS: tl.constexpr, SIZE: tl.constexpr,
    TILE: tl.constexpr, GATHERED: tl.constexpr,
):  # fmt: skip
    """Attention of all heads within each of the texts of a tile."""
    place = tl.arange(0, TILE)
    used = TILE // length * length
    token = tl.program_id(0) * used + place
    real = (place < used) & (token < tokens)
    row = token
    if GATHERED:
        row = tl.load(rows + token, mask=real, other=0)
    text = place // length
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
    """The same for the first position of each text; `FIRSTS` is a power of two, no less than the texts of a tile."""
    several = TILE // length
    place, first = tl.arange(0, TILE), tl.arange(0, FIRSTS)
    start = tl.program_id(0) * several
    real = (place < several * length) & (start + place // length < texts)
    asks = (first < several) & (start + first < texts)
    same = (place // length)[None, :] == first[:, None]
    column = tl.arange(0, SIZE)
    source = keys + (start * length + place).to(tl.int64)[:, None] * (2 * WIDTH) + column[None, :]
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


@triton.jit
def _gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def up_gelu(
    states, weight, bias, out, tokens, WIDTH: tl.constexpr, INNER: tl.constexpr, TILE: tl.constexpr,
    COLUMNS: tl.constexpr, STEP: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """GELU of a product: the weights [INNER, WIDTH] of a linear layer, its bias, and the activation."""
    across: tl.constexpr = INNER // COLUMNS
    number = tl.program_id(0)
    down = tl.cdiv(tokens, TILE)
    band = number // (GROUP * across)
    high = tl.minimum(down - band * GROUP, GROUP)
    inside = number % (GROUP * across)
    token = (band * GROUP + inside % high) * TILE + tl.arange(0, TILE)
    column = (inside // high) * COLUMNS + tl.arange(0, COLUMNS)
    step = tl.arange(0, STEP)
    real = (token < tokens)[:, None]
    left = states + token.to(tl.int64)[:, None] * WIDTH + step[None, :]
    right = weight + column[None, :] * WIDTH + step[:, None]
    total = tl.zeros((TILE, COLUMNS), tl.float32)
    for at in range(0, WIDTH, STEP):
        total = tl.dot(tl.load(left + at, mask=real, other=0.0), tl.load(right + at), total)
    total = _gelu(total + tl.load(bias + column).to(tl.float32)[None, :])
    target = out + token.to(tl.int64)[:, None] * INNER + column[None, :]
    tl.store(target, total.to(out.dtype.element_ty), mask=real)


@triton.jit
def _three(
    a, b, c, residual, linear_bias, weight, bias, out, token, real, eps, WIDTH: tl.constexpr, PART: tl.constexpr
):
    """Normalise rows that lie in three parts of equal width, with bias and residual added, and write them."""
    column = tl.arange(0, PART)
    at = token.to(tl.int64)[:, None] * WIDTH + column[None, :]
    a += tl.load(residual + at, mask=real, other=0.0).to(tl.float32) + tl.load(linear_bias + column)[None, :]
    b += tl.load(residual + at + PART, mask=real, other=0.0).to(tl.float32)
    b += tl.load(linear_bias + PART + column)[None, :]
    c += tl.load(residual + at + 2 * PART, mask=real, other=0.0).to(tl.float32)
    c += tl.load(linear_bias + 2 * PART + column)[None, :]
    mean = ((tl.sum(a, 1) + tl.sum(b, 1) + tl.sum(c, 1)) / WIDTH)[:, None]
    a, b, c = a - mean, b - mean, c - mean
    scale = tl.rsqrt((tl.sum(a * a, 1) + tl.sum(b * b, 1) + tl.sum(c * c, 1)) / WIDTH + eps)[:, None]
    _write(a * scale, weight, bias, out + at, real, column)
    _write(b * scale, weight + PART, bias + PART, out + at + PART, real, column)
    _write(c * scale, weight + 2 * PART, bias + 2 * PART, out + at + 2 * PART, real, column)


@triton.jit
def _write(x, weight, bias, target, real, column):
    x = x * tl.load(weight + column).to(tl.float32)[None, :] + tl.load(bias + column).to(tl.float32)[None, :]
    tl.store(target, x.to(target.dtype.element_ty), mask=real)


@triton.jit
def feed(
    states, up, up_bias, down, down_bias, weight, bias, out, tokens, eps, WIDTH: tl.constexpr, INNER: tl.constexpr,
    PART: tl.constexpr, TILE: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """The second half of a layer: norm(x + down(gelu(up(x)))), `STEP` of the inner columns at a time."""
    token = tl.program_id(0) * TILE + tl.arange(0, TILE)
    real = (token < tokens)[:, None]
    column, step = tl.arange(0, PART), tl.arange(0, STEP)
    at = states + token.to(tl.int64)[:, None] * WIDTH + column[None, :]
    x = tl.load(at, mask=real, other=0.0)
    y = tl.load(at + PART, mask=real, other=0.0)
    z = tl.load(at + 2 * PART, mask=real, other=0.0)
    a = tl.zeros((TILE, PART), tl.float32)
    b = tl.zeros((TILE, PART), tl.float32)
    c = tl.zeros((TILE, PART), tl.float32)
    for start in range(0, INNER, STEP):
        left = up + (start + step)[None, :] * WIDTH + column[:, None]
        inner = tl.dot(x, tl.load(left))
        inner = tl.dot(y, tl.load(left + PART), inner)
        inner = tl.dot(z, tl.load(left + 2 * PART), inner)
        inner = _gelu(inner + tl.load(up_bias + start + step).to(tl.float32)[None, :]).to(x.dtype)
        right = down + column[None, :] * INNER + (start + step)[:, None]
        a = tl.dot(inner, tl.load(right), a)
        b = tl.dot(inner, tl.load(right + PART * INNER), b)
        c = tl.dot(inner, tl.load(right + 2 * PART * INNER), c)
    _three(a, b, c, states, down_bias, weight, bias, out, token, real, eps, WIDTH, PART)


@triton.jit
def project_norm(
    mixed, linear, linear_bias, residual, weight, bias, out, tokens, eps, INNER: tl.constexpr, WIDTH: tl.constexpr,
    PART: tl.constexpr, TILE: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """norm(residual + linear(mixed)), the weights of the linear layer being [WIDTH, INNER]."""
    token = tl.program_id(0) * TILE + tl.arange(0, TILE)
    real = (token < tokens)[:, None]
    column, step = tl.arange(0, PART), tl.arange(0, STEP)
    left = mixed + token.to(tl.int64)[:, None] * INNER + step[None, :]
    right = linear + column[None, :] * INNER + step[:, None]
    a = tl.zeros((TILE, PART), tl.float32)
    b = tl.zeros((TILE, PART), tl.float32)
    c = tl.zeros((TILE, PART), tl.float32)
    for at in range(0, INNER, STEP):
        x = tl.load(left + at, mask=real, other=0.0)
        a = tl.dot(x, tl.load(right + at), a)
        b = tl.dot(x, tl.load(right + at + PART * INNER), b)
        c = tl.dot(x, tl.load(right + at + 2 * PART * INNER), c)
    _three(a, b, c, residual, linear_bias, weight, bias, out, token, real, eps, WIDTH, PART)
