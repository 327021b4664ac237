"""Replace the linalg ops of kernels by npu ops on tiles in sram and acc.

Contractions and pools become their op; a generic with reductions becomes npu.reduce, an
all-parallel one npu.drain if it reads acc and npu.eltwise otherwise; a fill becomes npu.fill, a
copy out of acc a drain that changes nothing. A grouped convolution works on one group per tile and
becomes a conv2d of views without the group dimension, a Winograd convolution the transform of its
image, a batch of products and the transform of these. Nothing linalg is left in a kernel, else an
error says what.

Before:
    linalg.generic {npu.op = "conv2d", npu.strides = ..., npu.dilations = ...}
        ins(%x, %w : sram, sram) outs(%a : acc)
    linalg.generic ins(%a, %shift : acc, sram) outs(%o : sram)
After:
    "npu.conv2d"(%x, %w, %a) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    "npu.drain"(%a, %shift, %o) ({ ^bb0(%v: f32, %s: f32, %old: f32): ... })
"""

from mlir_npu.dialect import compute, movement, vector_unit
from mlir_npu.dialect.attributes import ACC, space_of
from mlir_npu.dialect.bindings import ir, linalg
from mlir_npu.passes.kernels.pads import filled_value
from mlir_npu.passes.kernels.prerequisites import require_buffers
from mlir_npu.passes.kernels.structured import is_linalg, output_count, reduction_loops
from mlir_npu.passes.kernels.views import permuted_view, without
from mlir_npu.passes.kernels.walk import integers, kernels, nested, string, terminator, users
from mlir_npu.passes.kernels.winograd import expand_winograd
from mlir_npu.passes.registry import NoOptions, fail, register_pass

POOLS = {"linalg.pooling_nhwc_max": "max", "linalg.pooling_nhwc_sum": "sum"}
IMAGE_DIM, GROUP_DIM = 0, 3


@register_pass("convert-linalg-to-npu")
def convert_linalg_to_npu(module: ir.Operation, options: NoOptions) -> None:
    require_buffers(module)
    for kernel in kernels(module):
        for op in nested(kernel):
            if is_linalg(op) or op.name == "memref.copy":
                with ir.InsertionPoint(op), op.location:
                    _converter(op)(op)
                op.erase()
        for op in nested(kernel, "memref.alloc"):
            if not users(op.results[0]):
                op.erase()


def _converter(op: ir.Operation):
    if op.name == "memref.copy":
        return _drain_unchanged
    if op.name in ("linalg.fill", "linalg.map"):
        return _fill
    if op.name in POOLS:
        return _pool
    if op.name == "linalg.depthwise_conv_2d_nhwc_hwc":
        return _depthwise
    if op.name == "linalg.broadcast":
        return _elementwise
    if op.name != "linalg.generic":
        fail(op, f"'{op.name}' has no npu op; generalise it before")
    by_kind = {
        "conv2d": _conv,
        "grouped_conv2d": _grouped_conv,
        "matmul": _matmul,
        "batch_matmul": _batch_matmul,
        "pointwise_conv2d": _pointwise_conv,
        "winograd_conv2d": expand_winograd,
    }
    kind = string(op, "npu.op")
    if kind is not None:
        return by_kind[kind] if kind in by_kind else fail(op, f"unknown npu.op '{kind}'")
    return _reduce if reduction_loops(op) else _elementwise


def _array(values) -> ir.Attribute:
    return ir.DenseI64ArrayAttr.get(list(values))


def _fill(op: ir.Operation) -> None:
    value = filled_value(op)
    if value is None:
        fail(op, f"'{op.name}' must write a constant")
    movement.FillOp(list(op.operands)[-1], value)


def _conv(op: ir.Operation) -> None:
    strides, dilations = integers(op, "npu.strides"), integers(op, "npu.dilations")
    compute.Conv2DOp(*op.operands, _array(strides), _array(dilations))


def _grouped_conv(op: ir.Operation) -> None:
    strides, dilations = integers(op, "npu.strides"), integers(op, "npu.dilations")
    image, weights, accumulator = op.operands
    operands = (
        _without(image, GROUP_DIM, op),
        _without(weights, 0, op),
        _without(accumulator, GROUP_DIM, op),
    )
    compute.Conv2DOp(*operands, _array(strides), _array(dilations))


def _without(value: ir.Value, dim: int, op: ir.Operation) -> ir.Value:
    """A view of a dense buffer without its dimension `dim` of extent 1."""
    extent = value.type.shape[dim]
    if extent != 1:
        kind = string(op, "npu.op")
        fail(op, f"a tile of a {kind} must have extent 1 along dimension {dim}, got {extent}")
    return without(value, dim)


def _matmul(op: ir.Operation) -> None:
    compute.MatmulOp(*op.operands)


def _batch_matmul(op: ir.Operation) -> None:
    """Column blocks are a dimension of their own, in front of the depth."""
    lhs, rhs, accumulator = op.operands
    compute.BatchMatmulOp(lhs, permuted_view(rhs, (0, 2, 1, 3)), accumulator)


def _pointwise_conv(op: ir.Operation) -> None:
    """One image of a tile: rows of pixels are the column blocks of a matrix product."""
    weights, image, accumulator = op.operands
    planes = _without(image, IMAGE_DIM, op)
    rows = permuted_view(planes, (1, 0, 2))
    compute.MatmulOp(weights, rows, _without(accumulator, IMAGE_DIM, op))


def _depthwise(op: ir.Operation) -> None:
    strides, dilations = integers(op, "strides"), integers(op, "dilations")
    compute.DepthwiseConv2DOp(*op.operands, _array(strides), _array(dilations))


def _pool(op: ir.Operation) -> None:
    image, window, accumulator = op.operands
    compute.Pool2DOp(
        image,
        accumulator,
        ir.StringAttr.get(POOLS[op.name]),
        _array(window.type.shape),
        _array(integers(op, "strides")),
        _array(integers(op, "dilations")),
    )


def _reduce(op: ir.Operation) -> None:
    if output_count(op) != 1:
        fail(op, f"a reduction with {output_count(op)} results has no npu op")
    kinds = ["reduction" if i in reduction_loops(op) else "parallel" for i in range(_loops(op))]
    iterators = ir.ArrayAttr.get([ir.StringAttr.get(kind) for kind in kinds])
    *inputs, output = op.operands
    new = vector_unit.ReduceOp(inputs, output, linalg.get_indexing_maps(op), iterators)
    _clone_body(op, new, range(len(op.operands)), 0)


def _loops(op: ir.Operation) -> int:
    return ir.AffineMapAttr(linalg.get_indexing_maps(op)[0]).value.n_dims


def _elementwise(op: ir.Operation) -> None:
    """One eltwise or drain per output; outputs are buffers of their own, so none reads another."""
    first_output = len(op.operands) - output_count(op)
    maps = list(linalg.get_indexing_maps(op))
    for number in range(output_count(op)):
        if _reads(op, first_output + number):
            fail(op, f"'{op.name}' reads the output that it overwrites")
        order = [*range(first_output), first_output + number]
        in_acc = [i for i in order[:-1] if space_of(op.operands[i].type) == ACC]
        if len(in_acc) > 1:
            fail(op, f"'{op.name}' reads {len(in_acc)} accumulators; a drain reads one")
        order = in_acc + [i for i in order if i not in in_acc]
        operands = [op.operands[i] for i in order]
        ordered = ir.ArrayAttr.get([maps[i] for i in order])
        if in_acc:
            new = vector_unit.DrainOp(operands[0], operands[1:-1], operands[-1], ordered)
        else:
            new = vector_unit.EltwiseOp(operands[:-1], operands[-1], ordered)
        _clone_body(op, new, order, number)


def _reads(op: ir.Operation, index: int) -> bool:
    return op.name == "linalg.generic" and bool(users(op.regions[0].blocks[0].arguments[index]))


def _clone_body(op: ir.Operation, new: ir.OpView, order, result: int) -> None:
    """Copy the scalar code of `op`; operand i of `new` is operand order[i] of `op`."""
    old = op.regions[0].blocks[0]
    block = new.body.blocks.append(
        *[op.operands[i].type.element_type for i in order],
        arg_locs=[op.location] * len(order),
    )
    values = {old.arguments[i]: block.arguments[n] for n, i in enumerate(order)}
    with ir.InsertionPoint(block):
        for inner in [child.operation for child in old.operations][:-1]:
            copy = inner.clone()
            for position, operand in enumerate(inner.operands):
                copy.operands[position] = values.get(operand, operand)
            values.update(zip(inner.results, copy.results))
        yielded = terminator(old).operands[result]
        vector_unit.YieldOp([values.get(yielded, yielded)])


def _drain_unchanged(op: ir.Operation) -> None:
    source, target = op.operands
    rank = source.type.rank
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
    new = vector_unit.DrainOp(source, [], target, ir.ArrayAttr.get([identity, identity]))
    element = source.type.element_type
    block = new.body.blocks.append(element, element, arg_locs=[op.location] * 2)
    with ir.InsertionPoint(block):
        vector_unit.YieldOp([block.arguments[0]])
