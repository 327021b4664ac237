"""Read a kernel function on tensors into the plain `KernelShape` that tile choice works on."""

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.footprint import Access, Compute, KernelShape, Loop
from mlir_npu.passes.analysis.permutation import inverse
from mlir_npu.passes.analysis.winograd_shape import winograd_shape
from mlir_npu.passes.kernels.structured import (
    TRANSPOSE,
    WINOGRAD,
    KernelOps,
    kernel_ops,
    linear,
    loop_extents,
    made_by,
    maps,
    not_staged,
    output_count,
    reduction_loops,
    shape_of,
)
from mlir_npu.passes.kernels.walk import definition, integers, nested, string

MATRIX_OPS = {
    # npu.op: (loops of the input channels, of the output channels, whole, tiled by one)
    "conv2d": ((7,), (3, 4), (4,), ()),
    "grouped_conv2d": ((8,), (4, 5), (5,), (3,)),
    "matmul": ((3,), (1, 2), (2,), ()),
    "batch_matmul": ((4,), (2, 3), (3,), ()),
    "pointwise_conv2d": ((4,), (2, 3), (3,), (0,)),
    WINOGRAD: ((11,), (5, 6), (2, 4, 6), ()),
}
_MOVES = ("tensor.pad", TRANSPOSE)
WINDOWS = (
    "linalg.pooling_nhwc_max",
    "linalg.pooling_nhwc_sum",
    "linalg.depthwise_conv_2d_nhwc_hwc",
)


def describe(kernel: ir.Operation, lanes: int) -> KernelShape | None:
    """Loops and operands of a kernel: the loops of its last op, then the reductions of its root.

    None for kernels that only move data.
    """
    ops = kernel_ops(kernel)
    if ops is None:
        return None
    chain = (ops.root, *ops.epilogue)
    loops, loop_of = _number_loops(chain, ops.last)
    special = MATRIX_OPS.get(string(ops.root, "npu.op") or "")
    unit = _matrix_unit(special, ops.root, loop_of[ops.root]) if special else {}
    whole = {loop_of[ops.root].get(i) for i in special[2]} if special else set()
    forced = {loop_of[ops.root].get(i) for i in special[3]} if special else set()
    innermost = max((i for i, (_, reduction) in enumerate(loops) if not reduction), default=-1)
    described = tuple(
        Loop(
            f"d{i}",
            extent,
            reduction,
            granule=lanes if i == innermost else 1,
            forced=extent if i in whole else 1 if i in forced else None,
        )
        for i, (extent, reduction) in enumerate(loops)
    )
    accesses = () if ops.last.name == TRANSPOSE else _accesses(ops, chain, loop_of)
    shape = KernelShape(
        described,
        accesses,
        operations=max(1, sum(_body_size(op) for op in chain)),
        computes=_computes(chain, loop_of, special is not None),
        **unit,
    )
    if string(ops.root, "npu.op") == WINOGRAD:
        outputs = ir.IntegerAttr(ops.root.attributes["npu.outputs"]).value
        return winograd_shape(shape, loop_of[ops.root], outputs)
    return shape


def _computes(chain, loop_of, on_matrix_unit: bool) -> tuple[Compute, ...]:
    """What runs on a tile: one op per linalg op and output, and a drain where the last one adds."""
    found = []
    for op in chain:
        unit = "matrix" if on_matrix_unit and op == chain[0] else "vector"
        if op.name in WINDOWS:
            unit = "window"
        loops = tuple(sorted(loop_of[op].values()))
        found += [Compute(unit, loops, _body_size(op))] * output_count(op)
    last = chain[-1]
    if reduced := reduction_loops(last):
        kept = (loop for own, loop in loop_of[last].items() if own not in reduced)
        found.append(Compute("vector", tuple(sorted(kept)), 0))
    return tuple(found)


def _matrix_unit(special, root: ir.Operation, loop_of) -> dict:
    rows, columns = (
        tuple(sorted({loop_of[i] for i in loops if i in loop_of})) for loops in special[:2]
    )
    factor = ir.ShapedType(root.operands[0].type).element_type
    return {"unit": "matrix", "rows": rows, "columns": columns, "factor_type": str(factor)}


def _number_loops(chain, last):
    """Kernel loops as (extent, is reduction), and per op the kernel loop of each of its loops."""
    reductions = set(reduction_loops(last))
    loops = [(extent, i in reductions) for i, extent in enumerate(loop_extents(last))]
    loop_of = {last: {i: i for i in range(len(loops))}}
    for producer in reversed(chain[:-1]):
        loop_of[producer] = _through_consumer(producer, chain, loop_of)
        extents = loop_extents(producer)
        for reduction in reduction_loops(producer):
            loop_of[producer][reduction] = len(loops)
            loops.append((extents[reduction], True))
    return loops, loop_of


def _through_consumer(producer, chain, loop_of) -> dict[int, int]:
    """Kernel loops of a producer's own loops, read off the map by which a consumer reads it."""
    result_map = maps(producer)[len(producer.operands) - output_count(producer)]
    for consumer in chain:
        if consumer not in loop_of:
            continue
        for value, map_ in zip(consumer.operands, maps(consumer)):
            if not made_by(value, [producer]):
                continue
            pairs = zip(result_map.results, map_.results)
            return {
                own.position: loop_of[consumer][theirs.position]
                for own, theirs in pairs
                if isinstance(own, ir.AffineDimExpr) and isinstance(theirs, ir.AffineDimExpr)
            }
    return {}


def _accesses(ops: KernelOps, chain, loop_of) -> tuple[Access, ...]:
    """One access per distinct operand, intermediate result and output."""
    found: dict[tuple, Access] = {}
    names = _value_names(chain)
    for op in chain:
        inputs = len(op.operands) - output_count(op)
        for index, (value, map_) in enumerate(zip(op.operands, maps(op))):
            if index >= inputs or index in not_staged(op):
                continue
            if made_by(value, chain) or not isinstance(value.type, ir.ShapedType):
                continue
            dims = _kernel_dims(map_, loop_of[op])
            found[(names[value], dims)] = Access(
                names[value],
                dims,
                _bytes(value),
                image=_image(value),
                extents=tuple(shape_of(value)),
                order=_loaded_order(value),
            )
        for result, map_ in zip(op.results, maps(op)[inputs:]):
            dims = _kernel_dims(map_, loop_of[op])
            name = f"result of {op.name}" if op == ops.last else f"intermediate of {op.name}"
            if reduction_loops(op):
                held = f"accumulator of {op.name}"
                found[("acc", name)] = Access(held, dims, _bytes(result), "acc", moved=False)
            if op == ops.last or not reduction_loops(op):
                is_last = op == ops.last
                stored = is_last and ops.store is not None
                found[("out", name, result.result_number)] = Access(
                    name,
                    dims,
                    _bytes(result),
                    written=is_last,
                    moved=is_last,
                    order=integers(ops.store, "permutation") if stored else None,
                )
    return tuple(found.values())


def _image(value: ir.Value) -> tuple[tuple[int, int], ...] | None:
    """Per dimension of a padded operand: elements before its data, and extent of the data."""
    pad = definition(value)
    if pad is None or pad.name != "tensor.pad":
        return None
    return tuple(zip(integers(pad, "static_low"), shape_of(pad.operands[0])))


def _loaded_order(value: ir.Value) -> tuple[int, ...] | None:
    """The order of the dimensions of an operand in dram; None for its own."""
    source = definition(value)
    if source is not None and source.name == "tensor.pad":
        source = definition(source.operands[0])
    if source is None or source.name != TRANSPOSE:
        return None
    return inverse(integers(source, "permutation"))


def _value_names(chain) -> dict[ir.Value, str]:
    names: dict[ir.Value, str] = {}
    for op in chain:
        for value in op.operands:
            source = value
            while (moved := definition(source)) is not None and moved.name in _MOVES:
                source = moved.operands[0]
            if isinstance(source.owner, ir.Block):
                names[value] = f"argument {source.arg_number}"
            else:
                names.setdefault(value, f"constant {len(names)}")
    return names


def _kernel_dims(map_: ir.AffineMap, loop_of: dict[int, int]):
    return tuple(
        tuple((loop_of[loop], factor) for loop, factor in linear(e) if loop in loop_of)
        for e in map_.results
    )


def _bytes(value: ir.Value) -> int:
    return max(1, ir.ShapedType(value.type).element_type.width // 8)


def _body_size(op: ir.Operation) -> int:
    return len(nested(op)) - 1 if op.regions else 1
