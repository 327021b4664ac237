"""Small things about values: shapes, empty and filled tensors, what nobody uses."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mlir_npu.dialect.bindings import arith, ir, linalg, tensor
from mlir_npu.passes.kernels.walk import definition

_PURE = ("tensor.", "arith.", "math.", "linalg.")


@contextmanager
def before(op: ir.Operation) -> Iterator[None]:
    """Build in front of `op`, at its source location."""
    with ir.InsertionPoint(op), op.location:
        yield


def defined_by(value: ir.Value, *names: str) -> ir.Operation | None:
    """The operation that makes `value` if it is called one of `names`."""
    op = definition(value)
    return op if op is not None and op.name in names else None


def shape_of(value: ir.Value) -> tuple[int, ...]:
    return tuple(ir.RankedTensorType(value.type).shape)


def element_type(value: ir.Value) -> ir.Type:
    return ir.RankedTensorType(value.type).element_type


def is_static(value: ir.Value) -> bool:
    """Whether `value` is a ranked tensor whose extents are all known."""
    return isinstance(value.type, ir.RankedTensorType) and value.type.has_static_shape


def empty(shape: Sequence[int], element: ir.Type) -> ir.Value:
    return tensor.EmptyOp(list(shape), element).result


def filled(shape: Sequence[int], scalar: ir.Value) -> ir.Value:
    """A tensor of `shape` full of `scalar`."""
    init = empty(shape, scalar.type)
    op = linalg.FillOp([init.type], [scalar], [init])
    linalg.fill_builtin_region(op.operation)
    return op.operation.results[0]


def fill_scalar(value: ir.Value) -> ir.Value | None:
    """The scalar that a `linalg.fill` put everywhere in `value`, None if something else made it."""
    fill = defined_by(value, "linalg.fill")
    return fill.operands[0] if fill is not None else None


def is_uniform(value: ir.Value) -> bool:
    """Whether all elements of `value` are one known scalar: a fill, or a splat constant."""
    constant = defined_by(value, "arith.constant")
    if constant is None:
        return fill_scalar(value) is not None
    elements = constant.attributes["value"]
    return isinstance(elements, ir.DenseElementsAttr) and elements.is_splat


def uniform_scalar(value: ir.Value) -> ir.Value:
    """The scalar that a uniform `value` is full of."""
    scalar = fill_scalar(value)
    if scalar is not None:
        return scalar
    splat = ir.DenseElementsAttr(definition(value).attributes["value"]).get_splat_value()
    return arith.ConstantOp(element_type(value), splat).result


def replace(op: ir.Operation, values: Sequence[ir.Value]) -> None:
    """Use `values` wherever the results of `op` are used, and erase it."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def erase_if_unused(*values: ir.Value) -> None:
    """Erase what computes `values`, and what that needed, as far as nothing else uses it."""
    pending, gone = list(dict.fromkeys(values)), set()
    while pending:
        value = pending.pop(0)
        op = definition(value) if value not in gone else None
        if op is None or not is_unused(op):
            continue
        pending.extend(op.operands)
        gone.update(op.results)
        op.erase()


def is_unused(op: ir.Operation) -> bool:
    """Whether `op` has no effects and nobody uses its results."""
    return op.name.startswith(_PURE) and not any(True for r in op.results for _ in r.uses)


def erase_unused(block: ir.Block) -> None:
    """Erase operations without effects whose results nobody uses, last first."""
    for view in reversed(list(block.operations)):
        op = view.operation
        if is_unused(op):
            op.erase()
