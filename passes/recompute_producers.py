"""Compute cheap values again in front of each of their users instead of keeping them.

A value with several users is written once and read by each of them. Where it is a conversion, a sum
or a difference of no more bytes than it has itself, as in a normalisation of halves, memory costs
more than the arithmetic: its producer goes into every user. Products stay, since each user could
contract them with another addition.

Before:
    %f = linalg.generic ins(%x : tensor<8x768xbf16>) { extf x }
    %s = linalg.generic {sum over d1} ins(%f : tensor<8x768xf32>)
    %d = linalg.generic ins(%f, %s : tensor<8x768xf32>, tensor<8xf32>) { f - s }
After:
    %s = linalg.generic {sum over d1} ins(%x : tensor<8x768xbf16>) { extf x }
    %d = linalg.generic ins(%x, %s : tensor<8x768xbf16>, tensor<8xf32>) { extf x - s }
"""

from __future__ import annotations

from math import prod

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import users
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.elementwise import read_elementwise
from mlir_npu.passes.rewriting.functions import region_blocks
from mlir_npu.passes.rewriting.generics import (
    Access,
    Generic,
    body_of,
    build_generic,
    reach_all,
    read_generic,
)
from mlir_npu.passes.rewriting.values import before, element_type, erase_unused, replace, shape_of

# One instruction each, rounded the same wherever they are.
_CHEAP = frozenset(
    f"arith.{name}"
    for name in ("addf", "subf", "negf", "extf", "sitofp", "uitofp", "extsi", "extui")
)
# Operations, and operands beside the first one, that cost less than a store and a load.
MOST_WORK = 3
# An operand is small that has at most this part of the elements of the value.
SMALL = 16


@register_pass("recompute-producers")
def recompute_producers(module: ir.Operation, options: NoOptions) -> None:
    for block in region_blocks(module):
        for position in range(len(list(block.operations))):
            # users are replaced where they are, so that positions stay
            producer = read_elementwise(block.operations[position].operation)
            if producer is not None and _is_cheap(producer):
                _move_into_users(producer)
        erase_unused(block)


def _is_cheap(producer: Generic) -> bool:
    if len(producer.op.results) != 1:
        return False
    *body, _ = producer.op.regions[0].blocks[0].operations
    work = len(body) + len(producer.inputs) - 1
    if work > MOST_WORK or not all(op.operation.name in _CHEAP for op in body):
        return False
    result = producer.op.results[0]
    large = [v for v in producer.inputs if _elements(v) * SMALL > _elements(result)]
    return bool(large) and sum(map(_bytes, large)) <= _bytes(result)


def _elements(value: ir.Value) -> int:
    return prod(shape_of(value)) if isinstance(value.type, ir.ShapedType) else 1


def _bytes(value: ir.Value) -> int:
    """Of one element."""
    return max(1, element_type(value).width // 8)


def _move_into_users(producer: Generic) -> None:
    (value,) = producer.op.results
    consumers = users(value)
    if not all(_can_join(producer, read_generic(op)) for op in consumers):
        return
    for op in consumers:
        with before(op):
            # read again: it may use results of one that was replaced
            replace(op, list(_joined(producer, read_generic(op)).results))


def _can_join(producer: Generic, consumer: Generic | None) -> bool:
    """Whether the consumer only reads the value, and its loops end without it."""
    if consumer is None or producer.op.results[0] in consumer.inits:
        return False
    _, accesses = _operands(producer, consumer)
    return reach_all([*accesses, *consumer.output_accesses], consumer.loops)


def _operands(producer: Generic, consumer: Generic) -> tuple[list[ir.Value], list[Access]]:
    """What the consumer reads, and for each of its reads of the value what the producer does."""
    made = producer.op.results[0]
    inputs: list[ir.Value] = []
    accesses: list[Access] = []
    for value, access in zip(consumer.inputs, consumer.accesses, strict=True):
        if value != made:
            inputs.append(value)
            accesses.append(access)
            continue
        inputs += producer.inputs
        accesses += [
            tuple(None if loop is None else access[loop] for loop in own)
            for own in producer.accesses
        ]
    return inputs, accesses


def _joined(producer: Generic, consumer: Generic) -> ir.Operation:
    """The consumer with the body of the producer in front of its own, for each of its reads."""
    made = producer.op.results[0]
    first, second = body_of(producer.op), body_of(consumer.op)
    inputs, accesses = _operands(producer, consumer)

    def body(scalars: list[ir.Value]) -> list[ir.Value]:
        rest = iter(scalars)
        arguments = []
        for value in consumer.inputs:
            if value != made:
                arguments.append(next(rest))
                continue
            read = [next(rest) for _ in producer.inputs]
            # the producer does not read what its result held: any scalar stands in for it
            arguments += first([*read, read[0]])
        return second([*arguments, *rest])

    return build_generic(
        inputs,
        accesses,
        consumer.inits,
        consumer.output_accesses,
        consumer.reductions,
        consumer.loops,
        body,
    )
