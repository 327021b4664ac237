"""The move that pads an image tile, seen from the compute op that reads the tile.

Where the data lies in a padded tile says which taps of a window meet data: the others combine with
padding, which changes nothing where its value is neutral.
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.microkernels.accumulator_group import AccumulatorGroup, keeps
from mlir_npu.passes.microkernels.aliasing import WHOLE_VIEWS, may_overlap, users_of, whole_buffer
from mlir_npu.passes.microkernels.axis import Axis
from mlir_npu.passes.microkernels.binding import integers, shape_of, strides_of
from mlir_npu.passes.microkernels.buffers import DYNAMIC_SIZE, extent_along
from mlir_npu.passes.microkernels.emit import Offset, offset_of

IMAGES, ROWS, COLUMNS, CHANNELS = range(4)


def padding_of(compute: ir.Operation) -> ir.Operation | None:
    """The move that alone makes all of the image of `compute`, with neutral padding."""
    image = compute.operands[0]
    tile = whole_buffer(image)
    writers = [op for op in users_of(tile) if _may_write(op, tile)]
    if len(writers) != 1 or writers[0].name != "npu.dma_start":
        return None
    (move,) = writers
    if "pad_value" not in move.attributes or move.attributes["pad_value"].value != _neutral(
        compute
    ):
        return None
    same_shape = shape_of(tile) == shape_of(move.operands[1])
    is_known = same_shape and order_in_tile(image) is not None
    return move if is_known and stands_before(move, compute) else None


def order_in_tile(image: ir.Value) -> list[int] | None:
    """For every dimension of an image that of the tile that it is a view of."""
    order, view = list(range(len(shape_of(image)))), image
    while not isinstance(view.owner, ir.Block) and view.owner.name in WHOLE_VIEWS:
        made_by = view.owner
        if made_by.name == "memref.transpose":
            map_ = ir.AffineMapAttr(made_by.attributes["permutation"]).value
            inner = [ir.AffineDimExpr(result).position for result in map_.results]
            order = [inner[dim] for dim in order]
        elif shape_of(view) != shape_of(made_by.operands[0]):
            return None
        view = made_by.operands[0]
    return order


def padding_to_leave_out(group: AccumulatorGroup) -> ir.Operation | None:
    """The move that pads the image of a group, if its data can as well be read at its source.

    The move does nothing else, nobody else reads what it makes, nothing writes its source up to the
    end of the group, and where columns land is known at compile time.
    """
    compute = group.compute
    move = padding_of(compute)
    if move is None or move.block != compute.block:
        return None
    order = integers(move, "permutation")
    users = users_of(whole_buffer(compute.operands[0]))
    if order != sorted(order) or any(op not in (move, compute) for op in users):
        return None
    source, target, *low = move.operands
    sizes, rooms = shape_of(source), shape_of(target)
    place = order_in_tile(compute.operands[0])
    images, columns, channels = (place[dim] for dim in (IMAGES, COLUMNS, CHANNELS))
    if not all(_is_known(low[dim], sizes[dim]) for dim in (images, columns, channels)):
        return None
    if any(sizes[dim] != rooms[dim] for dim in (images, channels)):
        return None
    return move if _keeps_source(group, move) else None


def _is_known(low: ir.Value, size: int) -> bool:
    return size != DYNAMIC_SIZE and offset_of(low).value is None


def _keeps_source(group: AccumulatorGroup, move: ir.Operation) -> bool:
    source = move.operands[0]
    order = [op.operation for op in move.block.operations]
    between = order[order.index(move) + 1 : order.index(group.last)]
    if group.drain is not None and may_overlap(group.drain.operands[-1], source):
        return False
    return all(keeps(op, [source]) for op in between)


def window_axes(
    compute: ir.Operation, taps: tuple[int, int], padding: ir.Operation | None
) -> tuple[Axis, Axis]:
    """The axes of rows and columns; without `padding` all of the image is data."""
    strides, dilations = integers(compute, "strides"), integers(compute, "dilations")
    image, outputs = shape_of(compute.operands[0]), shape_of(compute.operands[-1])
    place = order_in_tile(compute.operands[0]) if padding is not None else None
    axes = []
    for i, dim in enumerate((ROWS, COLUMNS)):
        low, extent = Offset(), Offset(None, image[dim])
        if padding is not None:
            low, extent = landing(padding, place[dim])
        axes.append(Axis(outputs[dim], taps[i], strides[i], dilations[i], low, extent))
    return axes[0], axes[1]


def source_strides(compute: ir.Operation, padding: ir.Operation) -> list[int]:
    """Strides of the image of `compute` where `padding`, which is left out, would take it from."""
    strides = strides_of(padding.operands[0])
    return [strides[dim] for dim in order_in_tile(compute.operands[0])]


def landing(move: ir.Operation, dim: int) -> tuple[Offset, Offset]:
    """Where the data begins along dimension `dim` of the target of a padding move, and its size."""
    source, _, *low = move.operands
    return offset_of(low[dim]), extent_along(source, integers(move, "permutation")[dim])


def stands_before(op: ir.Operation, later: ir.Operation) -> bool:
    """Whether `later` runs after `op` in the block of `op`, or in a region there."""
    while later is not None and later.block != op.block:
        later = later.parent.operation if isinstance(later.parent, ir.OpView) else later.parent
    if later is None:
        return False
    order = [child.operation for child in op.block.operations]
    return order.index(op) < order.index(later.operation)


def _may_write(op: ir.Operation, tile: ir.Value) -> bool:
    """Whether `op`, a user of `tile`, writes it; of ops that are not npu's nothing is known."""
    if not op.name.startswith("npu."):
        return True
    written = op.operands[1] if op.name == "npu.dma_start" else op.operands[-1]
    return whole_buffer(written) == tile


def _neutral(compute: ir.Operation) -> float:
    """What changes no sum, or no maximum."""
    if "kind" not in compute.attributes or ir.StringAttr(compute.attributes["kind"]).value == "sum":
        return 0
    element = ir.MemRefType(compute.operands[0].type).element_type
    if isinstance(element, ir.IntegerType):
        return -(1 << element.width - 1)
    return float("-inf")
