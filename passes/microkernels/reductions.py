"""`npu.reduce`: along lanes of the output, or across lanes where only the reduction has them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.loop_nest import Dim, merge, order_by_stride, unit_dim
from mlir_npu.passes.analysis.register_tile import VectorUnit
from mlir_npu.passes.microkernels.accumulation import apply_region
from mlir_npu.passes.microkernels.accumulator_group import AccumulatorGroup
from mlir_npu.passes.microkernels.binding import BoundGroup, bind_group, operand_maps
from mlir_npu.passes.microkernels.buffers import NotLinearError, Operand, mapped_operand
from mlir_npu.passes.microkernels.combiners import combiner_of
from mlir_npu.passes.microkernels.elementwise import loop_extents
from mlir_npu.passes.microkernels.horizontal import Horizontal, emit_horizontal
from mlir_npu.passes.microkernels.lanewise import Cells, Combine, Lanewise, emit_lanewise
from mlir_npu.passes.microkernels.nest import Lane, Tile
from mlir_npu.passes.microkernels.row_blocks import emit_row_blocks, takes_row_blocks


def emit_reduce(group: AccumulatorGroup, unit: VectorUnit) -> None:
    bound, parallel, reduction = _bind(group)
    block = group.compute.regions[0].blocks[0]
    count = len(group.compute.operands) - 1

    def combine(tile: Tile, lane: Lane, value: ir.Value) -> ir.Value:
        inputs = [tile.load(i, lane.offsets[i], lane.width) for i in range(count)]
        return apply_region(block, [*inputs, value], lane.width)[0]

    emit_reduction(
        bound.operands,
        bound.dims(parallel),
        bound.dims(reduction),
        block,
        combine,
        bound.accumulation,
        unit,
    )


def emit_reduction(
    operands: Sequence[Operand],
    parallel: Sequence[Dim],
    reduced: Sequence[Dim],
    block: ir.Block,
    combine: Combine,
    cells: Cells,
    unit: VectorUnit,
    streamed: Collection[int] = (),
) -> None:
    """Accumulate over the loops `reduced`, for every iteration of the loops `parallel`.

    The inputs come first among `operands`; `combine` emits `block` on a vector of them. streamed:
    those that come from memory.
    """
    operands = tuple(operands)
    inputs = len(block.arguments) - 1
    pixels = merge(order_by_stride(parallel, len(operands) - 1))
    taps = merge(order_by_stride(reduced, 0))
    combiner = combiner_of(block)
    if combiner and taps and _is_contiguous(taps[-1], inputs) and not _has_lanes(pixels, inputs):
        *outer, lanes = taps
        element = block.arguments[inputs].type
        nest = Horizontal(
            operands, tuple(pixels), tuple(outer), lanes, combine, combiner, cells, element,
            streamed=frozenset(streamed),
        )  # fmt: skip
        emit_horizontal(nest, unit)
        return
    *pixels, lanes = pixels or [unit_dim(len(operands))]
    sums = combiner == "arith.addf"
    nest = Lanewise(operands, tuple(pixels), lanes, cells, tuple(taps), combine, sums)
    if takes_row_blocks(nest, unit):
        emit_row_blocks(nest, unit, streamed)
    else:
        emit_lanewise(nest, unit)


def _bind(group: AccumulatorGroup) -> tuple[BoundGroup, list[int], list[int]]:
    """The group on its loops; a constant in the output's map becomes a loop of one iteration."""
    reduce = group.compute
    *maps, output_map = operand_maps(reduce)
    extents = loop_extents(reduce, [*maps, output_map])
    output_loops = []
    for expression in output_map.results:
        if isinstance(expression, ir.AffineDimExpr):
            output_loops.append(expression.position)
        elif isinstance(expression, ir.AffineConstantExpr):
            output_loops.append(len(extents))
            extents.append(1)
        else:
            raise NotLinearError(f"the output of a reduction is indexed by {expression}")
    kinds = [ir.StringAttr(k).value for k in reduce.attributes["iterator_types"]]
    inputs = [
        _extend(mapped_operand(v, m), len(extents))
        for v, m in zip(list(reduce.operands)[:-1], maps, strict=True)
    ]
    bound = bind_group(group, inputs, output_loops, extents)
    reduction = [i for i, kind in enumerate(kinds) if kind == "reduction"]
    parallel = [i for i in range(len(extents)) if i not in reduction]
    return bound, parallel, reduction


def _extend(operand: Operand, loops: int) -> Operand:
    padding = (0,) * (loops - len(operand.strides))
    return Operand(operand.flat, operand.start, (*operand.strides, *padding), operand.element)


def _is_contiguous(dim: Dim, inputs: int) -> bool:
    return all(stride in (0, 1) for stride in dim.strides[:inputs])


def _has_lanes(pixels: list[Dim], inputs: int) -> bool:
    """Whether the innermost parallel loop already reads vectors."""
    return bool(pixels) and _is_contiguous(pixels[-1], inputs) and pixels[-1].strides[-1] == 1
