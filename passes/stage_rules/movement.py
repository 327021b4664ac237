"""How data moves: between which memories, waited for how often, in how many dimensions."""

from __future__ import annotations

from collections.abc import Iterator

from mlir_npu.dialect.attributes import DRAM, space_of
from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import target_of
from mlir_npu.passes.kernels.structured import is_linalg
from mlir_npu.passes.kernels.tokens import tokens_of
from mlir_npu.passes.kernels.walk import (
    argument_roles,
    entry,
    functions,
    kernels,
    nested,
    symbol,
)
from mlir_npu.passes.plan_scratchpad import SCRATCH
from mlir_npu.passes.split_dma import dims_of_move
from mlir_npu.passes.stage_rules import Violation

TAKES_TOKENS = ("npu.dma_wait", "npu.dma_join", "scf.for", "scf.yield")
ACCESS = ("memref.load", "memref.store", "memref.copy")
# What may have a buffer in dram as an operand: moves, views of it, and what hands it on.
REFERS_TO_DRAM = {
    "npu.dma_start", "memref.subview", "memref.cast", "memref.view", "memref.dim",
    "memref.collapse_shape", "memref.expand_shape", "memref.reinterpret_cast",
    "memref.memory_space_cast", "memref.extract_strided_metadata", "scf.for", "scf.yield",
    "arith.select", "func.return",
}  # fmt: skip


def dram_is_reached_by_dma_only(module: ir.Operation) -> Iterator[Violation]:
    for function in functions(module):
        for op in nested(function):
            if is_linalg(op) or op.name in ACCESS:
                yield op, f"'{op.name}' is left"
    for kernel in kernels(module):
        for op in nested(kernel):
            if is_linalg(op) or op.name in ACCESS:
                continue
            if op.name == "memref.alloc" and space_of(op.results[0].type) == DRAM:
                yield op, f"kernel '{symbol(kernel)}' allocates {op.results[0].type} in dram"
            elif op.name not in REFERS_TO_DRAM and _reads_or_writes_dram(op):
                yield op, f"'{op.name}' touches dram"


def _reads_or_writes_dram(op: ir.Operation) -> bool:
    types = [value.type for value in op.operands if isinstance(value.type, ir.MemRefType)]
    return any(space_of(type_) == DRAM for type_ in types)


def only_the_scratchpad_is_on_chip(module: ir.Operation) -> Iterator[Violation]:
    """Where sram is no cache of dram, a cast does not bring dram on chip."""
    target = target_of(module)
    for kernel in () if target.cached else kernels(module):
        arguments = dict(zip(entry(kernel).arguments, argument_roles(kernel)))
        for op in nested(kernel, "memref.memory_space_cast"):
            source, result = op.operands[0], op.results[0]
            if arguments.get(source) != SCRATCH:
                yield op, f"{source.type} is no scratchpad, yet cast to {result.type}"


def tokens_are_waited_once(module: ir.Operation) -> Iterator[Violation]:
    """A token has one use in its own block: a wait, or a loop or branch that takes it further."""
    for op in nested(module):
        for token, block in tokens_of(op):
            uses = [use.owner.operation for use in token.uses]
            if len(uses) != 1:
                yield op, f"a move is waited for {len(uses)} times"
            elif uses[0].name not in TAKES_TOKENS or uses[0].block != block:
                yield uses[0], f"'{uses[0].name}' may leave a move without a wait"


def moves_have_the_rank_of_the_engine(module: ir.Operation) -> Iterator[Violation]:
    target = target_of(module)
    most = target.dma.max_rank
    for move in () if target.cached else nested(module, "npu.dma_start"):
        if (rank := len(dims_of_move(move))) > most:
            yield move, f"a move of {rank} dimensions exceeds the {most} of the DMA engine"
