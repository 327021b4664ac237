"""Compute 3 x 3 convolutions with fewer multiplications, where the CPU gains from it.

A convolution over m x m outputs at a time (m = 2 or 4, see `analysis/winograd.py`) becomes one
generic `npu.op = "winograd_conv2d"` over its windows, and its weights are transformed once, with
everything else that depends on parameters alone. It applies to targets whose vector unit does the
work (`cached`), to stride 1, to prepared weights, and where the model of its cost says that it is
faster, or where the module's `npu.winograd` names m (see `kernels/choices.py`; 0: the plain sum).
Windows that reach beyond the output read zeros there, and their excess is cut off, after an
elementwise operation that follows. The result differs from the plain sum by rounding only.

    r[n,ty,y,tx,x,k] += A[y,a] A[x,b] U[a,b,c,k] B[a,i] B[b,j] image[n, m ty + i, m tx + j, c]

Before:
    %r = linalg.conv_2d_nhwc_hwcf ins(%x, %w : 1x58x58x64, 3x3x64x64) outs(%zero : 1x56x56x64)
After:
    %t = linalg.generic ins(%G, %w) outs(6x3x64x64)
    %u = linalg.generic ins(%G, %t) outs(6x6x64x64)
    %v = linalg.transpose ins(%u as 6x6x64x4x16) permutation = [0, 1, 3, 2, 4]
    %c = linalg.generic {npu.op = "winograd_conv2d"} ins(%x, %v, %B, %B, %A, %A)
         outs(1x14x4x14x4x4x16)
    %r = tensor.collapse_shape %c : 1x14x4x14x4x4x16 into 1x56x56x64
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mlir_npu.dialect.bindings import arith, ir
from mlir_npu.dialect.target import Target, target_of
from mlir_npu.passes.analysis.register_tile import choose_channel_block
from mlir_npu.passes.analysis.winograd import (
    TAPS,
    Algorithm,
    Matrix,
    algorithm,
    choose_outputs,
    taps_on_data,
)
from mlir_npu.passes.kernels.choices import WINOGRAD, key_of, take_choices
from mlir_npu.passes.kernels.walk import constant_of
from mlir_npu.passes.registry import register_pass
from mlir_npu.passes.rewriting.convolution_alone import CONVOLUTION, convolution_alone
from mlir_npu.passes.rewriting.cut_results import cut_last
from mlir_npu.passes.rewriting.dependence import is_prepared
from mlir_npu.passes.rewriting.functions import region_blocks
from mlir_npu.passes.rewriting.generics import build_generic, build_with_maps
from mlir_npu.passes.rewriting.moves import Slice, pad, pad_last, read_pad, slice_of
from mlir_npu.passes.rewriting.packing import OP
from mlir_npu.passes.rewriting.transposes import split_dimension, transposed
from mlir_npu.passes.rewriting.values import (
    before,
    defined_by,
    element_type,
    erase_unused,
    fill_scalar,
    filled,
    is_static,
    replace,
    shape_of,
)
from mlir_npu.passes.rewriting.views import viewed

KIND = "winograd_conv2d"
# Loops n ty y tx x ko ki | a b i j c.
PARALLEL, REDUCTION = 7, 5


@dataclass(frozen=True)
class ConvertConvToWinogradOptions:
    """enabled: false keeps every convolution the plain sum of products."""

    enabled: bool = True


@register_pass("convert-conv-to-winograd", ConvertConvToWinogradOptions)
def convert_conv_to_winograd(module: ir.Operation, options: ConvertConvToWinogradOptions) -> None:
    target = target_of(module)
    given = take_choices(module, WINOGRAD)
    if not (options.enabled and target.cached):
        return
    choices = {key: ir.IntegerAttr(value).value for key, value in given.items()}
    for block in region_blocks(module):
        for view in list(block.operations):
            if not is_candidate(view.operation):
                continue
            outputs = _chosen(view.operation, choices)
            if outputs:
                _convert(view.operation, algorithm(outputs), target)
        erase_unused(block)


def _chosen(op: ir.Operation, choices: Mapping[str, int]) -> int:
    key = key_of(convolution_alone(op)) if choices else None
    return choices[key] if key in choices else model_choice(op)


def is_candidate(op: ir.Operation) -> bool:
    """Whether the algorithm can compute `op`."""
    if op.name != CONVOLUTION or not all(is_static(value) for value in op.operands):
        return False
    image, weights, init = op.operands
    windows = [int(v) for name in ("strides", "dilations") for v in op.attributes[name]]
    start = fill_scalar(init)
    if shape_of(weights)[:2] != (TAPS, TAPS) or set(windows) != {1} or start is None:
        return False
    return isinstance(element_type(image), ir.F32Type) and is_prepared(weights)


def model_choice(op: ir.Operation) -> int:
    """The m of the algorithm for a candidate, 0 if it stays as it is."""
    image, weights, init = op.operands
    images, height, width, channels = shape_of(init)
    on_data, made_by = Fraction(1), defined_by(image, "tensor.pad")
    if made_by is not None and (known := read_pad(made_by)) is not None:
        for axis, outputs in ((1, height), (2, width)):
            on_data *= taps_on_data(outputs, known.low[axis], known.high[axis])
    depth = shape_of(weights)[2]
    return choose_outputs(height, width, depth, channels, images, on_data) or 0


def _convert(op: ir.Operation, method: Algorithm, target: Target) -> None:
    image, weights, init = op.operands
    m, (images, height, width, channels) = method.outputs, shape_of(init)
    rows, columns = -(-height // m), -(-width // m)
    lanes = choose_channel_block(channels, target)
    blocked = (channels // lanes, lanes)
    shape = (images, rows, m, columns, m, *blocked)
    with before(op):
        spread = _transformed(weights, method)
        packed = transposed(split_dimension(spread, 3, blocked), (0, 1, 3, 2, 4))
        into, back = _constant(method.input), _constant(method.output)
        beyond = (0, rows * m - height, columns * m - width, 0)
        inputs = [_extended(pad_last(image), beyond), packed, into, into, back, back]
        start = filled(shape, fill_scalar(init))
        kinds = ["parallel"] * PARALLEL + ["reduction"] * REDUCTION
        built = build_with_maps(inputs, [start], _maps(m), kinds, _product)
        built.attributes[OP] = ir.StringAttr.get(KIND)
        built.attributes["npu.outputs"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), m)
        covered = viewed(built.results[0], (images, rows * m, columns * m, channels))
        part = _start_of(covered, shape_of(init))
        replace(op, [part])
        if part != covered:
            cut_last(part, covered)


def _extended(image: ir.Value, beyond: Sequence[int]) -> ir.Value:
    """`image` with zeros behind its ends; one pad, where it is one already."""
    if not any(beyond):
        return image
    made_by = defined_by(image, "tensor.pad")
    known = read_pad(made_by) if made_by is not None else None
    if known is not None and _is_zero(known.value):
        high = [own + more for own, more in zip(known.high, beyond)]
        return pad(made_by.operands[0], known.low, high, known.value)
    zero = arith.ConstantOp(element_type(image), ir.FloatAttr.get(element_type(image), 0.0))
    return pad(image, [0] * len(beyond), beyond, zero.result)


def _is_zero(scalar: ir.Value) -> bool:
    return ir.FloatAttr(constant_of(scalar)).value == 0


def _start_of(value: ir.Value, sizes: Sequence[int]) -> ir.Value:
    """The leading part of `value`."""
    if shape_of(value) == tuple(sizes):
        return value
    return slice_of(value, Slice((0,) * len(sizes), tuple(sizes), (1,) * len(sizes)))


def _product(scalars: list[ir.Value]) -> list[ir.Value]:
    *factors, total = scalars
    product = factors[0]
    for factor in factors[1:]:
        product = arith.MulFOp(product, factor).result
    return [arith.AddFOp(total, product).result]


def _transformed(weights: ir.Value, method: Algorithm) -> ir.Value:
    """G w G^T over the first two dimensions of `weights`."""
    matrix, points = _constant(method.filter), method.points
    _, _, depth, channels = shape_of(weights)
    # loops a s c k r, then a b c k s
    rows = _contracted(matrix, weights, (0, 4), (4, 1, 2, 3), (points, TAPS, depth, channels))
    return _contracted(matrix, rows, (1, 4), (0, 4, 2, 3), (points, points, depth, channels))


def _contracted(matrix, value, matrix_access, access, shape) -> ir.Value:
    zero = arith.ConstantOp(element_type(value), ir.FloatAttr.get(element_type(value), 0.0)).result
    init = filled(shape, zero)

    def body(scalars: list[ir.Value]) -> list[ir.Value]:
        product = arith.MulFOp(scalars[0], scalars[1]).result
        return [arith.AddFOp(scalars[2], product).result]

    reduced = frozenset({4})
    accesses = [matrix_access, access]
    result = build_generic([matrix, value], accesses, [init], [(0, 1, 2, 3)], reduced, 5, body)
    return result.results[0]


def _constant(matrix: Matrix) -> ir.Value:
    rows = np.array([[float(entry) for entry in row] for row in matrix], np.float32)
    attribute = ir.DenseElementsAttr.get(rows)
    return arith.ConstantOp(attribute.type, attribute).result


def _maps(m: int) -> list[ir.AffineMap]:
    n, ty, y, tx, x, ko, ki, a, b, i, j, c = (
        ir.AffineDimExpr.get(loop) for loop in range(PARALLEL + REDUCTION)
    )
    operands = (
        [n, ty * m + i, tx * m + j, c],
        [a, b, ko, c, ki],
        [a, i],
        [b, j],
        [y, a],
        [x, b],
        [n, ty, y, tx, x, ko, ki],
    )
    return [ir.AffineMap.get(PARALLEL + REDUCTION, 0, operand) for operand in operands]
