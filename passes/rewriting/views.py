"""Reshapes that move no element: `tensor.expand_shape` and `tensor.collapse_shape`."""

from collections.abc import Sequence
from math import prod

from mlir_npu.dialect.bindings import ir, tensor
from mlir_npu.passes.analysis.permutation import groups
from mlir_npu.passes.rewriting.values import defined_by, element_type, is_static, shape_of

VIEWS = ("tensor.expand_shape", "tensor.collapse_shape")


def unviewed(value: ir.Value) -> ir.Value:
    """What `value` is a view of, through any number of views."""
    while (view := defined_by(value, *VIEWS)) is not None and is_static(view.operands[0]):
        value = view.operands[0]
    return value


def viewed(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """`value` seen with another `shape`; as few views as possible of what `value` is a view of."""
    shape, source = tuple(shape), unviewed(value)
    if shape_of(value) == shape:
        return value
    if shape_of(source) == shape:
        return source
    if not shape or not shape_of(source):
        return _through_rank_zero(source, shape)
    grouping = groups(shape_of(source), shape)
    if grouping is None:
        raise ValueError(f"{list(shape_of(source))} and {list(shape)} differ in elements")
    middle = tuple(prod(shape[d] for d in group.target) for group in grouping)
    collapsed = _collapse(source, middle, [group.source for group in grouping])
    return _expand(collapsed, shape, [group.target for group in grouping])


def _through_rank_zero(source: ir.Value, shape: tuple[int, ...]) -> ir.Value:
    """Between one element without dimensions and one element with dimensions of extent 1."""
    return _expand(_collapse(source, (), []), shape, [])


def _collapse(source: ir.Value, shape: tuple[int, ...], reassociation) -> ir.Value:
    if shape_of(source) == shape:
        return source
    type_ = ir.RankedTensorType.get(shape, element_type(source))
    return tensor.CollapseShapeOp(type_, source, _attribute(reassociation)).result


def _expand(source: ir.Value, shape: tuple[int, ...], reassociation) -> ir.Value:
    if shape_of(source) == shape:
        return source
    type_ = ir.RankedTensorType.get(shape, element_type(source))
    return tensor.ExpandShapeOp(type_, source, _attribute(reassociation), [], list(shape)).result


def _attribute(reassociation) -> ir.ArrayAttr:
    index = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(index, d) for d in dims]) for dims in reassociation]
    )


def reassociation(view: ir.Operation) -> list[tuple[int, ...]]:
    """For each dimension of the smaller shape of a view, the dimensions of the larger one."""
    attribute = ir.ArrayAttr(view.attributes["reassociation"])
    return [tuple(ir.IntegerAttr(d).value for d in ir.ArrayAttr(dims)) for dims in attribute]
