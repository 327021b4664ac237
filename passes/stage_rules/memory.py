"""Where buffers live: placed, disjoint while they are live, within the memories."""

from __future__ import annotations

from collections.abc import Iterator

from mlir_npu.dialect.attributes import ACC, SRAM, space_of
from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import Target, target_of
from mlir_npu.passes.analysis import memory_plan
from mlir_npu.passes.choose_tiles import is_untiled
from mlir_npu.passes.kernels.liveness import Steps
from mlir_npu.passes.kernels.walk import (
    KERNEL,
    argument_roles,
    constant_of,
    functions,
    kernels,
    nested,
    string,
    symbol,
)
from mlir_npu.passes.stage_rules import Violation


def nothing_is_allocated(module: ir.Operation) -> Iterator[Violation]:
    for op in nested(module, "memref.alloc", "memref.alloca"):
        yield op, f"{op.results[0].type} has no place"


def memory_is_passed_last(module: ir.Operation) -> Iterator[Violation]:
    for function in functions(module):
        wanted = ["scratch"] if KERNEL in function.attributes else ["workspace", "scratch"]
        roles = argument_roles(function)
        if roles[-len(wanted) :] != wanted:
            yield function, f"'{symbol(function)}' must end with {wanted}, has {roles}"


def placed_buffers_are_disjoint(module: ir.Operation) -> Iterator[Violation]:
    """Read offsets and lives back from the IR and check them, per function and memory."""
    for function in functions(module):
        steps = Steps(function)
        views = nested(function, "memref.view")
        for space in {space_of(view.results[0].type) for view in views}:
            own = [view for view in views if space_of(view.results[0].type) == space]
            requests = [_request(i, view, steps) for i, view in enumerate(own)]
            offsets = {r.name: _offset(view) for r, view in zip(requests, own)}
            capacity = max(view.operands[0].type.shape[0] for view in own)
            for fault in memory_plan.verify(requests, offsets, 1, capacity):
                yield function, f"{space} of '{symbol(function)}': {fault}"


def _request(number: int, view: ir.Operation, steps: Steps) -> memory_plan.Request:
    type_ = ir.MemRefType(view.results[0].type)
    size = max(1, type_.element_type.width // 8)
    for extent in type_.shape:
        size *= extent
    first, last = steps.use(view)
    return memory_plan.Request(f"{number}: {type_}", size, first, last)


def _offset(view: ir.Operation) -> int:
    return ir.IntegerAttr(constant_of(view.operands[1])).value


def scratch_fits(module: ir.Operation) -> Iterator[Violation]:
    target: Target = target_of(module)
    for kernel in kernels(module):
        used = ir.DictAttr(kernel.attributes["npu.memory"])
        for space, memory in ((SRAM, target.sram), (ACC, target.acc)):
            needed = ir.IntegerAttr(used[f"{space}_bytes"]).value
            if needed > memory.bytes and not (target.cached or is_untiled(kernel)):
                kind = string(kernel, KERNEL)
                yield kernel, f"{kind} kernel needs {needed} of {memory.bytes} bytes of {space}"
