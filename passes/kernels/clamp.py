"""Where the valid part of a tile of a padded image starts, how large it is and where it lands.

Per dimension, in elements: the image has extent X and stands at `low` in a padded extent
P = low + X + high; a tile of extent t starts at o, with 0 <= o <= P - t. Its valid part
    starts at   clip(o - low, 0, X)                  in the image,
    has         clip(o + t - low, 0, X) - start      elements, and
    lands at    clip(low - o, 0, t)                  in the tile.
Offsets are integers or index values; integers stay integers, and a bound of the clip that the tile
can never reach is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import affine, ir
from mlir_npu.passes.kernels.walk import definition, integers

Offset = int | ir.Value


@dataclass(frozen=True)
class Box:
    """Start and sizes in the image and landing position in the tile, one entry per dimension."""

    starts: tuple[Offset, ...]
    sizes: tuple[Offset, ...]
    low: tuple[Offset, ...]


def clamp_box(
    origin: Sequence[Offset],
    tile: Sequence[int],
    low: Sequence[int],
    image: Sequence[int],
    padded: Sequence[int],
) -> Box:
    """The valid part of a tile; builds affine ops at the current insertion point."""
    parts = [_clamp(*dimension) for dimension in zip(origin, tile, low, image, padded)]
    return Box(*(tuple(group) for group in zip(*parts))) if parts else Box((), (), ())


def _clamp(o: Offset, t: int, low: int, image: int, padded: int) -> tuple[Offset, Offset, Offset]:
    high = padded - low - image
    if isinstance(o, int):
        start = min(max(o - low, 0), image)
        return start, max(min(o + t - low, image) - start, 0), min(max(low - o, 0), t)
    start = _shifted(o, 1, -low)
    if low > 0:
        start = _bounded(affine.AffineMaxOp, o, 1, -low, 0)
    if high > t:
        start = _bounded(affine.AffineMinOp, start, 1, 0, image)
    landing: Offset = 0
    if low > 0:
        landing = _bounded(affine.AffineMaxOp, o, -1, low, 0)
    if low > t:
        landing = _bounded(affine.AffineMinOp, landing, 1, 0, t)
    if low == 0 and high == 0:
        return start, t, landing
    end = _shifted(o, 1, t - low)
    if high > 0:
        end = _bounded(affine.AffineMinOp, o, 1, t - low, image)
    if low > t:
        end = _bounded(affine.AffineMaxOp, end, 1, 0, 0)
    return start, _difference(end, start), landing


def _dim(position: int = 0) -> ir.AffineExpr:
    return ir.AffineExpr.get_dim(position)


def _shifted(value: ir.Value, factor: int, shift: int) -> ir.Value:
    map_ = ir.AffineMap.get(1, 0, [_dim() * factor + shift])
    return affine.AffineApplyOp(map_, [value]).result


def _bounded(op_class, value: ir.Value, factor: int, shift: int, bound: int) -> ir.Value:
    """min or max of `value * factor + shift` and `bound`."""
    other = ir.AffineExpr.get_constant(bound)
    map_ = ir.AffineMap.get(1, 0, [_dim() * factor + shift, other])
    return op_class(map_, [value]).result


def _difference(end: ir.Value, start: ir.Value) -> ir.Value:
    map_ = ir.AffineMap.get(2, 0, [_dim(0) - _dim(1)])
    return affine.AffineApplyOp(map_, [end, start]).result


def unwrap_subviews(view: ir.Value, buffer: ir.Value) -> list[Offset] | None:
    """Offsets of `view` in `buffer` through nested subviews; None if a stride is not 1.

    Builds affine ops at the current insertion point.
    """
    offsets: list[Offset] = [0] * len(buffer.type.shape)
    while view != buffer:
        made_by = definition(view)
        if set(integers(made_by, "static_strides")) != {1}:
            return None
        if len(view.type.shape) != len(buffer.type.shape):
            return None
        offsets = [_sum(a, b) for a, b in zip(offsets, _offsets(made_by))]
        view = made_by.operands[0]
    return offsets


def _offsets(subview: ir.Operation) -> list[Offset]:
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    values = iter(list(subview.operands)[1:])
    return [next(values) if o == dynamic else o for o in integers(subview, "static_offsets")]


def _sum(a: Offset, b: Offset) -> Offset:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(a, int):
        return _shifted(b, 1, a) if a else b
    if isinstance(b, int):
        return _shifted(a, 1, b) if b else a
    map_ = ir.AffineMap.get(2, 0, [_dim(0) + _dim(1)])
    return affine.AffineApplyOp(map_, [a, b]).result
