"""Give every on-chip buffer of a kernel an offset in its scratchpad, passed as the last argument.

Buffers whose lives do not meet share memory (`analysis/memory_plan.py`); the plan is checked by the
independent verifier and against the target's capacity, unless the scratchpad is a cache or the
kernel is untiled on purpose. Where it is a cache, what a compute op reads lives to its drain.
The sram part of the scratchpad comes first, the acc part behind it.
A kernel takes no more than it uses, whatever its neighbours use, so that it is the same kernel in
every network; callers have one block, of the largest size, and pass on its beginning. `npu.memory`
records the bytes that a kernel uses, and where its acc part starts. A view of acc at offset o is at
address o - acc_start of acc.

Before:
    func.func private @k(%x: memref<64xf32>) attributes {npu.kernel = "eltwise"} {
      %a = memref.alloc() : memref<64xf32, #npu.space<"sram">> ... }
After:
    func.func private @k(%x: memref<64xf32>, %scratch: memref<256xi8> {npu.role = "scratch"})
        attributes {npu.kernel = "eltwise", npu.memory = {
            acc_bytes = 0, acc_start = 256, sram_bytes = 256}} {
      %s = memref.memory_space_cast %scratch : memref<256xi8> to memref<256xi8, #npu.space<"sram">>
      %a = memref.view %s[%c0][] : ... to memref<64xf32, #npu.space<"sram">> ... }
"""

from dataclasses import dataclass
from math import prod

from mlir_npu.dialect.attributes import ACC, SRAM, space_of, with_space
from mlir_npu.dialect.bindings import arith, func, ir, memref
from mlir_npu.dialect.target import Memory, Target, target_of
from mlir_npu.passes.analysis import memory_plan
from mlir_npu.passes.choose_tiles import is_untiled
from mlir_npu.passes.kernels.liveness import Steps
from mlir_npu.passes.kernels.prerequisites import require_buffers
from mlir_npu.passes.kernels.walk import (
    add_argument,
    argument_roles,
    called,
    definition,
    entry,
    kernels,
    nested,
    string,
    symbol,
)
from mlir_npu.passes.microkernels.accumulator_group import COMPUTE, find_group
from mlir_npu.passes.microkernels.aliasing import whole_buffer
from mlir_npu.passes.registry import NoOptions, fail, register_pass

MEMORY = "npu.memory"
SCRATCH = "scratch"
BLOCK_ALIGNMENT = 64


@dataclass(frozen=True)
class _Placed:
    """The buffers of one memory of one kernel and their offsets."""

    allocations: tuple[ir.Operation, ...]
    offsets: tuple[int, ...]
    bytes: int


@register_pass("plan-scratchpad")
def plan_scratchpad(module: ir.Operation, options: NoOptions) -> None:
    require_buffers(module)
    todo = [kernel for kernel in kernels(module) if SCRATCH not in argument_roles(kernel)]
    if not todo:
        return
    target = target_of(module)
    plans = [_plan(kernel, target) for kernel in todo]
    for kernel, plan in zip(todo, plans):
        _place(kernel, plan)
    _pass_scratch(module, {symbol(kernel): _size(plan) for kernel, plan in zip(todo, plans)})


def _plan(kernel: ir.Operation, target: Target) -> dict[str, _Placed]:
    steps = Steps(kernel)
    memories = {SRAM: target.sram, ACC: target.acc}
    endless = target.cached or is_untiled(kernel)
    return {
        space: _plan_memory(kernel, space, memory, steps, endless, target.cached)
        for space, memory in memories.items()
    }


def _plan_memory(
    kernel: ir.Operation, space: str, memory: Memory, steps: Steps, endless: bool, cached: bool
) -> _Placed:
    found = [op for op in nested(kernel, "memref.alloc") if space_of(op.results[0].type) == space]
    for op in found:
        if steps.is_carried_on(op):
            fail(op, "a buffer of one iteration reaches the next; allocate it in front of the loop")
    drains = _fused_drains(kernel) if cached else {}
    requests = [
        memory_plan.Request(
            f"{i}: {op.results[0].type}", bytes_of(op), *steps.life(op, drains.get(op, ()))
        )
        for i, op in enumerate(found)
    ]
    try:
        plan = memory_plan.plan(requests, memory.alignment, None if endless else memory.bytes)
    except memory_plan.Overflow as error:
        kind = string(kernel, "npu.kernel")
        fail(kernel, f"{kind} kernel '{symbol(kernel)}': {space} {error}; use a smaller tile")
    faults = memory_plan.verify(requests, plan.offsets, memory.alignment, plan.bytes)
    if faults:
        fail(kernel, f"{space} plan of '{symbol(kernel)}' is wrong: {'; '.join(faults)}")
    offsets = tuple(plan.offsets[request.name] for request in requests)
    return _Placed(tuple(found), offsets, plan.bytes)


def _fused_drains(kernel: ir.Operation) -> dict[ir.Operation, list[ir.Operation]]:
    """The drains at which the code of a compute op will stand, by the buffers that it reads.

    On a cached target both are one loop nest, if the drain's output lies apart from these buffers.
    """
    found: dict[ir.Operation, list[ir.Operation]] = {}
    for compute in nested(kernel):
        if compute.name not in COMPUTE or (drain := find_group(compute).drain) is None:
            continue
        for value in list(compute.operands)[:-1]:
            if (made_by := definition(whole_buffer(value))) is not None:
                found.setdefault(made_by, []).append(drain)
    return found


def bytes_of(allocation: ir.Operation) -> int:
    type_ = ir.MemRefType(allocation.results[0].type)
    if not type_.has_static_shape:
        fail(allocation, f"a buffer must have a static shape, got {type_}")
    if not isinstance(type_.element_type, ir.IntegerType | ir.FloatType):
        fail(allocation, f"a buffer must hold integers or floats, got {type_}")
    return prod(type_.shape) * max(1, type_.element_type.width // 8)


def _acc_start(plan: dict[str, _Placed]) -> int:
    return memory_plan.align(plan[SRAM].bytes, BLOCK_ALIGNMENT)


def _size(plan: dict[str, _Placed]) -> int:
    return memory_plan.align(max(1, _acc_start(plan) + plan[ACC].bytes), BLOCK_ALIGNMENT)


def _place(kernel: ir.Operation, plan: dict[str, _Placed]) -> None:
    scratch = add_argument(kernel, _block(_size(plan)), SCRATCH)
    starts = {SRAM: 0, ACC: _acc_start(plan)}
    with ir.InsertionPoint.at_block_begin(entry(kernel)), kernel.location:
        views = []
        for space, placed in plan.items():
            if placed.allocations:
                in_space = memref.MemorySpaceCastOp(with_space(scratch.type, space), scratch)
                offsets = [starts[space] + offset for offset in placed.offsets]
                views += view_all(placed.allocations, in_space.result, offsets)
    replace_allocations([op for placed in plan.values() for op in placed.allocations], views)
    i64 = ir.IntegerType.get_signless(64)
    used = {f"{space}_bytes": plan[space].bytes for space in plan} | {"acc_start": starts[ACC]}
    entries = {name: ir.IntegerAttr.get(i64, value) for name, value in used.items()}
    kernel.attributes[MEMORY] = ir.DictAttr.get(entries)


def view_all(allocations, memory: ir.Value, offsets) -> list[ir.Value]:
    """Views of `memory` at byte offsets, of the types of buffers; built at the insertion point."""
    views = []
    for allocation, offset in zip(allocations, offsets):
        shift = arith.ConstantOp(ir.IndexType.get(), offset)
        type_ = allocation.results[0].type
        views.append(memref.ViewOp(type_, memory, shift, [], loc=allocation.location).result)
    return views


def replace_allocations(allocations, views) -> None:
    """Not while an insertion point stands at one of the allocations, which are erased."""
    for allocation, view in zip(allocations, views, strict=True):
        allocation.results[0].replace_all_uses_with(view)
        allocation.erase()


def _block(size: int) -> ir.MemRefType:
    return ir.MemRefType.get([size], ir.IntegerType.get_signless(8))


def _pass_scratch(module: ir.Operation, sizes: dict[str, int]) -> None:
    """Callers of the kernels, of these sizes, allocate the scratchpad once and pass it on."""
    largest = max(sizes.values())
    blocks: dict[ir.Block, ir.Value] = {}
    for call in nested(module, "func.call"):
        if called(call) not in sizes:
            continue
        top = entry(_function_of(call))
        if top not in blocks:
            blocks[top] = _allocate_scratch(top, largest, call.location)
        with ir.InsertionPoint(call), call.location:
            callee = ir.FlatSymbolRefAttr(call.attributes["callee"])
            scratch = _beginning(blocks[top], sizes[called(call)])
            func.CallOp([], callee, [*call.operands, scratch])
        call.erase()


def _beginning(block: ir.Value, size: int) -> ir.Value:
    if block.type == _block(size):
        return block
    return memref.ReinterpretCastOp(_block(size), block, [], [], [], [0], [size], [1]).result


def _function_of(op: ir.Operation) -> ir.Operation:
    while op.name != "func.func":
        op = op.parent.operation
    return op


def _allocate_scratch(block: ir.Block, size: int, location: ir.Location) -> ir.Value:
    with ir.InsertionPoint.at_block_begin(block), location:
        allocation = memref.AllocOp(_block(size), [], [], alignment=BLOCK_ALIGNMENT)
    allocation.operation.attributes["npu.role"] = ir.StringAttr.get(SCRATCH)
    return allocation.result
