"""Random legal schedules of a kernel: tiles that divide and fit, any order, one or two buffers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod

from mlir_npu.dialect.target import Target
from mlir_npu.passes.analysis.footprint import KernelShape, Loop, footprint

MOST_TILES = 40
TRIES = 60
SEVERAL = 8  # of which the largest is taken


@dataclass(frozen=True)
class Schedule:
    """Tiles of the parallel and of the reduction loops, 0 for whole. No order: tiles in parallel."""

    tile: tuple[int, ...]
    reduction: tuple[int, ...] = ()
    order: tuple[int, ...] | None = None
    buffers: int = 1
    acc_buffers: int = 1

    def __str__(self) -> str:
        """As `npu.schedule`. The byte counts are 0, since plan-scratchpad counts again."""
        entries = [f"tile = {_array(self.tile)}", "parallel = false", 'bound = "given"']
        entries += ["sram_bytes = 0 : i64", "acc_bytes = 0 : i64"]
        if any(self.reduction):
            entries.append(f"reduction_tile = {_array(self.reduction)}")
        if self.order is not None:
            entries.append(f"order = {_array(self.order)}")
            entries.append(f"buffers = {self.buffers} : i64")
            entries.append(f"acc_buffers = {self.acc_buffers} : i64")
        return f"{{{', '.join(entries)}}}"

    def serial(self) -> Schedule:
        """The same tiles in the same order, one after the other."""
        return Schedule(self.tile, self.reduction, self.order)


def random_schedule(rng: random.Random, shape: KernelShape, target: Target) -> Schedule | None:
    """None if no tile is found that fits and that leaves few enough of them."""
    tries = (_random_tile(rng, shape) for _ in range(TRIES))
    fitting = (tile for tile in tries if tile is not None and _bytes(shape, tile, target))
    found = list(islice(fitting, rng.choice((1, 1, SEVERAL))))
    if not found:
        return None
    found = max(found, key=lambda tile: _bytes(shape, tile, target))  # two may not fit
    tile = tuple(_entry(rng, shape.loops[i], found[i]) for i in shape.parallel)
    reduction = tuple(_entry(rng, shape.loops[i], found[i]) for i in shape.reductions)
    if rng.random() < 0.1:
        return Schedule(tile, reduction)
    order = list(range(len(tile)))
    rng.shuffle(order)
    buffers = rng.choice((1, 2, 2, 2))
    return Schedule(tile, reduction, tuple(order), buffers, rng.choice((1, 2)))


def _random_tile(rng: random.Random, shape: KernelShape) -> list[int] | None:
    tile = []
    for loop in shape.loops:
        keep = loop.extent if rng.random() < (0.7 if loop.reduction else 0.2) else None
        sizes = loop.tiles(any_size=True)
        tile.append(keep if keep in sizes else rng.choice(sizes))
    few = prod(loop.extent // size for loop, size in zip(shape.loops, tile)) <= MOST_TILES
    return tile if few else None


def _bytes(shape: KernelShape, tile: list[int], target: Target) -> int:
    """Bytes on chip of one tile; 0 if they do not fit."""
    alignments = {"sram": target.sram.alignment, "acc": target.acc.alignment}
    needed = footprint(shape, tile, alignments)
    sram, acc = needed.bytes("sram"), needed.bytes("acc")
    return sram + acc if sram <= target.sram.bytes and acc <= target.acc.bytes else 0


def _entry(rng: random.Random, loop: Loop, size: int) -> int:
    """A tile size as a schedule has it: 0 for whole, at random the extent itself."""
    spelled_out = loop.forced is None and rng.random() < 0.2
    return 0 if size == loop.extent and not spelled_out else size


def _array(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"
