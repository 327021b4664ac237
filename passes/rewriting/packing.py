"""Convolutions and matrix products as generics whose output channels are split into blocks.

The weights take the order in which a micro-kernel reads them: all of one block of output channels,
and within it one row of `Ki` channels per step of the reduction.
"""

from collections.abc import Callable
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.rewriting.generics import body_of, build_with_maps
from mlir_npu.passes.rewriting.moves import pad_last
from mlir_npu.passes.rewriting.transposes import split_dimension, transposed
from mlir_npu.passes.rewriting.values import (
    before,
    fill_scalar,
    filled,
    is_static,
    replace,
    shape_of,
)
from mlir_npu.passes.rewriting.views import viewed

OP, STRIDES, DILATIONS = "npu.op", "npu.strides", "npu.dilations"


@dataclass(frozen=True)
class Packing:
    """How one named op becomes a blocked generic.

    `channels`: the dimension of the weights that is split in two. `order`: of the weights after
    that. `parallel`, `reduction`: loops; dims are spelled by name in `image`, `weights` and
    `output`, where "y*r" is a window (y times stride plus r times dilation).
    """

    kind: str
    channels: int
    order: tuple[int, ...]
    parallel: str
    reduction: str
    image: str
    weights: str
    output: str


PACKINGS = {
    "linalg.conv_2d_nhwc_hwcf": Packing(
        "conv2d",
        3,
        (3, 0, 1, 2, 4),
        "n y x ko ki",
        "r s c",
        "n y*r x*s c",
        "ko r s c ki",
        "n y x ko ki",
    ),
    "linalg.conv_2d_nhwgc_gfhwc": Packing(
        "grouped_conv2d",
        1,
        (0, 1, 3, 4, 5, 2),
        "n y x g ko ki",
        "r s c",
        "n y*r x*s g c",
        "g ko r s c ki",
        "n y x g ko ki",
    ),
    "linalg.matmul": Packing("matmul", 1, (1, 0, 2), "m no ni", "c", "m c", "no c ni", "m no ni"),
    # The right side is data like the left one: to put it in order would take as long as to read it.
    "linalg.batch_matmul": Packing(
        "batch_matmul",
        2,
        (0, 1, 2, 3),
        "p m no ni",
        "c",
        "p m c",
        "p c no ni",
        "p m no ni",
    ),
}
PLAIN_MAPS = {
    "linalg.matmul": (
        "(d0, d1, d2) -> (d0, d2)",
        "(d0, d1, d2) -> (d2, d1)",
        "(d0, d1, d2) -> (d0, d1)",
    ),
    "linalg.batch_matmul": (
        "(d0, d1, d2, d3) -> (d0, d1, d3)",
        "(d0, d1, d2, d3) -> (d0, d3, d2)",
        "(d0, d1, d2, d3) -> (d0, d1, d2)",
    ),
}


def pack(op: ir.Operation, choose_block: Callable[[int], int]) -> None:
    """Replace an op of `PACKINGS` by its blocked generic and a view of its result."""
    packing = PACKINGS[op.name]
    if not all(is_static(value) for value in op.operands) or not has_plain_maps(op):
        return
    image, weights, init = op.operands
    channels = shape_of(weights)[packing.channels]
    block = choose_block(channels)
    shape = (*shape_of(init)[:-1], channels // block, block)
    with before(op):
        split = split_dimension(weights, packing.channels, (channels // block, block))
        scalar = fill_scalar(init)
        accumulator = viewed(init, shape) if scalar is None else filled(shape, scalar)
        inputs = [pad_last(image), transposed(split, packing.order)]
        built = _build(op, packing, inputs, accumulator)
        replace(op, [viewed(built.results[0], shape_of(init))])


def has_plain_maps(op: ir.Operation) -> bool:
    """Whether a matrix product is the plain one; it may carry maps that transpose or broadcast."""
    if op.name not in PLAIN_MAPS or "indexing_maps" not in op.attributes:
        return True
    maps = (str(ir.AffineMapAttr(a).value) for a in ir.ArrayAttr(op.attributes["indexing_maps"]))
    return tuple(maps) == PLAIN_MAPS[op.name]


def _build(
    op: ir.Operation, packing: Packing, inputs: list[ir.Value], init: ir.Value
) -> ir.Operation:
    windows = {name: _pair(op, name) for name in ("strides", "dilations") if name in op.attributes}
    parallel, reduction = packing.parallel.split(), packing.reduction.split()
    maps = [
        _map(spelling, parallel + reduction, windows)
        for spelling in (packing.image, packing.weights, packing.output)
    ]
    kinds = ["parallel"] * len(parallel) + ["reduction"] * len(reduction)
    built = build_with_maps(inputs, [init], maps, kinds, body_of(op))
    built.attributes[OP] = ir.StringAttr.get(packing.kind)
    for name, pair in windows.items():
        built.attributes[f"npu.{name}"] = ir.DenseI64ArrayAttr.get(pair)
    return built


def _pair(op: ir.Operation, name: str) -> list[int]:
    return [int(v) for v in ir.DenseIntElementsAttr(op.attributes[name])]


def _map(spelling: str, loops: list[str], windows: dict[str, list[int]]) -> ir.AffineMap:
    expressions = []
    for dim in spelling.split():
        outer, _, inner = dim.partition("*")
        expression = ir.AffineDimExpr.get(loops.index(outer))
        if inner:
            axis = "rs".index(inner)
            offset = ir.AffineDimExpr.get(loops.index(inner)) * windows["dilations"][axis]
            expression = expression * windows["strides"][axis] + offset
        expressions.append(expression)
    return ir.AffineMap.get(len(loops), 0, expressions)
