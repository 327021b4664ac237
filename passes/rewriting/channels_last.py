"""Convolutions and poolings with channels last in place of the same with channels first."""

from dataclasses import dataclass

from mlir_npu.dialect.bindings import arith, ir, linalg
from mlir_npu.passes.analysis.permutation import inverse, permuted
from mlir_npu.passes.kernels.walk import users
from mlir_npu.passes.rewriting.generics import GENERIC, build_generic
from mlir_npu.passes.rewriting.transposes import marked_transpose, transposed
from mlir_npu.passes.rewriting.values import (
    before,
    element_type,
    empty,
    fill_scalar,
    filled,
    is_static,
    replace,
    shape_of,
)


@dataclass(frozen=True)
class Form:
    """The channels-last op, and the permutations of image and filter that lead to it."""

    name: str
    image: tuple[int, ...]
    filter: tuple[int, ...] | None  # None: a window, of which only the shape counts

    @property
    def accumulates(self) -> bool:
        return self.filter is not None


CHANNELS_LAST = {
    "linalg.conv_2d_nchw_fchw": Form("linalg.conv_2d_nhwc_hwcf", (0, 2, 3, 1), (2, 3, 1, 0)),
    "linalg.conv_2d_ngchw_gfchw": Form(
        "linalg.conv_2d_nhwgc_gfhwc", (0, 3, 4, 1, 2), (0, 1, 3, 4, 2)
    ),
    "linalg.depthwise_conv_2d_nchw_chw": Form(
        "linalg.depthwise_conv_2d_nhwc_hwc", (0, 2, 3, 1), (1, 2, 0)
    ),
    "linalg.pooling_nchw_max": Form("linalg.pooling_nhwc_max", (0, 2, 3, 1), None),
    "linalg.pooling_nchw_sum": Form("linalg.pooling_nhwc_sum", (0, 2, 3, 1), None),
}

_NAMES = frozenset(form.name for form in CHANNELS_LAST.values())
# Operations that take on the layout of what they read.
FOLLOWERS = frozenset(
    {
        GENERIC,
        "tensor.pad",
        "tensor.extract_slice",
        "tensor.concat",
        "tensor.expand_shape",
        "tensor.collapse_shape",
    }
)


def reaches_channels_last(value: ir.Value) -> bool:
    """Whether a channels-last operation reads `value`, directly or through followers."""
    pending, seen = [value], set()
    while pending:
        for user in users(pending.pop()):
            if user.name in _NAMES:
                return True
            if user.name in FOLLOWERS and user not in seen:
                seen.add(user)
                pending.extend(user.results)
    return False


def to_channels_last(op: ir.Operation) -> None:
    """Replace a convolution or pooling of `CHANNELS_LAST` by its form, between transposes."""
    if not all(is_static(value) for value in op.operands):
        return
    form = CHANNELS_LAST[op.name]
    image, kernel, init = op.operands
    with before(op):
        result = _build(op, form, image, kernel, init)
        if form.accumulates and fill_scalar(init) is None:
            result = _add(result, transposed(init, form.image))
        replace(op, [marked_transpose(result, inverse(form.image))])


def _build(op, form: Form, image: ir.Value, kernel: ir.Value, init: ir.Value) -> ir.Value:
    operands = [
        marked_transpose(image, form.image),
        kernel if form.filter is None else transposed(kernel, form.filter),
        _accumulator(form, init),
    ]
    segments = ir.DenseI32ArrayAttr.get([2, 1])
    attributes = {name: op.attributes[name] for name in ("strides", "dilations")}
    built = ir.Operation.create(
        form.name,
        results=[operands[2].type],
        operands=operands,
        attributes={**attributes, "operandSegmentSizes": segments},
        regions=1,
    )
    linalg.fill_builtin_region(built)
    return built.results[0]


def _accumulator(form: Form, init: ir.Value) -> ir.Value:
    """What the op starts from: its old fill, or zero when a tensor is added afterwards."""
    shape, scalar = permuted(shape_of(init), form.image), fill_scalar(init)
    if scalar is not None:
        return filled(shape, scalar)
    if form.accumulates:
        return filled(shape, arith.ConstantOp(element_type(init), _zero(element_type(init))).result)
    return transposed(init, form.image)


def _zero(type_: ir.Type) -> ir.Attribute:
    if isinstance(type_, ir.IntegerType):
        return ir.IntegerAttr.get(type_, 0)
    return ir.FloatAttr.get(type_, 0.0)


def _add(value: ir.Value, other: ir.Value) -> ir.Value:
    def body(scalars: list[ir.Value]) -> list[ir.Value]:
        add = arith.AddIOp if isinstance(element_type(value), ir.IntegerType) else arith.AddFOp
        return [add(scalars[0], scalars[1]).result]

    shape = shape_of(value)
    whole = tuple(range(len(shape)))
    init = empty(shape, element_type(value))
    op = build_generic([value, other], [whole] * 2, [init], [whole], frozenset(), len(shape), body)
    return op.results[0]
