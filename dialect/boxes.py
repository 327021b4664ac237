"""Which elements of a buffer a view of it has, as far as constant offsets tell."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_npu.dialect.bindings import ir

_SAME_ELEMENTS = ("memref.cast", "memref.memory_space_cast")
_DYNAMIC = ir.ShapedType.get_dynamic_size()
_DYNAMIC_OFFSET = ir.ShapedType.get_dynamic_stride_or_offset()

Box = list[range | None]  # indices of the buffer, per dimension; None: not known


def overlap(left: ir.Value, right: ir.Value) -> bool:
    """Whether two views certainly share elements of one buffer."""
    (buffer, box), (other, other_box) = _box_of(left), _box_of(right)
    if buffer != other or box is None or other_box is None:
        return False
    return all(_meet(a, b) for a, b in zip(box, other_box, strict=True))


def _meet(a: range | None, b: range | None) -> bool:
    return a is not None and b is not None and any(index in b for index in a)


def _box_of(view: ir.Value) -> tuple[ir.Value, Box | None]:
    """The buffer that `view` is a part of and its box there; None if it is no known box."""
    owner = view.owner
    if not isinstance(owner, ir.Block) and owner.name in _SAME_ELEMENTS:
        return _box_of(owner.operands[0])
    if not isinstance(owner, ir.Block) and owner.name == "memref.subview":
        return _part(owner)
    shape = ir.MemRefType(view.type).shape
    return view, [None if extent == _DYNAMIC else range(extent) for extent in shape]


def _part(subview: ir.Operation) -> tuple[ir.Value, Box | None]:
    buffer, box = _box_of(subview.operands[0])
    names = ("static_offsets", "static_sizes", "static_strides")
    offsets, sizes, strides = (list(subview.attributes[name]) for name in names)
    # a view that has dropped dimensions is no box any more
    if box is None or len(box) != len(offsets):
        return buffer, None
    return buffer, [_slice(*dim) for dim in zip(box, offsets, sizes, strides, strict=True)]


def _slice(whole: range | None, offset: int, size: int, stride: int) -> range | None:
    if whole is None or _is_dynamic((offset, size, stride)) or min(offset, size, stride - 1) < 0:
        return None
    return whole[offset : offset + size * stride : stride]


def _is_dynamic(numbers: Sequence[int]) -> bool:
    return any(number in (_DYNAMIC, _DYNAMIC_OFFSET) for number in numbers)
