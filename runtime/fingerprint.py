"""A number that changes when the contents of tensors change, for about the cost of a look at them.

Tensors of up to EXACT words of 4 bytes are read whole, larger ones in RUNS runs of RUN words from
first to last: what a look costs is its cache lines, not its words. So every update of a whole
tensor is seen, and of a few elements of a large one perhaps not.
The hash is FNV-1a on words (http://www.isthe.com/chongo/tech/comp/fnv/).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

import torch

from mlir_npu.dialect.bindings import ir
from mlir_npu.runtime.kernel import Kernel, SlotBlock

EXACT = 1024
RUNS, RUN = 8, 16
WORD_BYTES = 4

# table: number of runs, result, then (address, words) each
_SOURCE = """
llvm.func @fingerprint(%table: !llvm.ptr) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %two = llvm.mlir.constant(2 : i64) : i64
  %basis = llvm.mlir.constant(-3750763034362895579 : i64) : i64
  %prime = llvm.mlir.constant(1099511628211 : i64) : i64
  %entries = llvm.load %table : !llvm.ptr -> i64
  llvm.br ^entries(%zero, %basis : i64, i64)
^entries(%entry: i64, %hash: i64):
  %more_entries = llvm.icmp "ult" %entry, %entries : i64
  llvm.cond_br %more_entries, ^entry, ^done
^entry:
  %pair = llvm.mul %entry, %two : i64
  %position = llvm.add %pair, %two : i64
  %at = llvm.getelementptr %table[%position] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %base = llvm.load %at : !llvm.ptr -> !llvm.ptr
  %count_at = llvm.getelementptr %at[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %count = llvm.load %count_at : !llvm.ptr -> i64
  llvm.br ^words(%zero, %hash : i64, i64)
^words(%word: i64, %so_far: i64):
  %more_words = llvm.icmp "ult" %word, %count : i64
  llvm.cond_br %more_words, ^word, ^next
^word:
  %address = llvm.getelementptr %base[%word] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  %bits = llvm.load %address {alignment = 1 : i64} : !llvm.ptr -> i32
  %wide = llvm.zext %bits : i32 to i64
  %mixed = llvm.xor %so_far, %wide : i64
  %hashed = llvm.mul %mixed, %prime : i64
  %next_word = llvm.add %word, %one : i64
  llvm.br ^words(%next_word, %hashed : i64, i64)
^next:
  %next_entry = llvm.add %entry, %one : i64
  llvm.br ^entries(%next_entry, %so_far : i64, i64)
^done:
  %result = llvm.getelementptr %table[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %hash, %result : i64, !llvm.ptr
  llvm.return
}
"""


@functools.cache
def _kernel() -> Kernel:
    with ir.Context(), ir.Location.unknown():
        return Kernel(ir.Module.parse(_SOURCE), "fingerprint")


class Fingerprint:
    """Of the memory of these tensors, which must stay where it is. Call it for the number."""

    __slots__ = ("_block", "_run", "_table")

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        runs = [run for tensor in tensors for run in _runs(tensor)]
        entries = [number for run in runs for number in run]
        self._table = (ctypes.c_int64 * (2 + len(entries)))(len(runs), 0, *entries)
        self._block = SlotBlock(1)
        self._block.values[0] = ctypes.addressof(self._table)
        self._run = _kernel().run

    def __call__(self) -> int:
        # threads that race here write the same number: nothing changes under a call in flight
        self._run(self._block.address)
        return self._table[1]


def _runs(tensor: torch.Tensor) -> list[tuple[int, int]]:
    """Address and words of every run that is read."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    elements = 1 + sum((size - 1) * stride for size, stride in steps) if tensor.numel() else 0
    words = elements * tensor.element_size() // WORD_BYTES
    if words <= EXACT:
        return [(tensor.data_ptr(), words)]
    starts = [number * (words - RUN) // (RUNS - 1) for number in range(RUNS)]
    return [(tensor.data_ptr() + WORD_BYTES * start, RUN) for start in starts]
