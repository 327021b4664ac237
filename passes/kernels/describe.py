"""Read a kernel function on tensors into the plain `KernelShape` that tile choice works on."""
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir, linalg
from mlir_npu.passes.analysis.footprint import Access, Compute, KernelShape, Loop
from mlir_npu.passes.analysis.winograd_shape import winograd_shape
from mlir_npu.passes.kernels.walk import definition, entry, integers, nested, string, terminator

WINOGRAD = "winograd_conv2d"
MATRIX_OPS = {
    # npu.op: (loops of the input channels, of the output channels, whole, tiled by one)
    "conv2d": ((7,), (3, 4), (4,), ()),
    "grouped_conv2d": ((8,), (4, 5), (5,), (3,)),
    "matmul": ((3,), (1, 2), (2,), ()),
    WINOGRAD: ((11,), (5, 6), (2, 4, 6), ()),
}
# Operands that are no data of a tile: the window of a pool, the matrices of a transform.
NOT_STAGED = {
    "linalg.pooling_nhwc_max": (1,),
    "linalg.pooling_nhwc_sum": (1,),
    WINOGRAD: (2, 3, 4, 5),
}
WINDOWS = (
    "linalg.pooling_nhwc_max",
    "linalg.pooling_nhwc_sum",
    "linalg.depthwise_conv_2d_nhwc_hwc",
)


@dataclass(frozen=True)
class KernelOps:
    """The linalg operations of a kernel: fills of accumulators, the root, what follows it."""

    fills: tuple[ir.Operation, ...]
    root: ir.Operation
    epilogue: tuple[ir.Operation, ...]

    @property
    def last(self) -> ir.Operation:
        return self.epilogue[-1] if self.epilogue else self.root


def is_linalg(op: ir.Operation) -> bool:
    return op.name.startswith("linalg.") and op.name not in ("linalg.yield", "linalg.index")


def not_staged(op: ir.Operation) -> tuple[int, ...]:
    """Positions of the operands that no tile is moved for."""
    return NOT_STAGED.get(string(op, "npu.op") or op.name, ())


def kernel_ops(kernel: ir.Operation) -> KernelOps | None:
    """The operations of a kernel, None when it only moves data (slices, concatenations, pads)."""
    structured = [op.operation for op in entry(kernel).operations if is_linalg(op.operation)]
    returned = [definition(value) for value in terminator(entry(kernel)).operands]
    if not structured or any(op is None or op != structured[-1] for op in returned):
        return None
    rest = [op for op in structured if op.name != "linalg.fill"]
    if not rest:
        return KernelOps((), structured[-1], ())
    fills = tuple(op for op in structured if op.name == "linalg.fill")
    return KernelOps(fills, rest[0], tuple(rest[1:]))


def maps(op: ir.Operation) -> list[ir.AffineMap]:
    return [ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op)]


def output_count(op: ir.Operation) -> int:
    """Number of `outs` operands: on tensors one per result, on memrefs by the op's segments."""
    if len(op.results):
        return len(op.results)
    if "operandSegmentSizes" in op.attributes:
        return int(list(op.attributes["operandSegmentSizes"])[1])
    return 1


def loop_extents(op: ir.Operation) -> list[int]:
    """Extent of every loop of a linalg op, from the operand dimension that it alone indexes."""
    found: dict[int, int] = {}
    for value, map_ in zip(op.operands, maps(op)):
        for expression, extent in zip(map_.results, shape_of(value)):
            if isinstance(expression, ir.AffineDimExpr):
                found.setdefault(expression.position, extent)
    return [found[loop] for loop in range(maps(op)[0].n_dims)]


def made_by(value: ir.Value, operations) -> bool:
    """Whether one of `operations` makes `value`."""
    source = definition(value)
    return source is not None and source in operations


def shape_of(value: ir.Value) -> list[int]:
    return list(value.type.shape) if isinstance(value.type, ir.ShapedType) else []


def reduction_loops(op: ir.Operation) -> list[int]:
    """Loops that the outputs do not depend on."""
    outputs = maps(op)[len(op.operands) - output_count(op) :]
    used = {loop for map_ in outputs for e in map_.results for loop, _ in linear(e)}
    return [loop for loop in range(outputs[0].n_dims) if loop not in used]


def linear(expression: ir.AffineExpr) -> tuple[tuple[int, int], ...]:
    """(loop, coefficient) pairs of a linear expression; its constant does not move the extent."""
    if isinstance(expression, ir.AffineConstantExpr):
        return ()
    if isinstance(expression, ir.AffineDimExpr):
        return ((expression.position, 1),)
    if isinstance(expression, ir.AffineAddExpr):
        return linear(expression.lhs) + linear(expression.rhs)
    if isinstance(expression, ir.AffineMulExpr):
        factor = ir.AffineConstantExpr(expression.rhs).value
        return tuple((loop, coefficient * factor) for loop, coefficient in linear(expression.lhs))
    raise ValueError(f"indexing expression '{expression}' is not linear")


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
    accesses = () if ops.last.name == "linalg.transpose" else _accesses(ops, chain, loop_of)
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
            source = definition(value)
            image = None
            if source is not None and source.name == "tensor.pad":
                image = tuple(zip(integers(source, "static_low"), shape_of(source.operands[0])))
            key = (names[value], dims)
            found[key] = Access(
                names[value], dims, _bytes(value), image=image, extents=tuple(shape_of(value))
            )
        for result, map_ in zip(op.results, maps(op)[inputs:]):
            dims = _kernel_dims(map_, loop_of[op])
            name = f"result of {op.name}" if op == ops.last else f"intermediate of {op.name}"
            if reduction_loops(op):
                held = f"accumulator of {op.name}"
                found[("acc", name)] = Access(held, dims, _bytes(result), "acc", moved=False)
            if op == ops.last or not reduction_loops(op):
                is_last = op == ops.last
                found[("out", name, result.result_number)] = Access(
                    name, dims, _bytes(result), written=is_last, moved=is_last
                )
    return tuple(found.values())


def _value_names(chain) -> dict[ir.Value, str]:
    names: dict[ir.Value, str] = {}
    for op in chain:
        for value in op.operands:
            source = value
            while definition(source) is not None and definition(source).name == "tensor.pad":
                source = definition(source).operands[0]
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
