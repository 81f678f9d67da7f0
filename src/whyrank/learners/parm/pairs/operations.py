"""The steps of a layer by kernels of our own (`term_pairs_kernels`), where shapes allow; by torch elsewhere."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from whyrank.learners.parm.pairs.layers import Operations
from whyrank.learners.parm.pairs.weights import Layer, Linear, Norm, Weights

_WIDEST = 128  # a third of a row that is normalised in registers; more of them would not hold it


class Tiles(NamedTuple):
    """Sizes of tiles and numbers of warps and stages, for each kernel."""

    attend: tuple[int, int, int] = (64, 4, 3)  # positions, warps, stages
    norm: tuple[int, int] = (8, 4)  # positions, warps
    up: tuple[int, int, int, int, int] = (128, 128, 64, 8, 3)  # positions, columns, step, warps, stages
    feed: tuple[int, int, int, int] = (64, 32, 8, 3)  # positions, step, warps, stages
    project: tuple[int, int, int, int] = (64, 64, 8, 3)


class KernelOperations(Operations):
    """`triton`: attention, and sums with norms; `gelu`: also the activation in the product before it.

    `joined` has also sum and norm in the product before them, `fused` the whole second half of a layer in one kernel.
    `lt` is `triton` with the activation in the library's product, which has GELU in its tanh form only.
    """

    def __init__(self, weights: Weights, way: str, tiles: Tiles | None = None) -> None:
        from whyrank.learners.parm.pairs import kernels as term_pairs_kernels

        super().__init__(weights)
        self.way, self.tiles, self.kernels = way, tiles or Tiles(), term_pairs_kernels
        self.inner = int(weights.layers[0].up.weight.shape[0])
        self.part = weights.width // 3
        self.attends = self.size >= 16 and self.size & (self.size - 1) == 0
        power = self.part & (self.part - 1) == 0 and weights.width % 3 == 0 and 16 <= self.part <= _WIDEST
        step = self.tiles.project[1]
        self.fuses = way in ("joined", "fused") and power and weights.width % step == 0 == self.inner % step
        self.feeds = way == "fused" and power and weights.erf and self.inner % self.tiles.feed[1] == 0

    def attend(self, qkv: Tensor, length: int) -> Tensor:
        """Attention within texts of `length` pieces that lie end to end."""
        return self._attended(qkv, None, len(qkv), length) if self.attends else super().attend(qkv, length)

    def attend_rows(self, table: Tensor, rows: Tensor) -> Tensor:
        """The same from rows of a table, which stays in the GPU's cache."""
        if not self.attends:
            return super().attend_rows(table, rows)
        return self._attended(table, rows.reshape(-1), rows.numel(), rows.shape[1])

    def _attended(self, qkv: Tensor, rows: Tensor | None, tokens: int, length: int) -> Tensor:
        tile, warps, stages = self.tiles.attend
        tile = max(tile, _power(length))
        out = qkv.new_empty(tokens, self.weights.width)
        self.kernels.attend[(_parts(tokens, tile // length * length),)](
            qkv, qkv if rows is None else rows, out, tokens, length, self.size**-0.5, WIDTH=self.weights.width,
            HEADS=self.weights.heads, SIZE=self.size, TILE=tile, GATHERED=rows is not None,
            num_warps=warps, num_stages=stages,
        )  # fmt: skip
        return out

    def attend_first(self, query: Tensor, keys: Tensor, length: int) -> Tensor:
        """Attention of the first position of each text."""
        if not self.attends:
            return super().attend_first(query, keys, length)
        tile, warps, stages = self.tiles.attend
        tile = max(tile, _power(length))
        out = torch.empty_like(query)
        self.kernels.attend_first[(_parts(len(query), tile // length),)](
            query, keys, out, len(query), length, self.size**-0.5, WIDTH=self.weights.width, HEADS=self.weights.heads,
            SIZE=self.size, TILE=tile, FIRSTS=max(16, _power(tile // length)), num_warps=warps,
            num_stages=stages,
        )  # fmt: skip
        return out

    def project(self, mixed: Tensor, linear: Linear, residual: Tensor, norm: Norm) -> Tensor:
        """Norm(residual + linear(mixed)): in one kernel, or as a product and one for the rest."""
        if not self.fuses:
            return self._normed(functional.linear(mixed, *linear), residual, None, norm)
        tile, step, warps, stages = self.tiles.project
        out = torch.empty_like(residual)
        self.kernels.project_norm[(_parts(len(out), tile),)](
            mixed, linear.weight, linear.bias, residual, norm.weight, norm.bias, out, len(out), norm.eps,
            INNER=mixed.shape[1], WIDTH=self.weights.width, PART=self.part, TILE=tile, STEP=step, num_warps=warps,
            num_stages=stages,
        )  # fmt: skip
        return out

    def project_rows(self, mixed: Tensor, linear: Linear, table: Tensor, rows: Tensor, norm: Norm) -> Tensor:
        """The same with residual states from rows of a table."""
        return self._normed(functional.linear(mixed, *linear), table, rows.reshape(-1), norm)

    def _normed(self, states: Tensor, residual: Tensor, rows: Tensor | None, norm: Norm) -> Tensor:
        tile, warps = self.tiles.norm
        out = torch.empty_like(states)
        self.kernels.add_norm[(_parts(len(out), tile),)](
            states, residual, residual if rows is None else rows, norm.weight, norm.bias, out, len(out), norm.eps,
            WIDTH=out.shape[1], BLOCK=_power(out.shape[1]), TILE=tile, GATHERED=rows is not None, num_warps=warps,
        )  # fmt: skip
        return out

    def feed(self, states: Tensor, layer: Layer) -> Tensor:
        """The second half of a layer: in one kernel, in three, or with torch's activation."""
        if self.feeds:
            return self._fed(states, layer)
        if self.way == "lt" and self.weights.erf:
            inner = torch._addmm_activation(layer.up.bias, states, layer.up.weight.T, use_gelu=True)
            return self.project(inner, layer.down, states, layer.norm_down)
        columns = self.tiles.up[1]
        if self.way == "triton" or not self.weights.erf or self.inner % columns or states.shape[1] % self.tiles.up[2]:
            return super().feed(states, layer)
        return self.project(self._up(states, layer.up), layer.down, states, layer.norm_down)

    def _up(self, states: Tensor, linear: Linear) -> Tensor:
        tile, columns, step, warps, stages = self.tiles.up
        out = states.new_empty(len(states), self.inner)
        self.kernels.up_gelu[(_parts(len(states), tile) * (self.inner // columns),)](
            states, linear.weight, linear.bias, out, len(states), WIDTH=states.shape[1], INNER=self.inner, TILE=tile,
            COLUMNS=columns, STEP=step, GROUP=8, num_warps=warps, num_stages=stages,
        )  # fmt: skip
        return out

    def _fed(self, states: Tensor, layer: Layer) -> Tensor:
        tile, step, warps, stages = self.tiles.feed
        out, norm = torch.empty_like(states), layer.norm_down
        self.kernels.feed[(_parts(len(out), tile),)](
            states, *layer.up, *layer.down, norm.weight, norm.bias, out, len(out), norm.eps,
            WIDTH=self.weights.width, INNER=self.inner, PART=self.part, TILE=tile, STEP=step, num_warps=warps,
            num_stages=stages,
        )  # fmt: skip
        return out


def _parts(total: int, size: int) -> int:
    return -(-total // size)


def _power(number: int) -> int:
    """The smallest power of two that is no less."""
    return 1 << max(number - 1, 0).bit_length()
