"""The 8-bit tensor that another is the widened form of, found through what only moves elements."""

from __future__ import annotations

from collections.abc import Callable

from mlir_npu.dialect.bindings import arith, ir
from mlir_npu.passes.kernels.walk import definition
from mlir_npu.passes.rewriting.generics import GENERIC, Generic, build_generic, read_generic
from mlir_npu.passes.rewriting.moves import concat, pad, read_pad, read_slice, slice_of
from mlir_npu.passes.rewriting.transposes import TRANSPOSE, permutation_of, transposed
from mlir_npu.passes.rewriting.values import defined_by, empty, shape_of
from mlir_npu.passes.rewriting.views import VIEWS, viewed

WIDTH = 8


def narrowed(value: ir.Value) -> ir.Value | None:
    """A tensor of i8 whose elements, with their sign, are those of `value`; None if none is seen.

    Builds at the insertion point.
    """
    op = definition(value)
    if op is None:
        return None
    if op.name in VIEWS:
        return _moved(op, lambda source: viewed(source, shape_of(value)))
    rule = _RULES.get(op.name)
    return rule(op) if rule is not None else None


def _moved(op: ir.Operation, move: Callable[[ir.Value], ir.Value]) -> ir.Value | None:
    source = narrowed(op.operands[0])
    return None if source is None else move(source)


def _generic(op: ir.Operation) -> ir.Value | None:
    generic = read_generic(op)
    if generic is None or len(generic.inputs) != 1 or not generic.is_elementwise:
        return None
    body = [view.operation for view in op.regions[0].blocks[0].operations]
    if len(body) == 1:
        return _broadcast(generic)
    widens = len(body) == 2 and body[0].name == "arith.extsi"
    if not widens or not generic.is_whole(generic.accesses[0]):
        return None
    return op.operands[0] if ir.IntegerType(body[0].operands[0].type).width == WIDTH else None


def _broadcast(generic: Generic) -> ir.Value | None:
    """Elements that are repeated, but not computed."""
    block = generic.op.regions[0].blocks[0]
    if list(block.operations)[0].operation.operands[0] != block.arguments[0]:
        return None
    source = narrowed(generic.inputs[0])
    if source is None:
        return None
    init = empty(generic.extents, ir.IntegerType.get_signless(WIDTH))
    made = build_generic(
        [source],
        generic.accesses,
        [init],
        generic.output_accesses,
        frozenset(),
        generic.loops,
        lambda scalars: scalars[:1],
    )
    return made.results[0]


def _pad(op: ir.Operation) -> ir.Value | None:
    padding = read_pad(op)
    if padding is None:
        return None
    number = ir.IntegerAttr(defined_by(padding.value, "arith.constant").attributes["value"]).value
    if not -(1 << WIDTH - 1) <= number < 1 << WIDTH - 1:
        return None

    def move(source: ir.Value) -> ir.Value:
        constant = arith.ConstantOp(ir.IntegerType.get_signless(WIDTH), number).result
        return pad(source, padding.low, padding.high, constant)

    return _moved(op, move)


def _transpose(op: ir.Operation) -> ir.Value | None:
    return _moved(op, lambda source: transposed(source, permutation_of(op)))


def _slice(op: ir.Operation) -> ir.Value | None:
    window = read_slice(op)
    return None if window is None else _moved(op, lambda source: slice_of(source, window))


def _concat(op: ir.Operation) -> ir.Value | None:
    parts = [narrowed(part) for part in op.operands]
    axis = ir.IntegerAttr(op.attributes["dim"]).value
    return None if any(part is None for part in parts) else concat(axis, parts)


_RULES = {
    GENERIC: _generic,
    "tensor.pad": _pad,
    TRANSPOSE: _transpose,
    "tensor.extract_slice": _slice,
    "tensor.concat": _concat,
}
