"""Put another buffer of equal shape under views that were made for a dense tile."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from mlir_npu.dialect.attributes import space_of, with_space
from mlir_npu.dialect.bindings import ir, memref
from mlir_npu.passes.microkernels.aliasing import WHOLE_VIEWS


def can_retype(tile: ir.Value, type_: ir.MemRefType) -> bool:
    """Whether every view of `tile` also exists of a buffer of `type_`."""
    for use in tile.uses:
        view = use.owner.operation
        if view.name not in WHOLE_VIEWS:
            continue
        viewed = _view_type(view, type_)
        if viewed is None or not can_retype(view.results[0], viewed):
            return False
    return True


def replace_tile(tile: ir.Value, buffer: ir.Value) -> None:
    """Let all users of `tile` use `buffer`, views included; `can_retype` must hold.

    Views are made where `buffer` is: it may stand behind the views of `tile`.
    """
    for use in list(tile.uses):
        op = use.owner.operation
        if op.name not in WHOLE_VIEWS:
            op.operands[use.operand_number] = buffer
            continue
        with _place_of_view(op, buffer), op.location:
            view = _rebuild(op, buffer)
        replace_tile(op.results[0], view)
        op.erase()


def _place_of_view(view: ir.Operation, buffer: ir.Value) -> ir.InsertionPoint:
    if isinstance(buffer.owner, ir.Block):
        return ir.InsertionPoint(view)
    return ir.InsertionPoint.after(buffer.owner)


def _view_type(view: ir.Operation, source: ir.MemRefType) -> ir.MemRefType | None:
    result = ir.MemRefType(view.results[0].type)
    if view.name == "memref.memory_space_cast":
        return with_space(source, space_of(result))
    if view.name == "memref.cast":
        return source
    strides, offset = source.get_strides_and_offset()
    if view.name == "memref.transpose":
        order = ir.AffineMapAttr(view.attributes["permutation"]).value.results
        layout = ir.StridedLayoutAttr.get(offset, [strides[e.position] for e in order])
        return ir.MemRefType.get(result.shape, result.element_type, layout, source.memory_space)
    fold = _collapsed if view.name == "memref.collapse_shape" else _expanded
    new = fold(_groups(view), source, result, strides)
    if new is None:
        return None
    # An identity layout stays one, as the verifier of reshapes has it.
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(source.rank))
    dense = source.layout == identity
    layout = None if dense else ir.StridedLayoutAttr.get(offset, new)
    return ir.MemRefType.get(result.shape, result.element_type, layout, source.memory_space)


def _rebuild(view: ir.Operation, source: ir.Value) -> ir.Value:
    type_ = _view_type(view, ir.MemRefType(source.type))
    if view.name == "memref.memory_space_cast":
        return memref.MemorySpaceCastOp(type_, source).result
    if view.name == "memref.cast":
        return source
    attributes = {name: view.attributes[name] for name in view.attributes}
    return ir.Operation.create(
        view.name,
        results=[type_],
        operands=[source, *list(view.operands)[1:]],
        attributes=attributes,
    ).result


def _groups(view: ir.Operation) -> list[list[int]]:
    return [[i.value for i in group] for group in view.attributes["reassociation"]]


def _collapsed(
    groups: Sequence[Sequence[int]],
    source: ir.MemRefType,
    result: ir.MemRefType,
    strides: Sequence[int],
) -> list[int] | None:
    """Strides of merged dimensions; None where they are not contiguous."""
    merged = []
    for group in groups:
        wide = [d for d in group if source.shape[d] != 1] or list(group[:1])
        for outer, inner in itertools.pairwise(wide):
            if strides[outer] != strides[inner] * source.shape[inner]:
                return None
        merged.append(strides[wide[-1]] if wide else 1)
    return merged


def _expanded(
    groups: Sequence[Sequence[int]],
    source: ir.MemRefType,
    result: ir.MemRefType,
    strides: Sequence[int],
) -> list[int]:
    """Strides of split dimensions."""
    split = []
    for dim, group in enumerate(groups):
        step, inner = strides[dim], []
        for part in reversed(group):
            inner.append(step)
            step *= result.shape[part]
        split += reversed(inner)
    return split
