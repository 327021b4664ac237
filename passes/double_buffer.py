"""Overlap moves with compute: tiles of loops get two buffers that take turns.

Where the kernel's schedule says `buffers = 2`, a load is started one iteration ahead and waited for
where its tile is needed; a store is waited for where its buffer is made again, two iterations
later. With `acc_buffers = 2` an accumulator is drained while the next one fills. Iterations are
numbered across nested loops, so the first tile of an inner loop is fetched during the last
iteration before it. Tokens travel as iteration arguments, and the code of an iteration exists once,
for any number of iterations.

Targets whose sram is a cache of dram are left alone: their moves are left out, not overlapped.
A tile keeps one buffer if something else writes it, if it carries a value from one iteration to the
next, if its loops carry values that are no tokens, if a loop around it has `npu.single_buffer`, or
if two do not fit; the reason is left on its allocation as `npu.single_buffer`.

Before:
    scf.for %i = %c0 to %c4 step %c1 {
      %x = memref.alloc();  %t = "npu.dma_start"(%box_i, %x);  "npu.dma_wait"(%t)
      %o = memref.alloc();  compute %x, %o
      %s = "npu.dma_start"(%o, %out_i);  "npu.dma_wait"(%s) }
After:
    %t0 = "npu.dma_start"(%box_0, %x0);  %none0 = "npu.dma_none"();  %none1 = "npu.dma_none"()
    %last:3 = scf.for %i = %c0 to %c4 step %c1
        iter_args(%t = %t0, %s2 = %none0, %s1 = %none1) {
      %x = arith.select %odd, %x1, %x0;  %next = arith.select %odd, %x0, %x1
      "npu.dma_wait"(%t)
      %u = scf.if %more { yield "npu.dma_start"(%box_i+1, %next) } else { yield "npu.dma_none"() }
      "npu.dma_wait"(%s2);  %o = arith.select %odd, %o1, %o0;  compute %x, %o
      %s = "npu.dma_start"(%o, %out_i)
      scf.yield %u, %s1, %s }
    "npu.dma_wait"(%last#0);  "npu.dma_wait"(%last#1, %last#2)
"""

from __future__ import annotations

from collections.abc import Callable

from mlir_npu.dialect.attributes import ACC, DRAM, SRAM, space_of
from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import Target, target_of
from mlir_npu.passes.analysis.memory_plan import align
from mlir_npu.passes.kernels.schedule import read_schedule
from mlir_npu.passes.kernels.walk import definition, kernels, nested, symbol
from mlir_npu.passes.pipelining.rotate import (
    SINGLE,
    rotate_accumulator,
    rotate_load,
    rotate_store,
)
from mlir_npu.passes.plan_scratchpad import bytes_of
from mlir_npu.passes.registry import NoOptions, fail, register_pass


@register_pass("double-buffer")
def double_buffer(module: ir.Operation, options: NoOptions) -> None:
    for kernel in kernels(module):
        schedule = read_schedule(kernel)
        if schedule.buffers == 1 or (target := target_of(module)).cached:
            continue
        if schedule.order is not None and nested(kernel, "scf.forall"):
            fail(kernel, f"tiles of '{symbol(kernel)}' have no order yet; run order-tiles first")
        for move in nested(kernel, "npu.dma_start"):
            _rotate_move(move, kernel, target)
        for allocation in nested(kernel, "memref.alloc") if schedule.acc_buffers > 1 else ():
            if space_of(allocation.results[0].type) == ACC:
                _rotate(allocation, allocation, rotate_accumulator, kernel, target)


def _rotate_move(move: ir.Operation, kernel: ir.Operation, target: Target) -> None:
    ends = tuple(space_of(move.operands[i].type) for i in (0, 1))
    rotations = {(DRAM, SRAM): (1, rotate_load), (SRAM, DRAM): (0, rotate_store)}
    if ends not in rotations:
        return
    tile, rotation = rotations[ends]
    allocation = definition(move.operands[tile])
    if allocation is None or allocation.name != "memref.alloc":
        return
    _rotate(move, allocation, rotation, kernel, target)


def _rotate(
    op: ir.Operation,
    allocation: ir.Operation,
    rotation: Callable[[ir.Operation], str | None],
    kernel: ir.Operation,
    target: Target,
) -> None:
    """Rotate a tile once, or leave the reason on its allocation."""
    if SINGLE in allocation.attributes or allocation.parent.operation == kernel:
        return
    reason = _too_large(allocation, kernel, target) or rotation(op)
    if reason is not None:
        allocation.attributes[SINGLE] = ir.StringAttr.get(reason)


def _too_large(allocation: ir.Operation, kernel: ir.Operation, target: Target) -> str | None:
    """Whether one more buffer exceeds the memory, if nothing shared any of it."""
    space = space_of(allocation.results[0].type)
    memory = target.acc if space == ACC else target.sram
    own = [op for op in nested(kernel, "memref.alloc") if space_of(op.results[0].type) == space]
    needed = sum(align(bytes_of(op), memory.alignment) for op in [*own, allocation])
    if needed <= memory.bytes:
        return None
    return f"two buffers need {needed} of {memory.bytes} bytes of {space}"
