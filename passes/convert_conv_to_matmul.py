"""Compute 1 x 1 convolutions in the order of their tensors, where these have channels first.

Between an image that is read and a result that is stored with channels first, a 1 x 1 convolution
is a matrix product: weights as they lie times an image whose positions lie side by side. It becomes
one generic `npu.op = "pointwise_conv2d"`; the elementwise generic that follows takes on its order,
and no transpose is left. Where strides leave positions out, the others are copied first. It applies
to targets whose vector unit does the work (`cached`), where vectors over positions are expected to
be faster (see `analysis/pointwise.py`).

    r[n,k,y,x] += w[k,c] image[n,c,y,x]

Before:
    %t = linalg.transpose ins(%x : 1x64x56x56) permutation = [0, 2, 3, 1]
    %v = linalg.transpose ins(%w : 256x64x1x1) permutation = [2, 3, 1, 0]
    %c = linalg.conv_2d_nhwc_hwcf ins(%t, %v : 1x56x56x64, 1x1x64x256) outs(%zero : 1x56x56x256)
    %r = linalg.generic {add, relu} ins(%c, %shift : 1x56x56x256, 256)
    %b = linalg.transpose ins(%r) permutation = [0, 3, 1, 2]
After:
    %v = tensor.collapse_shape %w : 256x64x1x1 into 256x64
    %c = linalg.generic {npu.op = "pointwise_conv2d"} ins(%v, %x : 256x64, 1x64x56x56)
         outs(%zero : 1x256x56x56)
    %b = linalg.generic {add, relu} ins(%c, %shift : 1x256x56x56, 256)
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import Target, target_of
from mlir_npu.passes.analysis.pointwise import gains_channels_first
from mlir_npu.passes.kernels.walk import users
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.convolution_alone import CONVOLUTION
from mlir_npu.passes.rewriting.dependence import is_prepared
from mlir_npu.passes.rewriting.elementwise import read_elementwise, rebuilt
from mlir_npu.passes.rewriting.functions import region_blocks
from mlir_npu.passes.rewriting.generics import body_of, build_generic
from mlir_npu.passes.rewriting.moves import Slice, slice_of
from mlir_npu.passes.rewriting.packing import OP
from mlir_npu.passes.rewriting.transposes import (
    TRANSPOSE,
    permutation_of,
    transpose_source,
    transposed,
)
from mlir_npu.passes.rewriting.values import (
    before,
    element_type,
    erase_unused,
    fill_scalar,
    filled,
    is_static,
    replace,
    shape_of,
)
from mlir_npu.passes.rewriting.views import viewed

KIND = "pointwise_conv2d"
TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


@dataclass(frozen=True)
class _Layer:
    """A convolution, the elementwise generic that follows it, and the transpose that ends both."""

    conv: ir.Operation
    epilogue: ir.Operation | None
    store: ir.Operation


@register_pass("convert-conv-to-matmul")
def convert_conv_to_matmul(module: ir.Operation, options: NoOptions) -> None:
    target = target_of(module)
    if not target.cached:
        return
    for block in region_blocks(module):
        for view in list(block.operations):
            layer = _layer_of(view.operation, target)
            if layer is not None:
                _convert(layer)
        erase_unused(block)


def _layer_of(op: ir.Operation, target: Target) -> _Layer | None:
    """The layer that begins with the convolution `op`, if it has channels first at both ends."""
    if op.name != CONVOLUTION or not all(is_static(value) for value in op.operands):
        return None
    image, weights, init = op.operands
    is_pointwise = shape_of(weights)[:2] == (1, 1)
    if not is_pointwise or fill_scalar(init) is None or not _reads_channels_first(image):
        return None
    if not isinstance(element_type(image), ir.F32Type):
        return None
    _, height, width, outputs = shape_of(init)
    sizes = shape_of(weights)[2], outputs, height * width
    gathers = _strides(op) != (1, 1)
    gains = gains_channels_first(*sizes, target.vector.lanes, target.sram.bytes, gathers)
    return _to_its_end(op) if gains else None


def _strides(conv: ir.Operation) -> tuple[int, ...]:
    return tuple(int(stride) for stride in conv.attributes["strides"])


def _reads_channels_first(value: ir.Value) -> bool:
    source = transpose_source(value)
    return source is not None and source[1] == TO_LAST and not is_prepared(source[0])


def _to_its_end(conv: ir.Operation) -> _Layer | None:
    following = users(conv.results[0])
    if len(following) != 1:
        return None
    epilogue = read_elementwise(following[0])
    if epilogue is None:
        return _Layer(conv, None, following[0]) if _stores_channels_first(following[0]) else None
    others = [
        value
        for value, access in zip(epilogue.inputs, epilogue.accesses, strict=True)
        if value != conv.results[0] and access and epilogue.is_whole(access)
    ]
    ends = users(epilogue.op.results[0])
    if len(epilogue.op.results) != 1 or len(ends) != 1 or not _stores_channels_first(ends[0]):
        return None
    if not all(_reads_channels_first(value) for value in others):
        return None
    return _Layer(conv, epilogue.op, ends[0])


def _stores_channels_first(op: ir.Operation) -> bool:
    return op.name == TRANSPOSE and permutation_of(op) == TO_FIRST


def _convert(layer: _Layer) -> None:
    image, weights, init = layer.conv.operands
    n, k, y, x, c = range(5)
    with before(layer.conv):
        start = filled([shape_of(init)[d] for d in TO_FIRST], fill_scalar(init))
        rows = transposed(weights, (3, 2, 0, 1))
        built = build_generic(
            [viewed(rows, shape_of(rows)[:2]), _read_positions(layer.conv)],
            [(k, c), (n, c, y, x)],
            [start],
            [(n, k, y, x)],
            frozenset({c}),
            5,
            _swapped(body_of(layer.conv)),
        )
        built.attributes[OP] = ir.StringAttr.get(KIND)
        back = transposed(built.results[0], TO_LAST)
    replace(layer.conv, [back])
    result = built.results[0]
    if layer.epilogue is not None:
        with before(layer.epilogue):
            result = rebuilt(read_elementwise(layer.epilogue), TO_FIRST).results[0]
    replace(layer.store, [result])


def _read_positions(conv: ir.Operation) -> ir.Value:
    """The image with channels first, without the positions that strides leave out."""
    image, _, init = conv.operands
    source = transpose_source(image)[0]
    batch, height, width, _ = shape_of(init)
    if _strides(conv) == (1, 1):
        return source
    sizes = (batch, shape_of(source)[1], height, width)
    return slice_of(source, Slice((0,) * 4, sizes, (1, 1, *_strides(conv))))


def _swapped(body):
    """`body`, a sum of products, with its factors the other way round."""
    return lambda scalars: body([scalars[1], scalars[0], scalars[2]])
