"""Move loads that every iteration of a loop repeats in front of that loop.

A load is a move from dram whose token is waited for at once. It leaves a loop, with its buffer,
its wait and the ops that compute its addresses, if none of these depend on the loop, nothing else
writes its buffer, and no move inside of the loop writes what it reads. Weights that stay while rows
go by are so loaded once. The loop is taken to run at least once.

Before:
    scf.for %y = %c0 to %c7 step %c1 {
      %w = memref.alloc() : memref<3x3x64x16xf32, #npu.space<"sram">>
      %t = "npu.dma_start"(%weights, %w); "npu.dma_wait"(%t)
      %x = memref.alloc(); %u = "npu.dma_start"(%rows_of_y, %x); "npu.dma_wait"(%u); use %x, %w }
After:
    %w = memref.alloc() : memref<3x3x64x16xf32, #npu.space<"sram">>
    %t = "npu.dma_start"(%weights, %w); "npu.dma_wait"(%t)
    scf.for %y = %c0 to %c7 step %c1 {
      %x = memref.alloc(); %u = "npu.dma_start"(%rows_of_y, %x); "npu.dma_wait"(%u); use %x, %w }
"""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import kernels, nested
from mlir_npu.passes.pipelining.addresses import address_ops, root_of, written_roots
from mlir_npu.passes.pipelining.loop_chain import chain_of
from mlir_npu.passes.pipelining.transfers import Load, read_load
from mlir_npu.passes.registry import NoOptions, register_pass


@register_pass("hoist-invariant-dma")
def hoist_invariant_dma(module: ir.Operation, options: NoOptions) -> None:
    for kernel in kernels(module):
        for move in nested(kernel, "npu.dma_start"):
            while _hoist(move):
                pass


def _hoist(move: ir.Operation) -> bool:
    """Move one load out of the loop around it; whether it was possible."""
    load, chain = read_load(move), chain_of(move)
    if isinstance(load, str) or isinstance(chain, str):
        return False
    loop = chain.loops[-1].op
    if not _is_invariant(load, loop):
        return False
    addresses = address_ops(list(move.operands)[:1] + list(move.operands)[2:], loop)
    for op in [*addresses, load.buffer, move, load.wait]:
        op.move_before(loop)
    return True


def _is_invariant(load: Load, loop: ir.Operation) -> bool:
    operands = list(load.move.operands)
    addresses = address_ops([operands[0], *operands[2:]], loop)
    if isinstance(addresses, str):
        return False
    arguments = set(loop.regions[0].blocks[0].arguments)
    used = [operands[0], *operands[2:], *(v for op in addresses for v in op.operands)]
    return not arguments.intersection(used) and root_of(operands[0]) not in written_roots(loop)
