"""Give the intermediate tensors of a region offsets in one workspace that the caller owns.

Every function that is not a kernel gets two last arguments: `%workspace`, which holds its
intermediates (those that are never live together share memory), and `%scratch`, the scratchpad
that it passes to its kernels. Both always exist, 64 bytes long when nothing needs them.

Before:
    func.func @main(%x: memref<256xf32>, %out: memref<256xf32>) {
      %scratch = memref.alloc() {npu.role = "scratch"} : memref<512xi8>
      %a = memref.alloc() : memref<256xf32>
      call @k(%x, %a, %scratch);  call @k(%a, %out, %scratch) }
After:
    func.func @main(%x, %out, %workspace: memref<1024xi8> {npu.role = "workspace"},
                    %scratch: memref<512xi8> {npu.role = "scratch"}) {
      %a = memref.view %workspace[%c0][] : memref<1024xi8> to memref<256xf32>
      call @k(%x, %a, %scratch);  call @k(%a, %out, %scratch) }
"""

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis import memory_plan
from mlir_npu.passes.kernels.liveness import Steps
from mlir_npu.passes.kernels.walk import (
    KERNEL,
    ROLE,
    add_argument,
    argument_roles,
    entry,
    functions,
    nested,
    symbol,
)
from mlir_npu.passes.plan_scratchpad import SCRATCH, bytes_of, replace_allocations, view_all
from mlir_npu.passes.registry import NoOptions, fail, register_pass

WORKSPACE = "workspace"
ALIGNMENT = 64


@register_pass("plan-workspace")
def plan_workspace(module: ir.Operation, options: NoOptions) -> None:
    for function in functions(module):
        if KERNEL in function.attributes or WORKSPACE in argument_roles(function):
            continue
        found = nested(function, "memref.alloc")
        scratch = [op for op in found if ROLE in op.attributes]
        _place(function, [op for op in found if ROLE not in op.attributes])
        _take_scratch(function, scratch)


def _place(function: ir.Operation, allocations: list[ir.Operation]) -> None:
    steps = Steps(function)
    requests = [
        memory_plan.Request(f"{i}: {op.results[0].type}", bytes_of(op), *steps.life(op))
        for i, op in enumerate(allocations)
    ]
    plan = memory_plan.plan(requests, ALIGNMENT)
    faults = memory_plan.verify(requests, plan.offsets, ALIGNMENT, plan.bytes)
    if faults:
        fail(function, f"workspace plan of '{symbol(function)}' is wrong: {'; '.join(faults)}")
    size = memory_plan.align(max(1, plan.bytes), ALIGNMENT)
    workspace = add_argument(function, _bytes_type(size), WORKSPACE)
    with ir.InsertionPoint.at_block_begin(entry(function)), function.location:
        views = view_all(allocations, workspace, [plan.offsets[r.name] for r in requests])
    replace_allocations(allocations, views)


def _bytes_type(size: int) -> ir.Type:
    return ir.MemRefType.get([size], ir.IntegerType.get_signless(8))


def _take_scratch(function: ir.Operation, allocations: list[ir.Operation]) -> None:
    """Replace the allocation of the scratchpad, if there is one, by the last argument."""
    type_ = allocations[0].results[0].type if allocations else _bytes_type(ALIGNMENT)
    scratch = add_argument(function, type_, SCRATCH)
    for op in allocations:
        op.results[0].replace_all_uses_with(scratch)
        op.erase()
