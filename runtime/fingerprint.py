"""A number that changes when the contents of tensors change, for about the cost of a look at them.

Tensors of up to EXACT words of 4 bytes are read whole, larger ones in RUNS runs of RUN words from
first to last: what a look costs is its cache lines, not its words. So every update of a whole
tensor is seen, and of a few elements of a large one perhaps not.

Words are scrambled as in MurmurHash3 (https://github.com/aappleby/smhasher) and enter one of LANES
hashes, and one more takes what is left of every run. Two multiplications, with a rotation in
between, keep changes of many sign bits from cancelling each other. In the end all hashes are hashed
together, by FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

import torch

from mlir_npu.runtime.kernel import Kernel, SlotBlock
from mlir_npu.runtime.text_kernel import object_of_text

EXACT = 1024
RUNS, RUN = 8, 16
WORD_BYTES = 4
LANES = 16

_MIX = """
llvm.func internal @{name}(%hash: {type}, %words: {type}) -> {type} {{
  %first = llvm.mlir.constant({first}) : {type}
  %second = llvm.mlir.constant({second}) : {type}
  %offset = llvm.mlir.constant({offset}) : {type}
  %fifteen = llvm.mlir.constant({fifteen}) : {type}
  %thirteen = llvm.mlir.constant({thirteen}) : {type}
  %0 = llvm.mul %words, %first : {type}
  %1 = llvm.intr.fshl(%0, %0, %fifteen) : ({type}, {type}, {type}) -> {type}
  %2 = llvm.mul %1, %second : {type}
  %3 = llvm.xor %hash, %2 : {type}
  %4 = llvm.intr.fshl(%3, %3, %thirteen) : ({type}, {type}, {type}) -> {type}
  %5 = llvm.add %4, %offset : {type}
  llvm.return %5 : {type}
}}
"""
_CONSTANTS = {
    "first": 0xCC9E2D51 - (1 << 32),
    "second": 0x1B873593,
    "offset": 0xE6546B64 - (1 << 32),
    "fifteen": 15,
    "thirteen": 13,
}

# table: number of runs, result, hashes of the lanes, then (address, words) of each run
_HASHES = LANES * WORD_BYTES // 8  # in words of the table
_MAIN = f"""
llvm.func @fingerprint(%table: !llvm.ptr) {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %lanes = llvm.mlir.constant({LANES} : i64) : i64
  %zeros = llvm.mlir.constant(dense<0> : VECTOR) : VECTOR
  %seed = llvm.mlir.constant(0 : i32) : i32
  %runs = llvm.load %table : !llvm.ptr -> i64
  %hashes = llvm.getelementptr %table[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %entries = llvm.getelementptr %table[{2 + _HASHES}] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.br ^runs(%zero, %zeros, %seed : i64, VECTOR, i32)
^runs(%run: i64, %many0: VECTOR, %few0: i32):
  %more_runs = llvm.icmp "ult" %run, %runs : i64
  llvm.cond_br %more_runs, ^run, ^fold
^run:
  %entry = llvm.getelementptr %entries[%run] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i64>
  %base = llvm.load %entry : !llvm.ptr -> !llvm.ptr
  %words_at = llvm.getelementptr %entry[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %words = llvm.load %words_at : !llvm.ptr -> i64
  llvm.br ^vectors(%zero, %many0 : i64, VECTOR)
^vectors(%i: i64, %many1: VECTOR):
  %vector_end = llvm.add %i, %lanes : i64
  %more_vectors = llvm.icmp "ule" %vector_end, %words : i64
  llvm.cond_br %more_vectors, ^vector, ^words(%i, %few0 : i64, i32)
^vector:
  %vector_at = llvm.getelementptr %base[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  %vector = llvm.load %vector_at {{alignment = 1 : i64}} : !llvm.ptr -> VECTOR
  %many2 = llvm.call @mix_vector(%many1, %vector) : (VECTOR, VECTOR) -> VECTOR
  llvm.br ^vectors(%vector_end, %many2 : i64, VECTOR)
^words(%j: i64, %few1: i32):
  %more_words = llvm.icmp "ult" %j, %words : i64
  llvm.cond_br %more_words, ^word, ^next
^word:
  %word_at = llvm.getelementptr %base[%j] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  %word = llvm.load %word_at {{alignment = 1 : i64}} : !llvm.ptr -> i32
  %few2 = llvm.call @mix_word(%few1, %word) : (i32, i32) -> i32
  %word_end = llvm.add %j, %one : i64
  llvm.br ^words(%word_end, %few2 : i64, i32)
^next:
  %next_run = llvm.add %run, %one : i64
  llvm.br ^runs(%next_run, %many1, %few1 : i64, VECTOR, i32)
^fold:
  llvm.store %many0, %hashes {{alignment = 1 : i64}} : VECTOR, !llvm.ptr
  %basis = llvm.mlir.constant(-3750763034362895579 : i64) : i64
  %prime = llvm.mlir.constant(1099511628211 : i64) : i64
  %few_wide = llvm.zext %few0 : i32 to i64
  %all0 = llvm.xor %basis, %few_wide : i64
  llvm.br ^hashes(%zero, %all0 : i64, i64)
^hashes(%k: i64, %all1: i64):
  %more_hashes = llvm.icmp "ult" %k, %lanes : i64
  llvm.cond_br %more_hashes, ^hash, ^done
^hash:
  %hash_at = llvm.getelementptr %hashes[%k] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  %hash = llvm.load %hash_at : !llvm.ptr -> i32
  %hash_wide = llvm.zext %hash : i32 to i64
  %all2 = llvm.mul %all1, %prime : i64
  %all3 = llvm.xor %all2, %hash_wide : i64
  %hash_end = llvm.add %k, %one : i64
  llvm.br ^hashes(%hash_end, %all3 : i64, i64)
^done:
  %result_at = llvm.getelementptr %table[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %all1, %result_at : i64, !llvm.ptr
  llvm.return
}}
"""


def source() -> str:
    """The function in the LLVM dialect."""
    vector = f"vector<{LANES}xi32>"
    lanes = {name: f"dense<{value}> : {vector}" for name, value in _CONSTANTS.items()}
    word = {name: f"{value} : i32" for name, value in _CONSTANTS.items()}
    mixers = _MIX.format(name="mix_vector", type=vector, **lanes)
    mixers += _MIX.format(name="mix_word", type="i32", **word)
    return mixers + _MAIN.replace("VECTOR", vector)


@functools.cache
def _kernel() -> Kernel:
    return Kernel.of_objects([object_of_text(source())], "fingerprint")


class Fingerprint:
    """Of the memory of these tensors, which must stay where it is. Call it for the number."""

    __slots__ = ("_block", "_run", "_table")

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        runs = [run for tensor in tensors for run in _runs(tensor)]
        entries = [0] * _HASHES + [number for run in runs for number in run]
        self._table = (ctypes.c_int64 * (2 + len(entries)))(len(runs), 0, *entries)
        self._block = SlotBlock(1)
        self._block.values[0] = ctypes.addressof(self._table)
        self._run = _kernel().run

    def __call__(self) -> int:
        # threads that race here write the same number: nothing changes under a call in flight
        self._run(self._block.address)
        return self._table[1]


def is_read_whole(tensor: torch.Tensor) -> bool:
    """Whether every change of the tensor changes its fingerprint."""
    size = _bytes(tensor)
    return size <= EXACT * WORD_BYTES and size % WORD_BYTES == 0


def _bytes(tensor: torch.Tensor) -> int:
    """From the first element to the end of the last one."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    elements = 1 + sum((size - 1) * stride for size, stride in steps) if tensor.numel() else 0
    return elements * tensor.element_size()


def _runs(tensor: torch.Tensor) -> list[tuple[int, int]]:
    """Address and words of every run that is read."""
    words = _bytes(tensor) // WORD_BYTES
    if words <= EXACT:
        return [(tensor.data_ptr(), words)]
    starts = [number * (words - RUN) // (RUNS - 1) for number in range(RUNS)]
    return [(tensor.data_ptr() + WORD_BYTES * start, RUN) for start in starts]
