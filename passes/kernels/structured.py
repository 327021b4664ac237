"""Linalg operations of kernels: which there are, their maps, loops and operands."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir, linalg
from mlir_npu.passes.kernels.walk import definition, entry, string, terminator

WINOGRAD = "winograd_conv2d"
TRANSPOSE = "linalg.transpose"
# Operands that are no data of a tile: the window of a pool, the matrices of a transform.
NOT_STAGED = {
    "linalg.pooling_nhwc_max": (1,),
    "linalg.pooling_nhwc_sum": (1,),
    WINOGRAD: (2, 3, 4, 5),
}


@dataclass(frozen=True)
class KernelOps:
    """The linalg operations of a kernel: fills of accumulators, the root, what follows it.

    Transposes of operands and results are not among them: they are a part of moves. `store`: that
    of the result, or None.
    """

    fills: tuple[ir.Operation, ...]
    root: ir.Operation
    epilogue: tuple[ir.Operation, ...]
    store: ir.Operation | None = None

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
    structured = computed_ops([op.operation for op in entry(kernel).operations])
    returned = [definition(value) for value in terminator(entry(kernel)).operands]
    if not structured or not returned:
        return None
    store = returned[0] if returned[0] not in structured else None
    if store is not None and store.name == TRANSPOSE:
        returned[0] = definition(store.operands[0])
    if any(op is None or op != structured[-1] for op in returned):
        return None
    rest = [op for op in structured if op.name != "linalg.fill"]
    if not rest:
        return KernelOps((), structured[-1], (), store)
    fills = tuple(op for op in structured if op.name == "linalg.fill")
    return KernelOps(fills, rest[0], tuple(rest[1:]), store)


def computed_ops(operations) -> list[ir.Operation]:
    """The linalg operations that run on tiles: transposes only where there is nothing else."""
    structured = [op for op in operations if is_linalg(op)]
    return [op for op in structured if op.name != TRANSPOSE] or structured


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
