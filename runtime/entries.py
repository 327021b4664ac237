"""Whether entries of dictionaries are still the objects that they were: attributes of modules,
their parameters, globals. A few nanoseconds each, in compiled code that asks the interpreter.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

from mlir_npu.runtime.kernel import Kernel, SlotBlock
from mlir_npu.runtime.text_kernel import object_of_text

Entry = tuple[dict, str, object]  # dictionary, key, the object expected there

# table: number of entries, result (1: all as expected), then dictionary, key, object of each
SOURCE = """
llvm.func @PyDict_GetItemWithError(!llvm.ptr, !llvm.ptr) -> !llvm.ptr
llvm.func @compare(%table: !llvm.ptr) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %count = llvm.load %table : !llvm.ptr -> i64
  %result_at = llvm.getelementptr %table[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %entries = llvm.getelementptr %table[2] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.br ^entries(%zero : i64)
^entries(%i: i64):
  %more = llvm.icmp "ult" %i, %count : i64
  llvm.cond_br %more, ^entry, ^done(%one : i64)
^entry:
  %entry = llvm.getelementptr %entries[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<3 x ptr>
  %key_at = llvm.getelementptr %entry[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %object_at = llvm.getelementptr %entry[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %dictionary = llvm.load %entry : !llvm.ptr -> !llvm.ptr
  %key = llvm.load %key_at : !llvm.ptr -> !llvm.ptr
  %expected = llvm.load %object_at : !llvm.ptr -> !llvm.ptr
  %found = llvm.call @PyDict_GetItemWithError(%dictionary, %key)
      : (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
  %same = llvm.icmp "eq" %found, %expected : !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.cond_br %same, ^entries(%next : i64), ^done(%zero : i64)
^done(%result: i64):
  llvm.store %result, %result_at : i64, !llvm.ptr
  llvm.return
}
"""


@functools.cache
def _compare() -> tuple[Kernel, ctypes._CFuncPtr]:
    """The kernel, and its function called with the GIL held."""
    kernel = Kernel.of_objects([object_of_text(SOURCE)], "compare")
    address = ctypes.cast(kernel.run, ctypes.c_void_p).value
    return kernel, ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(address)


class Entries:
    """Keeps dictionaries, keys and objects alive. Keys are strings."""

    __slots__ = ("_block", "_entries", "_run", "_table")

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = tuple(entries)
        numbers = [id(thing) for entry in self._entries for thing in entry]
        self._table = (ctypes.c_int64 * (2 + len(numbers)))(len(self._entries), 0, *numbers)
        self._block = SlotBlock(1)
        self._block.values[0] = ctypes.addressof(self._table)
        _, self._run = _compare()

    def unchanged(self) -> bool:
        """Whether every entry holds the object that is expected there, and not an equal one."""
        if not self._entries:
            return True
        # a thread that runs in between leaves a newer answer to the same question
        self._run(self._block.address)
        return self._table[1] == 1
