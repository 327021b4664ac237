"""Unit, cycles and work of each op, from its types alone."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import prod

from mlir_npu.dialect.attributes import ACC, DRAM, SRAM, space_of
from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import MacsPerCell, Target
from mlir_npu.passes.analysis.unit_cycles import (
    accumulator_fill_cycles,
    contraction_cycles,
    transform_operations,
    vector_cycles,
    vector_fill_cycles,
    window_cycles,
)
from mlir_npu.passes.analysis.winograd import Matrix
from mlir_npu.passes.kernels.walk import integers
from mlir_npu.passes.kernels.winograd import method_of
from mlir_npu.simulator.errors import UnknownType

MATRIX, VECTOR, DMA_IN, DMA_OUT = "matrix", "vector", "dma in", "dma out"
UNITS = (MATRIX, VECTOR, DMA_IN, DMA_OUT)
RATED = tuple(field.name for field in fields(MacsPerCell))  # element types


@dataclass(frozen=True)
class Cost:
    """What an op does to its unit.

    macs: multiply-accumulates; ideal: cycles if all of the unit took part in each, a fraction;
    fill: cycles that the pipeline of the matrix unit takes to fill; shape: for people.
    rows, columns: used and existing rows and columns of the matrix unit, on average.
    """

    unit: str
    cycles: int
    ideal: float
    macs: int = 0
    fill: int = 0
    rows: tuple[float, int] = (0, 0)
    columns: tuple[float, int] = (0, 0)
    shape: str = ""


def compute_cost(op: ir.Operation, target: Target) -> Cost:
    """The cost of a compute op. Raises UnknownType."""
    for operand in op.operands:
        if not ir.MemRefType(operand.type).has_static_shape:
            raise UnknownType(f"{operand.type} has extents that are not constant")
    return _COSTS[op.name](op, target)


def move_units(op: ir.Operation) -> tuple[str, ...]:
    """The units whose channels a dma_start holds."""
    source, target = (space_of(value.type) for value in op.operands[:2])
    if (source, target) == (DRAM, DRAM):
        return (DMA_IN, DMA_OUT)
    return (DMA_OUT,) if (source, target) == (SRAM, DRAM) else (DMA_IN,)


def _shape(value: ir.Value) -> tuple[int, ...]:
    return tuple(ir.MemRefType(value.type).shape)


def _fill(op: ir.Operation, target: Target) -> Cost:
    elements = prod(_shape(op.operands[0]))
    text = _text(_shape(op.operands[0]))
    if space_of(op.operands[0].type) == ACC:
        cycles = accumulator_fill_cycles(elements, target.matrix)
        return Cost(MATRIX, cycles, 0.0, shape=text)
    lanes = target.vector.lanes
    return Cost(VECTOR, vector_fill_cycles(elements, lanes), elements / lanes, shape=text)


def _conv2d(op: ir.Operation, target: Target) -> Cost:
    blocks, rows, columns, depth, block = _shape(op.operands[1])
    n, height, width = _shape(op.operands[2])[:3]
    text = f"{n}x{height}x{width} {rows}x{columns} {depth} to {blocks * block}"
    return _contraction(op, target, n * height * width, rows * columns, depth, blocks * block, text)


def _matmul(op: ir.Operation, target: Target) -> Cost:
    blocks, depth, block = _shape(op.operands[1])
    (rows, _) = _shape(op.operands[0])
    text = f"{rows} rows {depth} to {blocks * block}"
    return _contraction(op, target, rows, 1, depth, blocks * block, text)


def _batch_matmul(op: ir.Operation, target: Target) -> Cost:
    """One product after the other."""
    batch, blocks, depth, block = _shape(op.operands[1])
    rows = _shape(op.operands[0])[1]
    text = f"{batch} times {rows} rows {depth} to {blocks * block}"
    one = _contraction(op, target, rows, 1, depth, blocks * block, text)
    return replace(
        one,
        cycles=batch * one.cycles,
        ideal=batch * one.ideal,
        macs=batch * one.macs,
        fill=batch * one.fill,
    )


def _contraction(op, target: Target, outputs, taps, depth, channels, text) -> Cost:
    unit = target.matrix
    element = str(ir.MemRefType(op.operands[0].type).element_type)
    if element not in RATED:
        raise UnknownType(
            f"the matrix unit of '{target.name}' has no rate for factors of {element}, only for "
            f"{', '.join(RATED)}"
        )
    rate = unit.rate(element)
    cycles = contraction_cycles(outputs, taps, depth, channels, unit, rate)
    macs = outputs * taps * depth * channels
    deep, wide = unit.rows * rate, unit.cols
    return Cost(
        MATRIX,
        cycles,
        macs / (deep * wide),
        macs,
        unit.rows + unit.cols,
        (depth / -(-depth // deep) / rate, unit.rows),
        (channels / -(-channels // wide), wide),
        text,
    )


def _window(op: ir.Operation, target: Target) -> Cost:
    shape = _shape(op.operands[len(op.operands) - 1])
    weights = _shape(op.operands[1])
    pooled = op.name == "npu.pool2d"
    taps = prod(integers(op, "window")) if pooled else weights[0] * weights[1]
    outputs, lanes = prod(shape), target.vector.lanes
    cycles = window_cycles(outputs, taps, lanes)
    macs = 0 if pooled else outputs * taps
    return Cost(VECTOR, cycles, outputs * taps / lanes, macs, shape=_text(shape))


def _vector(op: ir.Operation, target: Target) -> Cost:
    points = prod(_iteration_space(op))
    operations = sum(
        child.operation.name not in ("npu.yield", "arith.constant")
        for child in op.regions[0].blocks[0].operations
    )
    lanes = target.vector.lanes
    cycles = vector_cycles(points, operations, lanes)
    text = f"{_text(_iteration_space(op))} points, {operations} ops"
    return Cost(VECTOR, cycles, points * max(1, operations) / lanes, shape=text)


def _winograd_input(op: ir.Operation, target: Target) -> Cost:
    _, windows, channels = _shape(op.operands[1])
    return _transform(target, windows, channels, method_of(op).input)


def _winograd_output(op: ir.Operation, target: Target) -> Cost:
    _, windows, blocks, block = _shape(op.operands[0])
    return _transform(target, windows, blocks * block, method_of(op).output)


def _transform(target: Target, windows: int, channels: int, matrix: Matrix) -> Cost:
    operations, lanes = transform_operations(matrix), target.vector.lanes
    cycles = vector_cycles(windows * channels, operations, lanes)
    ideal = windows * channels * operations / lanes
    return Cost(VECTOR, cycles, ideal, shape=f"{windows} windows of {channels}, {operations} ops")


def _iteration_space(op: ir.Operation) -> list[int]:
    maps = [ir.AffineMapAttr(attribute).value for attribute in op.attributes["indexing_maps"]]
    found: dict[int, int] = {}
    for map_, operand in zip(maps, op.operands):
        for result, extent in zip(map_.results, _shape(operand)):
            if isinstance(result, ir.AffineDimExpr):
                found[result.position] = extent
    return [found[dim] for dim in range(maps[0].n_dims)]


def _text(shape) -> str:
    return "x".join(map(str, shape)) or "scalar"


_COSTS = {
    "npu.fill": _fill,
    "npu.conv2d": _conv2d,
    "npu.matmul": _matmul,
    "npu.batch_matmul": _batch_matmul,
    "npu.depthwise_conv2d": _window,
    "npu.pool2d": _window,
    "npu.eltwise": _vector,
    "npu.drain": _vector,
    "npu.reduce": _vector,
    "npu.winograd_input": _winograd_input,
    "npu.winograd_output": _winograd_output,
}
