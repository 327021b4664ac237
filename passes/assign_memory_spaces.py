"""Give every tile a place on chip: accumulators in acc, what compute reads and writes in sram.

Each linalg op of a kernel gets buffers of its own memory space, allocated next to it: inputs are
copied in before their first use, a tile that a reduction accumulates lives in acc, and the last
value of every tile is copied out at the end of the block that produced it. A copy out of acc passes
through sram. What only moves data from dram to dram stays as it is and becomes DMA in insert-dma:
copies, transpositions, pads (a filled buffer with a copy into its interior). So does the
transposition of a result that is on chip: its target is in dram.

Before:
    linalg.fill outs(%out_tile);  linalg.generic {conv} ins(%x_tile, %w_tile) outs(%out_tile)
    linalg.generic {epilogue} ins(%out_tile, %shift_tile) outs(%out_tile)
After:
    %a = memref.alloc() : memref<..., acc>;  linalg.fill outs(%a)
    %x = memref.alloc() : memref<..., sram>;  memref.copy %x_tile, %x      // %w, %shift alike
    linalg.generic {conv} ins(%x, %w) outs(%a)
    %o = memref.alloc() : memref<..., sram>;  linalg.generic {epilogue} ins(%a, %shift) outs(%o)
    memref.copy %o, %out_tile
"""

from collections import ChainMap

from mlir_npu.dialect.attributes import ACC, DRAM, SRAM, space_of, with_space
from mlir_npu.dialect.bindings import ir, memref
from mlir_npu.passes.kernels.pads import is_pad_fill
from mlir_npu.passes.kernels.prerequisites import require_buffers
from mlir_npu.passes.kernels.structured import (
    TRANSPOSE,
    is_linalg,
    not_staged,
    output_count,
    reduction_loops,
)
from mlir_npu.passes.kernels.walk import (
    definition,
    entry,
    kernels,
    nested,
    terminator,
    users,
)
from mlir_npu.passes.registry import NoOptions, fail, register_pass

LOOPS = ("scf.forall", "scf.for")
FILLS = ("linalg.fill", "linalg.map")


@register_pass("assign-memory-spaces")
def assign_memory_spaces(module: ir.Operation, options: NoOptions) -> None:
    require_buffers(module)
    for kernel in kernels(module):
        _Stager(entry(kernel), {}).run()
        _erase_unused_allocations(kernel)


class _Stager:
    """Stages one block. `onchip` maps a dram view to the buffer that holds its value now."""

    def __init__(self, block: ir.Block, outer: dict):
        self.block = block
        self.onchip = ChainMap({}, outer)
        self.written: dict[ir.Value, ir.Operation] = {}  # with the op that writes it first

    def run(self) -> None:
        for op in [child.operation for child in self.block.operations]:
            if op.name in LOOPS:
                _Stager(op.regions[0].blocks[0], self.onchip).run()
            elif op.name == TRANSPOSE and op.operands[0] in self.onchip:
                self._store_transposed(op)
            elif is_linalg(op) and not self._only_moves(op):
                self._stage(op)
        self._copy_out()

    def _only_moves(self, op: ir.Operation) -> bool:
        if op.name == TRANSPOSE:
            return all(_in_dram(value) for value in op.operands)
        return is_pad_fill(op)

    def _stage(self, op: ir.Operation) -> None:
        first_output = len(op.operands) - output_count(op)
        for index in range(first_output):
            value = op.operands[index]
            if _in_dram(value) and index not in not_staged(op):
                op.operands[index] = self._read(value, op)
        for index in range(first_output, len(op.operands)):
            value = op.operands[index]
            if _in_dram(value):
                op.operands[index] = self._write(value, op)

    def _read(self, view: ir.Value, op: ir.Operation) -> ir.Value:
        if view in self.onchip:
            return self.onchip[view]
        self._require_unwritten(view, op)
        buffer = _allocate(view, SRAM, op)
        _copy(view, buffer, op)
        self.onchip[view] = buffer
        return buffer

    def _require_unwritten(self, view: ir.Value, op: ir.Operation) -> None:
        """A tile may not be read through another view than it was written through."""
        for written in self.onchip:
            if written in self.written and _root(written) == _root(view):
                fail(op, f"'{op.name}' reads {view.type} of a buffer that is held on chip")

    def _write(self, view: ir.Value, op: ir.Operation) -> ir.Value:
        if reduction_loops(op):
            if view not in self.onchip:
                fail(op, f"'{op.name}' accumulates into {view.type} that no fill started")
            return self.onchip[view]
        space = ACC if op.name in FILLS and _is_accumulated(view) else SRAM
        self.onchip[view] = _allocate(view, space, op)
        self.written.setdefault(view, op)
        return self.onchip[view]

    def _copy_out(self) -> None:
        end = terminator(self.block)
        for view, writer in self.written.items():
            if _is_temporary(view, writer):
                continue
            _copy(self._drained(view, end), view, end)

    def _store_transposed(self, transpose: ir.Operation) -> None:
        """Nothing but `transpose` reads its source, which stays on chip.

        Its target, all of it new, may be the buffer that an operand was accumulated in.
        """
        view, target = transpose.operands
        transpose.operands[0] = self._drained(view, transpose)
        del self.written[view]
        if target in self.written:
            del self.written[target]
            del self.onchip[target]

    def _drained(self, view: ir.Value, before: ir.Operation) -> ir.Value:
        """The buffer in sram with what is held for `view`."""
        buffer = self.onchip[view]
        if space_of(buffer.type) != ACC:
            return buffer
        drained = _allocate(view, SRAM, before)
        _copy(buffer, drained, before)
        return drained


def _in_dram(value: ir.Value) -> bool:
    return isinstance(value.type, ir.MemRefType) and space_of(value.type) == DRAM


def _allocate(view: ir.Value, space: str, before: ir.Operation) -> ir.Value:
    """A dense buffer of the shape of `view`."""
    shape, element = view.type.shape, view.type.element_type
    with ir.InsertionPoint(before), before.location:
        type_ = with_space(ir.MemRefType.get(shape, element), space)
        return memref.AllocOp(type_, [], []).result


def _copy(source: ir.Value, target: ir.Value, before: ir.Operation) -> None:
    with ir.InsertionPoint(before), before.location:
        memref.CopyOp(source, target)


def _is_accumulated(view: ir.Value) -> bool:
    """Whether some reduction takes `view` as its output."""
    return any(
        is_linalg(op) and view in list(op.operands)[-output_count(op) :] and reduction_loops(op)
        for op in users(view)
    )


def _is_temporary(view: ir.Value, writer: ir.Operation) -> bool:
    """Allocated in the kernel and, now that it is staged, read by nobody after `writer`.

    Bufferisation lets a value of no further use, such as an image that was transposed to be padded,
    have the buffer of a later one.
    """
    made_by = definition(view)
    if made_by is None or made_by.name != "memref.alloc":
        return False
    if made_by.block != writer.block:
        return not users(view)
    return all(
        user.block == writer.block and user.is_before_in_block(writer) for user in users(view)
    )


def _root(view: ir.Value) -> ir.Value:
    while (made_by := definition(view)) is not None and made_by.name == "memref.subview":
        view = made_by.operands[0]
    return view


def _erase_unused_allocations(kernel: ir.Operation) -> None:
    for op in nested(kernel, "memref.alloc"):
        if not users(op.results[0]):
            op.erase()
