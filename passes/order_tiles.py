"""Turn the tile loop of a kernel into nested loops in the order that its schedule gives.

`order` of `npu.schedule` lists the parallel loops of the kernel, outermost first. It decides what
is moved again and again, and what stays: `hoist-invariant-dma` loads a tile that does not depend on
the inner loops only once per outer iteration. A kernel without an order keeps its `scf.forall`.

Before:
    scf.forall (%y, %k) in (7, 4) { body }        // npu.schedule = {order = array<i64: 0, 3, 1, 2>}
After:
    scf.for %k = %c0 to %c4 step %c1 {
      scf.for %y = %c0 to %c7 step %c1 { body } }
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir_npu.dialect.bindings import ir, scf
from mlir_npu.passes.kernels.schedule import Schedule, read_schedule
from mlir_npu.passes.kernels.walk import entry, integers, kernels, nested, terminator
from mlir_npu.passes.pipelining.loop_chain import index
from mlir_npu.passes.pipelining.rotate import SINGLE
from mlir_npu.passes.registry import NoOptions, fail, register_pass


@register_pass("order-tiles")
def order_tiles(module: ir.Operation, options: NoOptions) -> None:
    for kernel in kernels(module):
        schedule = read_schedule(kernel)
        if schedule.order is None:
            continue
        for loop in [op.operation for op in entry(kernel).operations]:
            if loop.name == "scf.forall":
                _nest(loop, _order_of_counters(schedule, loop))


def _order_of_counters(schedule: Schedule, loop: ir.Operation) -> list[int]:
    """The counters of the loop, outermost first; it has one for every loop that is tiled."""
    tiled = [i for i, size in enumerate(schedule.tile) if size]
    trips = integers(loop, "staticUpperBound")
    if len(tiled) != len(trips):
        fail(loop, f"has {len(trips)} counters, its schedule tiles {len(tiled)} loops")
    if any(SINGLE in op.attributes for op in nested(loop, "memref.alloc")):
        fail(loop, "double-buffer has already passed over these tiles; run order-tiles before it")
    return [tiled.index(i) for i in schedule.order if i in tiled]


def _nest(loop: ir.Operation, order: Sequence[int]) -> None:
    low, high, step = (
        integers(loop, name) for name in ("staticLowerBound", "staticUpperBound", "staticStep")
    )
    if len(loop.operands) or any(low) or any(by != 1 for by in step):
        fail(loop, f"tile loops must count from 0 in steps of 1, got {low} to {high} by {step}")
    body = loop.regions[0].blocks[0]
    place = ir.InsertionPoint(loop)
    for counter in order:
        with place, loop.location:
            nested = scf.ForOp(index(0), index(high[counter]), index(1))
        body.arguments[counter].replace_all_uses_with(nested.induction_variable)
        with ir.InsertionPoint(nested.body), loop.location:
            end = scf.YieldOp([])
        place = ir.InsertionPoint(end)
    in_parallel = terminator(body)
    for op in [child.operation for child in body.operations]:
        if op != in_parallel:
            op.move_before(end.operation)
    loop.erase()
