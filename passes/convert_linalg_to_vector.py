"""Turn linalg on buffers into loops over vectors.

For host parts, whose computations have no tile ops: elementwise generics, reductions, fills and
copies. The loops are those of the micro-kernels: in the memory order of the result, the innermost
loop in vectors of the target. A fill that starts a reduction becomes the initial value of its
accumulators. Generics whose body knows where it is, or reads other memory, stay.

Before:
    linalg.fill ins(%zero) outs(%s : memref<8xf32>)
    linalg.generic {sum over d1} ins(%x : memref<8x768xf32>) outs(%s)
After:
    scf.for %i = 0 to 8 {
      %p:4 = scf.for %j = 0 to 768 step 64 iter_args(...) { vector.load, arith.addf ... }
      memref.store %sum, %s[%i] }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import target_of
from mlir_npu.passes.analysis.loop_nest import Dim
from mlir_npu.passes.analysis.register_tile import VectorUnit
from mlir_npu.passes.kernels.walk import constant_of, nested, terminator
from mlir_npu.passes.microkernels.accumulation import Accumulation, apply_region
from mlir_npu.passes.microkernels.aliasing import root_of
from mlir_npu.passes.microkernels.binding import operand_maps
from mlir_npu.passes.microkernels.buffers import Operand, mapped_operand
from mlir_npu.passes.microkernels.elementwise import emit_over_output, fill_buffer, loop_extents
from mlir_npu.passes.microkernels.emit import shared_constants
from mlir_npu.passes.microkernels.lanewise import Elementwise
from mlir_npu.passes.microkernels.nest import Lane, Tile
from mlir_npu.passes.microkernels.reductions import emit_reduction
from mlir_npu.passes.registry import NoOptions, register_pass

GENERIC, FILL = "linalg.generic", "linalg.fill"
# Buffers that come from memory, at least with the next call: of 16 and of 24 MB it makes no
# difference that they are asked for early, smaller ones are slower then.
STREAMED_BYTES = 24 << 20
_BODY = ("arith.", "math.", "linalg.yield")


@register_pass("convert-linalg-to-vector")
def convert_linalg_to_vector(module: ir.Operation, options: NoOptions) -> None:
    generics = [op for op in nested(module, GENERIC) if _is_plain(op)]
    if not generics and not nested(module, FILL):
        return
    unit = target_of(module).vector
    streamed = _streamed(generics)
    for op in generics:
        _convert(op, unit, streamed)
    for op in nested(module, FILL):
        if (value := constant_of(op.operands[0])) is not None:
            _at(op, lambda op=op, value=value: fill_buffer(op.operands[1], value, unit))
            op.erase()


def _is_plain(op: ir.Operation) -> bool:
    """Whether the body is arithmetic, on elements that strides describe."""
    body = [view.operation for view in op.regions[0].blocks[0].operations]
    if not all(o.name.startswith(_BODY) and not len(o.regions) for o in body):
        return False
    shaped = all(isinstance(v.type, ir.MemRefType) and v.type.has_static_shape for v in op.operands)
    return shaped and all(0 not in v.type.shape for v in op.operands)


def _convert(op: ir.Operation, unit: VectorUnit, streamed: frozenset[ir.Value]) -> None:
    block = op.regions[0].blocks[0]
    outputs = len(terminator(block).operands)
    kinds = [str(kind) for kind in op.attributes["iterator_types"]]
    reads_output = any(
        any(True for _ in argument.uses) for argument in list(block.arguments)[-outputs:]
    )
    if all("parallel" in kind for kind in kinds) and not reads_output:
        _at(op, lambda: _emit_elementwise(op, outputs, unit))
    elif outputs == 1:
        start = _start(op)
        initial = constant_of(start.operands[0]) if start is not None else None
        early = [i for i, v in enumerate(op.operands) if root_of(v) in streamed]
        _at(op, lambda: _emit_reduction(op, kinds, initial, unit, early))
        if initial is not None:
            start.erase()
    else:
        return
    op.erase()


def _start(op: ir.Operation) -> ir.Operation | None:
    """The fill of the output, if it stands before `op` in its block and nothing between uses it."""
    output = op.operands[len(op.operands) - 1]
    before = []
    for view in op.block.operations:
        if view.operation == op:
            break
        before.append(view.operation)
    for earlier in reversed(before):
        if earlier.name == FILL and earlier.operands[1] == output:
            return earlier
        if earlier.regions or output in list(earlier.operands):
            return None
    return None


def _at(op: ir.Operation, emit) -> None:
    with ir.InsertionPoint(op), op.location, shared_constants():
        emit()


def _bound(op: ir.Operation) -> tuple[list[Operand], list[Dim]]:
    """Operands of a generic, and its loops with the strides of all operands."""
    maps = operand_maps(op)
    operands = [mapped_operand(v, m) for v, m in zip(op.operands, maps, strict=True)]
    extents = loop_extents(op, maps)
    dims = [Dim(e, tuple(o.strides[d] for o in operands)) for d, e in enumerate(extents)]
    return operands, dims


def _emit_elementwise(op: ir.Operation, outputs: int, unit: VectorUnit) -> None:
    block = op.regions[0].blocks[0]
    operands, dims = _bound(op)
    inputs = len(operands) - outputs

    def compute(values: list[ir.Value], width: int) -> Sequence[ir.Value]:
        return apply_region(block, values, width)

    places = tuple(range(inputs)), tuple(range(inputs, len(operands)))
    emit_over_output(operands, dims, Elementwise(*places, compute), unit)


def _emit_reduction(
    op: ir.Operation,
    kinds: Sequence[str],
    initial: ir.Attribute | None,
    unit: VectorUnit,
    streamed: Sequence[int],
) -> None:
    block = op.regions[0].blocks[0]
    operands, dims = _bound(op)
    last = len(operands) - 1

    def combine(tile: Tile, lane: Lane, value: ir.Value) -> ir.Value:
        inputs = [tile.load(i, lane.offsets[i], lane.width) for i in range(last)]
        return apply_region(block, [*inputs, value], lane.width)[0]

    parallel = [dim for dim, kind in zip(dims, kinds, strict=True) if "parallel" in kind]
    reduced = [dim for dim, kind in zip(dims, kinds, strict=True) if "parallel" not in kind]
    accumulation = Accumulation(initial, last, None)
    emit_reduction(operands, parallel, reduced, block, combine, accumulation, unit, streamed)


def _streamed(generics: Sequence[ir.Operation]) -> frozenset[ir.Value]:
    """Buffers that no cache holds, and that one computation reads, and once."""
    read = Counter(root_of(value) for op in generics for value in op.operands)
    return frozenset(root for root, count in read.items() if count == 1 and _is_large(root))


def _is_large(buffer: ir.Value) -> bool:
    type_ = ir.MemRefType(buffer.type)
    element = type_.element_type
    return type_.has_static_shape and prod(type_.shape) * element.width >= 8 * STREAMED_BYTES
