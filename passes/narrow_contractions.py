"""Multiply 8-bit integers where widened ones are multiplied.

torch-mlir has integer convolutions, matrix products and sums over windows of i32 only and adds up
in i64. Where an operand is an 8-bit one that was widened with its sign, behind a pad, a view or a
move perhaps, the op takes the 8-bit one and adds up in i32: as many products as are added never
leave the range of i32. A sum over a window takes its one operand like that.

Before:
    %a = linalg.generic {arith.extsi} ins(%x : 1x8x9x9xi8) outs(%e : 1x8x9x9xi32)
    %p = tensor.pad %a low[0, 0, 1, 1] high[0, 0, 1, 1] { yield %zero_point : i32 }
    %b = linalg.generic {arith.extsi} ins(%w : 16x8x3x3xi8) outs(%f : 16x8x3x3xi32)
    %c = linalg.conv_2d_nchw_fchw ins(%p, %b : i32, i32) outs(%zero : 1x16x9x9xi64)
After:
    %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] { yield %zero_point : i8 }
    %n = linalg.conv_2d_nchw_fchw ins(%p, %w : i8, i8) outs(%zero : 1x16x9x9xi32)
    %c = linalg.generic {arith.extsi} ins(%n : 1x16x9x9xi32) outs(%g : 1x16x9x9xi64)
"""

from math import prod

from mlir_npu.dialect.bindings import arith, ir, linalg
from mlir_npu.passes.analysis.byte_sums import MAX_TERMS
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.functions import region_blocks
from mlir_npu.passes.rewriting.generics import build_generic
from mlir_npu.passes.rewriting.narrowing import narrowed
from mlir_npu.passes.rewriting.values import (
    before,
    defined_by,
    element_type,
    empty,
    erase_unused,
    fill_scalar,
    filled,
    is_static,
    replace,
    shape_of,
)

_PRODUCTS = frozenset(
    {
        "linalg.conv_2d_nchw_fchw",
        "linalg.conv_2d_ngchw_gfchw",
        "linalg.depthwise_conv_2d_nchw_chw",
        "linalg.matmul",
    }
)
_SUM = "linalg.pooling_nchw_sum"


@register_pass("narrow-contractions")
def narrow_contractions(module: ir.Operation, options: NoOptions) -> None:
    for block in region_blocks(module):
        for view in list(block.operations):
            if view.operation.name in _PRODUCTS or view.operation.name == _SUM:
                _narrow(view.operation)
        erase_unused(block)


def _narrow(op: ir.Operation) -> None:
    image, kernel, init = op.operands
    if not _adds_up_integers(op) or _terms(op) > MAX_TERMS:
        return
    with before(op):
        operands = [narrowed(image), kernel if op.name == _SUM else narrowed(kernel)]
        if any(operand is None for operand in operands):
            return
        if op.name == _SUM:
            operands[1] = empty(shape_of(kernel), element_type(operands[0]))
        i32 = ir.IntegerType.get_signless(32)
        zero = arith.ConstantOp(i32, 0).result
        built = _rebuilt(op, [*operands, filled(shape_of(init), zero)])
        replace(op, [_widened(built, element_type(init))])


def _adds_up_integers(op: ir.Operation) -> bool:
    """Whether sums of i32 start from 0."""
    image, _, init = op.operands
    if not all(is_static(value) for value in op.operands):
        return False
    if not isinstance(element_type(init), ir.IntegerType) or element_type(image).width != 32:
        return False
    start = fill_scalar(init)
    constant = defined_by(start, "arith.constant") if start is not None else None
    return constant is not None and ir.IntegerAttr(constant.attributes["value"]).value == 0


def _terms(op: ir.Operation) -> int:
    """Products that are added up for one element of the result."""
    _, kernel, init = op.operands
    if op.name == "linalg.matmul":
        return shape_of(kernel)[0]
    outputs = {"linalg.conv_2d_nchw_fchw": 1, "linalg.conv_2d_ngchw_gfchw": 2}
    if op.name in outputs:
        return prod(shape_of(kernel)[outputs[op.name] :])
    return prod(shape_of(kernel)[-2:])


def _rebuilt(op: ir.Operation, operands: list[ir.Value]) -> ir.Value:
    names = ("strides", "dilations", "indexing_maps")
    attributes = {name: op.attributes[name] for name in names if name in op.attributes}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([2, 1])
    built = ir.Operation.create(
        op.name, results=[operands[2].type], operands=operands, attributes=attributes, regions=1
    )
    linalg.fill_builtin_region(built)
    return built.results[0]


def _widened(value: ir.Value, element: ir.Type) -> ir.Value:
    if element_type(value) == element:
        return value
    shape = shape_of(value)
    whole = tuple(range(len(shape)))

    def body(scalars: list[ir.Value]) -> list[ir.Value]:
        return [arith.ExtSIOp(element, scalars[0]).result]

    init = empty(shape, element)
    made = build_generic([value], [whole], [init], [whole], frozenset(), len(shape), body)
    return made.results[0]
