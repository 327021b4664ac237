"""Where buffers live: placed, aligned, disjoint while they are live, within the memories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir_npu.dialect.attributes import ACC, SPACES, SRAM, space_of
from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import target_of
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
from mlir_npu.passes.plan_scratchpad import MEMORY, bytes_of
from mlir_npu.passes.stage_rules import Violation


@dataclass(frozen=True)
class _Part:
    """The bytes of the scratchpad that stand for one memory of a kernel."""

    start: int
    bytes: int
    alignment: int


def memories_are_known(module: ir.Operation) -> Iterator[Violation]:
    for function in functions(module):
        for op in [function, *nested(function)]:
            blocks = [block for region in op.regions for block in region.blocks]
            arguments = [argument for block in blocks for argument in block.arguments]
            for value in [*op.results, *arguments]:
                if isinstance(value.type, ir.MemRefType) and space_of(value.type) not in SPACES:
                    memories = ", ".join(SPACES)
                    yield op, f"{value.type} is in none of the memories {memories}"


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
        views = [op for op in nested(function, "memref.view") if _offset(op) is not None]
        for space in dict.fromkeys(space_of(view.results[0].type) for view in views):
            own = [view for view in views if space_of(view.results[0].type) == space]
            requests = [_request(i, view, steps) for i, view in enumerate(own)]
            offsets = {r.name: _offset(view) for r, view in zip(requests, own)}
            capacity = max(view.operands[0].type.shape[0] for view in own)
            for fault in memory_plan.verify(requests, offsets, 1, capacity):
                yield function, f"{space} of '{symbol(function)}': {fault}"


def _request(number: int, view: ir.Operation, steps: Steps) -> memory_plan.Request:
    name = f"{number}: {view.results[0].type}"
    return memory_plan.Request(name, bytes_of(view), *steps.use(view))


def _offset(view: ir.Operation) -> int | None:
    constant = constant_of(view.operands[1])
    return None if constant is None else ir.IntegerAttr(constant).value


def scratch_fits(module: ir.Operation) -> Iterator[Violation]:
    """The parts for sram and acc: apart, within the memories, around all buffers of the kernel."""
    target = target_of(module)
    memories = {SRAM: target.sram, ACC: target.acc}
    for kernel in kernels(module):
        used = _used(kernel)
        if isinstance(used, str):
            yield kernel, used
            continue
        for space, memory in memories.items():
            needed = used[f"{space}_bytes"]
            if needed > memory.bytes and not (target.cached or is_untiled(kernel)):
                kind = string(kernel, KERNEL)
                yield kernel, f"{kind} kernel needs {needed} of {memory.bytes} bytes of {space}"
        if used["acc_bytes"] and used["acc_start"] < used["sram_bytes"]:
            start, end = used["acc_start"], used["sram_bytes"]
            yield kernel, f"acc starts at byte {start}, before the {end} bytes of sram end"
        starts = {SRAM: 0, ACC: used["acc_start"]}
        for view in nested(kernel, "memref.view"):
            space = space_of(view.results[0].type)
            if space in memories:
                size, alignment = used[f"{space}_bytes"], memories[space].alignment
                yield from _misplaced(view, space, _Part(starts[space], size, alignment))


def _used(kernel: ir.Operation) -> dict[str, int] | str:
    """What `npu.memory` of a kernel says, or what is wrong with it."""
    wanted = ("sram_bytes", "acc_bytes", "acc_start")
    attribute = kernel.attributes[MEMORY] if MEMORY in kernel.attributes else None
    given = {n.name: n.attr for n in attribute} if isinstance(attribute, ir.DictAttr) else {}
    for name in wanted:
        if not isinstance(given.get(name), ir.IntegerAttr) or given[name].value < 0:
            return f"kernel '{symbol(kernel)}' has no '{name}' of at least 0 in {MEMORY}"
    return {name: given[name].value for name in wanted}


def _misplaced(view: ir.Operation, space: str, part: _Part) -> Iterator[Violation]:
    offset, type_ = _offset(view), view.results[0].type
    if offset is None:
        yield view, f"{type_} has no constant offset"
        return
    first = offset - part.start
    last = first + bytes_of(view)
    if first < 0 or last > part.bytes:
        yield view, f"{type_} is at bytes {first} to {last} of the {part.bytes} bytes of {space}"
    if first % part.alignment:
        yield view, f"{type_} is at byte {first} of {space}, no multiple of {part.alignment}"
