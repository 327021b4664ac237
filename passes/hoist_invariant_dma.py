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
from mlir_npu.passes.pipelining.transfers import read_load
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
    addresses = _invariant_addresses(move, loop)
    if addresses is None:
        return False
    for op in [*addresses, load.buffer, move, load.wait]:
        op.move_before(loop)
    return True


def _invariant_addresses(move: ir.Operation, loop: ir.Operation) -> list[ir.Operation] | None:
    """The ops of the loop that compute what `move` reads; None if that depends on the loop."""
    source, _, *low = move.operands
    addresses = address_ops([source, *low], loop)
    if isinstance(addresses, str) or root_of(source) in written_roots(loop):
        return None
    used = [source, *low, *(value for op in addresses for value in op.operands)]
    arguments = set(loop.regions[0].blocks[0].arguments)
    return None if arguments.intersection(used) else addresses
