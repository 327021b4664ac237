"""How accumulators begin (a constant or memory) and end (memory or an epilogue)."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.microkernels.arithmetic import add
from mlir_npu.passes.microkernels.nest import Lane, Tile
from mlir_npu.passes.microkernels.region import inline_region, splat_constant


@dataclass(frozen=True)
class Epilogue:
    """A region over the accumulator and other operands, given by their index in the nest.

    Block arguments: the accumulator, then `inputs`, then (unused by the region) `outputs`.
    """

    block: ir.Block
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Accumulation:
    """`initial`: fill value, None reads `memory`. `epilogue`: None writes `memory`.

    `memory` is the index of the accumulator buffer in the nest, None when it is never touched.
    """

    initial: ir.Attribute | None
    memory: int | None
    epilogue: Epilogue | None

    def start(self, tile: Tile, lane: Lane) -> ir.Value:
        if self.initial is not None:
            return splat_constant(self.initial, lane.width)
        return tile.load(self.memory, lane.offsets[self.memory], lane.width)

    def add(self, tile: Tile, lane: Lane, value: ir.Value) -> None:
        """Add `value` to the accumulator that begins here, and finish it."""
        if self.initial is None or not _is_zero(self.initial):
            value = add(self.start(tile, lane), value)
        self.finish(tile, lane, value)

    def finish(self, tile: Tile, lane: Lane, value: ir.Value) -> None:
        if self.epilogue is None:
            tile.store(self.memory, lane.offsets[self.memory], value)
            return
        epilogue = self.epilogue
        inputs = [tile.load(i, lane.offsets[i], lane.width) for i in epilogue.inputs]
        results = apply_region(epilogue.block, [value, *inputs], lane.width)
        for index, result in zip(epilogue.outputs, results, strict=True):
            tile.store(index, lane.offsets[index], result)


def apply_region(block: ir.Block, values: list[ir.Value], width: int) -> list[ir.Value]:
    """Inline `block`; arguments beyond `values` stand for outputs that the region does not read."""
    rest = [splat_constant(_zero(a.type), width) for a in list(block.arguments)[len(values) :]]
    return inline_region(block, [*values, *rest], width)


def _is_zero(number: ir.Attribute) -> bool:
    return number.value == 0


def _zero(type_: ir.Type) -> ir.Attribute:
    if isinstance(type_, ir.FloatType):
        return ir.FloatAttr.get(type_, 0.0)
    return ir.IntegerAttr.get(type_, 0)
