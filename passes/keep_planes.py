"""Keep tiles of a convolution in the order of dram where that has the channels first.

With channels last, vectors run over output channels, and tiles of an image and of a result that
have channels first are transposed in moves. Where a tile keeps the order of dram instead, columns
lie side by side at both ends: vectors run over columns, the image is padded only, and the result is
stored where it belongs. Convolutions see the same tiles through `memref.transpose`. It applies to
f32 of few channels on targets whose sram is a cache, where the transposes cost more than columns
that fill no vector (see `analysis/planes.py`). Moves of results only copy then, which `elide-dma`
leaves out. Everywhere else the image alone keeps its order: with vectors over output channels its
elements are read one by one, wherever they lie.

Before:
    %image = memref.alloc() : memref<1x6x226x3xf32, sram>
    npu.dma_start(%x : 1x3x6x224, %image, %c0, %low, %c1, %c0) {permutation = [0, 2, 3, 1], ...}
    npu.conv2d(%image, %w, %acc);  npu.drain(%acc, %bias, %result)
    npu.dma_start(%result : 1x4x224x4x16, %y : 1x4x16x4x224) {permutation = [0, 3, 4, 1, 2]}
After:
    %planes = memref.alloc() : memref<1x3x6x226xf32, sram>
    %image = memref.transpose %planes (n, c, y, x) -> (n, y, x, c)
    npu.dma_start(%x, %planes, %c0, %c0, %low, %c1) {permutation = [0, 1, 2, 3], ...}
    npu.conv2d(%image, %w, %acc);  npu.drain(%acc, %bias, %result)      // %result alike
    npu.dma_start(%rows, %y) {permutation = [0, 1, 2, 3, 4]}
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlir_npu.dialect.bindings import ir, memref
from mlir_npu.dialect.movement import DmaStartOp
from mlir_npu.dialect.target import target_of
from mlir_npu.passes.analysis.permutation import inverse, permuted
from mlir_npu.passes.analysis.planes import MOST_INPUTS, gains_planes
from mlir_npu.passes.kernels.walk import definition, functions, integers, nested
from mlir_npu.passes.microkernels.accumulator_group import AccumulatorGroup, find_group
from mlir_npu.passes.microkernels.aliasing import users_of, whole_buffer
from mlir_npu.passes.microkernels.retype import replace_tile
from mlir_npu.passes.registry import NoOptions, register_pass

MOVE = "npu.dma_start"
SOURCE, TARGET = 0, 1
COLUMNS = 2  # dimension of image and result


@dataclass(frozen=True)
class _Edge:
    """A tile, and the move that is alone in making it, or in taking it away."""

    tile: ir.Value
    move: ir.Operation
    side: int

    @property
    def order(self) -> tuple[int, ...]:
        """For every dimension of the tile the one of dram."""
        order = integers(self.move, "permutation")
        return order if self.side == TARGET else inverse(order)


@register_pass("keep-planes")
def keep_planes(module: ir.Operation, options: NoOptions) -> None:
    for function in functions(module):
        convolutions = nested(function, "npu.conv2d")
        if not convolutions or not (target := target_of(module)).cached:
            continue
        for conv in convolutions:
            for edge in _edges(find_group(conv), target.vector.lanes):
                _keep_order(edge)


def _edges(group: AccumulatorGroup, lanes: int) -> list[_Edge]:
    """The tiles of a convolution that stay as they are in dram: image and result, or the image."""
    image, weights, accumulator = (ir.MemRefType(value.type) for value in group.compute.operands)
    _, *taps, inputs, _ = weights.shape
    if not isinstance(image.element_type, ir.F32Type) or inputs > MOST_INPUTS:
        return []
    source = _edge(group.compute.operands[0], TARGET, group.compute)
    if source is None or not _is_innermost(source):
        return []
    columns, stride = accumulator.shape[COLUMNS], integers(group.compute, "strides")[1]
    if not gains_planes(inputs, prod(taps) * inputs, columns, stride, lanes):
        return [source]
    result = _result(group)
    return [source] if result is None else [source, result]


def _result(group: AccumulatorGroup) -> _Edge | None:
    """The result of a group, if vectors can run over its columns."""
    if group.drain is None or not _is_plain(group.drain):
        return None
    result = _edge(group.drain.operands[-1], SOURCE, group.drain)
    return result if result is not None and _is_innermost(result) else None


def _is_plain(drain: ir.Operation) -> bool:
    """Whether a drain reads nothing else that has columns, and writes in the order of its loops."""
    accumulator, *inputs, output = (
        ir.AffineMapAttr(map_).value for map_ in drain.attributes["indexing_maps"]
    )
    columns = accumulator.results[COLUMNS]
    is_same = accumulator == output and accumulator.n_dims == len(accumulator.results)
    return is_same and all(columns not in list(map_.results) for map_ in inputs)


def _edge(value: ir.Value, side: int, user: ir.Operation) -> _Edge | None:
    tile = whole_buffer(value)
    made_by = definition(tile)
    others = [op for op in users_of(tile) if op != user]
    if tile != value or made_by is None or made_by.name != "memref.alloc" or len(others) != 1:
        return None
    (move,) = others
    is_move = move.name == MOVE and move.operands[side] == tile and move.block == user.block
    return _Edge(tile, move, side) if is_move else None


def _is_innermost(edge: _Edge) -> bool:
    """Whether columns, which do not lie side by side in the tile, do in dram."""
    return edge.order[COLUMNS] == len(edge.order) - 1


def _keep_order(edge: _Edge) -> None:
    order, type_ = edge.order, ir.MemRefType(edge.tile.type)
    kept = inverse(order)
    alloc = definition(edge.tile)
    with ir.InsertionPoint(alloc), alloc.location:
        shape = permuted(type_.shape, kept)
        planes = memref.AllocOp(
            ir.MemRefType.get(shape, type_.element_type, memory_space=type_.memory_space), [], []
        ).result
        map_ = ir.AffineMap.get_permutation(order)
        strides, _ = ir.MemRefType(planes.type).get_strides_and_offset()
        layout = ir.StridedLayoutAttr.get(0, [strides[dim] for dim in order])
        view_type = ir.MemRefType.get(type_.shape, type_.element_type, layout, type_.memory_space)
        view = memref.TransposeOp(view_type, planes, map_).result
    _move_in_order(edge, planes, kept)
    replace_tile(edge.tile, view)
    alloc.erase()


def _move_in_order(edge: _Edge, planes: ir.Value, kept: tuple[int, ...]) -> None:
    """The same move to or from `planes`, with `low` in their order."""
    source, target, *low = edge.move.operands
    ends = (source, planes) if edge.side == TARGET else (planes, target)
    attributes = edge.move.attributes
    with ir.InsertionPoint(edge.move), edge.move.location:
        moved = DmaStartOp.build(
            *ends,
            low=permuted(low, kept) if low else (),
            pad_value=attributes["pad_value"] if "pad_value" in attributes else None,
        )
    edge.move.results[0].replace_all_uses_with(moved.token)
    edge.move.erase()
