"""Static pads, slices and concatenations of tensors: read them and build them."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir, tensor
from mlir_npu.passes.analysis import permutation as dims
from mlir_npu.passes.rewriting.values import defined_by, element_type, is_static, shape_of
from mlir_npu.passes.rewriting.views import reassociation, viewed


@dataclass(frozen=True)
class Padding:
    """Elements of `value` before and after, per dimension."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    value: ir.Value


def read_pad(op: ir.Operation) -> Padding | None:
    """A `tensor.pad` by known amounts with one scalar from outside of its body; else None."""
    if not (is_static(op.operands[0]) and is_static(op.results[0])) or len(op.operands) != 1:
        return None
    block = op.regions[0].blocks[0]
    value = list(block.operations)[-1].operation.operands[0]
    if value.owner == block or defined_by(value, "arith.constant") is None:
        return None
    if len(list(block.operations)) > 1:
        return None
    low, high = (
        tuple(ir.DenseI64ArrayAttr(op.attributes[f"static_{side}"])) for side in ("low", "high")
    )
    return Padding(low, high, value)


def pad(source: ir.Value, low: Sequence[int], high: Sequence[int], value: ir.Value) -> ir.Value:
    extents = [a + b + c for a, b, c in zip(low, shape_of(source), high, strict=True)]
    type_ = ir.RankedTensorType.get(extents, element_type(source))
    op = tensor.PadOp(type_, source, [], [], list(low), list(high))
    index = ir.IndexType.get()
    location = [op.operation.location] * len(extents)
    block = op.operation.regions[0].blocks.append(*[index] * len(extents), arg_locs=location)
    with ir.InsertionPoint(block):
        tensor.YieldOp(value)
    return op.operation.results[0]


def pad_last(value: ir.Value) -> ir.Value:
    """`value`, where it is an expansion of a pad, as the pad of an expansion.

    Only where no padded dimension is split; otherwise `value` as it is.
    """
    view = defined_by(value, "tensor.expand_shape")
    made_by = defined_by(view.operands[0], "tensor.pad") if view is not None else None
    padding = read_pad(made_by) if made_by is not None else None
    if padding is None:
        return value
    low, high, shape = [], [], []
    extents = shape_of(value)
    for d, group in enumerate(reassociation(view)):
        if len(group) > 1 and (padding.low[d] or padding.high[d]):
            return value
        rest = [0] * (len(group) - 1)
        low += [padding.low[d], *rest]
        high += [padding.high[d], *rest]
        shape += [extents[i] for i in group]
        shape[len(shape) - len(group)] -= padding.low[d] + padding.high[d]
    return pad(viewed(made_by.operands[0], shape), low, high, padding.value)


@dataclass(frozen=True)
class Slice:
    """Offset, size and step per dimension."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def permuted(self, permutation: Sequence[int]) -> "Slice":
        parts = (self.offsets, self.sizes, self.strides)
        return Slice(*(dims.permuted(part, permutation) for part in parts))


def read_slice(op: ir.Operation) -> Slice | None:
    """A `tensor.extract_slice` with known bounds that keeps the rank; else None."""
    if not is_static(op.operands[0]) or len(op.operands) != 1:
        return None
    parts = [
        tuple(ir.DenseI64ArrayAttr(op.attributes[f"static_{part}"]))
        for part in ("offsets", "sizes", "strides")
    ]
    return Slice(*parts) if parts[1] == shape_of(op.results[0]) else None


def slice_of(source: ir.Value, window: Slice) -> ir.Value:
    type_ = ir.RankedTensorType.get(window.sizes, element_type(source))
    parts = [list(part) for part in (window.offsets, window.sizes, window.strides)]
    return tensor.ExtractSliceOp(type_, source, [], [], [], *parts).result


def concat(axis: int, parts: Sequence[ir.Value]) -> ir.Value:
    extents = list(shape_of(parts[0]))
    extents[axis] = sum(shape_of(part)[axis] for part in parts)
    type_ = ir.RankedTensorType.get(extents, element_type(parts[0]))
    return tensor.ConcatOp(type_, axis, list(parts)).result


def write_parts(concatenation: ir.Operation) -> ir.Value:
    """A `tensor.concat` as its parts written one after the other into one tensor."""
    axis = ir.IntegerAttr(concatenation.attributes["dim"]).value
    result = concatenation.results[0]
    whole: ir.Value = tensor.EmptyOp(list(shape_of(result)), element_type(result)).result
    start = 0
    for part in concatenation.operands:
        sizes = list(shape_of(part))
        offsets = [start if d == axis else 0 for d in range(len(sizes))]
        whole = tensor.InsertSliceOp(
            part, whole, [], [], [], offsets, sizes, [1] * len(sizes)
        ).result
        start += sizes[axis]
    return whole
