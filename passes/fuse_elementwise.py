"""Make one generic of a chain of elementwise generics, at the shape of what the chain follows.

A producer goes into its only user when it computes one element per iteration there, so that nothing
is computed twice. A chain behind a reshape moves in front of it. Five things stay apart: what
depends on parameters alone from what does not (it is computed once, ahead of the run), the epilogue
of a convolution from a reduction that follows it, a broadcast from a reduction of what it repeats,
bodies that ask for indices, and what together reads more tensors than an op of the npu dialect
takes.

Before:
    %c = linalg.matmul ins(%x, %w : 10x12, 12x20)
    %a = linalg.generic {add} ins(%c, %bias : 10x20, 20)
    %v = tensor.expand_shape %a : 10x20 into 2x5x20
    %g = linalg.generic {gelu} ins(%v : 2x5x20)
After:
    %c = linalg.matmul ins(%x, %w : 10x12, 12x20)
    %g = linalg.generic {add, gelu} ins(%c, %bias : 10x20, 20)
    %v = tensor.expand_shape %g : 10x20 into 2x5x20
"""

from mlir_npu.dialect.bindings import arith, ir
from mlir_npu.dialect.slots import MAX_INPUTS
from mlir_npu.passes.kernels.walk import entry, users
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.dependence import is_prepared
from mlir_npu.passes.rewriting.elementwise import read_elementwise
from mlir_npu.passes.rewriting.epilogues import follow_producer, followed_producer, settle
from mlir_npu.passes.rewriting.functions import region_functions
from mlir_npu.passes.rewriting.generics import (
    GENERIC,
    Access,
    Generic,
    body_of,
    build_generic,
    reach_all,
    read_generic,
)
from mlir_npu.passes.rewriting.values import before, defined_by, erase_unused, replace


@register_pass("fuse-elementwise")
def fuse_elementwise(module: ir.Operation, options: NoOptions) -> None:
    for function in region_functions(module):
        _fold_casts_of_constants(function)
        block = entry(function)
        for view in list(block.operations):
            if view.operation.name == GENERIC:
                _fuse_into(follow_producer(settle(view.operation)))
        erase_unused(block)


def _fold_casts_of_constants(function: ir.Operation) -> None:
    """Round f64 constants now; torch-mlir keeps Python numbers in f64 until their use."""
    casts: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "arith.truncf" and isinstance(op.operands[0].type, ir.F64Type):
            casts.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    for op in casts:
        constant = defined_by(op.operands[0], "arith.constant")
        if constant is None:
            continue
        with before(op):
            value = ir.FloatAttr(constant.attributes["value"]).value
            rounded = ir.FloatAttr.get(op.results[0].type, value)
            replace(op, [arith.ConstantOp(op.results[0].type, rounded).result])


def _fuse_into(op: ir.Operation) -> None:
    """Fuse producers into `op` until none is left that may be."""
    while (consumer := read_generic(op)) is not None:
        producer = next(
            filter(None, (_producer(consumer, value) for value in consumer.inputs)), None
        )
        if producer is None:
            return
        with before(op):
            fused = _fused(consumer, producer)
        replace(op, list(fused.results))
        producer.op.erase()
        op = follow_producer(fused)


def _producer(consumer: Generic, value: ir.Value) -> Generic | None:
    """The elementwise generic that makes `value`, if it may be fused into `consumer`."""
    made_by = defined_by(value, GENERIC)
    if made_by is None or len(made_by.results) != 1 or users(value) != [consumer.op]:
        return None
    producer = read_elementwise(made_by)
    if producer is None:
        return None
    pairs = zip(consumer.inputs, consumer.accesses, strict=True)
    if not all(consumer.is_whole(access) for used, access in pairs if used == value):
        return None
    if value in consumer.inits:
        return None
    if is_prepared(value) and not is_prepared(consumer.op.results[0]):
        return None
    if _is_other_epilogue(producer, consumer):
        return None
    operands = _operands(consumer, producer)
    if len(operands) > MAX_INPUTS:
        return None
    accesses = [*consumer.output_accesses, *(access for _, access in operands)]
    return producer if reach_all(accesses, consumer.loops) else None


def _operands(consumer: Generic, producer: Generic) -> list[tuple[ir.Value, Access]]:
    """What the two read together."""
    made = producer.op.results[0]
    own = list(zip(producer.inputs, producer.accesses, strict=True))
    used = zip(consumer.inputs, consumer.accesses, strict=True)
    return own + [pair for pair in used if pair[0] != made and pair not in own]


def _is_other_epilogue(producer: Generic, consumer: Generic) -> bool:
    """Whether `producer` ends a kernel that `consumer` cannot be in.

    A reduction is a root itself, and of several roots a chain ends the kernel of one.
    """
    own = followed_producer(producer)
    if own is None or own.root is None or consumer.reductions:
        return own is not None and own.root is not None
    other = followed_producer(consumer, besides=producer.op.results)
    return other is not None and other.outranks(own)


def _fused(consumer: Generic, producer: Generic) -> ir.Operation:
    made = producer.op.results[0]
    others = [
        (value, access)
        for value, access in zip(consumer.inputs, consumer.accesses, strict=True)
        if value != made
    ]
    first, second = body_of(producer.op), body_of(consumer.op)
    count = len(producer.inputs)

    def body(scalars: list[ir.Value]) -> list[ir.Value]:
        # The producer does not read what its result held: any scalar stands in for it.
        intermediate = first([*scalars[:count], scalars[-1]])[0]
        rest = iter(scalars[count:])
        return second(
            [intermediate if value == made else next(rest) for value in consumer.inputs]
            + list(rest)
        )

    return build_generic(
        [*producer.inputs, *(value for value, _ in others)],
        [*producer.accesses, *(access for _, access in others)],
        consumer.inits,
        consumer.output_accesses,
        consumer.reductions,
        consumer.loops,
        body,
    )
