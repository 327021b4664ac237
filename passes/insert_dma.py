"""Turn every copy between memories into a DMA and a wait; fold pads and transposes into moves.

The moves are serial: each is waited for at once. A transposition becomes a move with a permutation.
A padded buffer never exists: each copy of a tile of it becomes a `dma_start` whose source is the
valid part of the tile, whose `low` says where that part lands, and whose `pad_value` fills the
rest. Source and landing are clamped with affine.min/max only along padded dimensions. Nor does a
transposed one: moves of its tiles go to or from the other side of the transposition. Copies out of
acc stay, convert-linalg-to-npu makes drains of them.

Before:
    %p = memref.alloc() : memref<1x10x58x64xf32>;  linalg.map outs(%p) { yield %zero }
    memref.copy %x, subview %p[0, 1, 1, 0]
    scf.forall (%i) { memref.copy subview %p[0, %i * 2, 0, 0][1, 4, 58, 64], %tile }
After:
    scf.forall (%i) {
      %from = affine.max(%i * 2 - 1, 0);  %low = affine.max(1 - %i * 2, 0);  %rows = ...
      %valid = memref.subview %x[0, %from, 0, 0][1, %rows, 56, 64]
      %t = "npu.dma_start"(%valid, %tile, %c0, %low, %c1, %c0) {pad_value = 0.0, permutation = ...}
      "npu.dma_wait"(%t) }
"""

from mlir_npu.dialect.attributes import ACC, space_of
from mlir_npu.dialect.bindings import arith, ir
from mlir_npu.dialect.movement import DmaStartOp, DmaWaitOp
from mlir_npu.passes.kernels.clamp import clamp_box, unwrap_subviews
from mlir_npu.passes.kernels.pads import Pad, pad_of
from mlir_npu.passes.kernels.prerequisites import require_buffers
from mlir_npu.passes.kernels.structured import TRANSPOSE
from mlir_npu.passes.kernels.transposed_moves import fold_transpose
from mlir_npu.passes.kernels.views import box_of, subviews
from mlir_npu.passes.kernels.walk import definition, functions, integers, nested, users
from mlir_npu.passes.registry import NoOptions, fail, register_pass

FILLS = ("linalg.fill", "linalg.map")


@register_pass("insert-dma")
def insert_dma(module: ir.Operation, options: NoOptions) -> None:
    require_buffers(module)
    for function in functions(module):
        for fill in nested(function, *FILLS):
            if (pad := pad_of(fill)) is not None:
                _replace_pad(pad)
        for copy in nested(function, "memref.copy"):
            if space_of(copy.operands[0].type) != ACC:
                _replace_copy(copy)
        for transpose in nested(function, TRANSPOSE):
            if not fold_transpose(transpose):
                order = integers(transpose, "permutation")
                _move(*transpose.operands, before=transpose, order=order)
                transpose.erase()


def _replace_copy(copy: ir.Operation) -> None:
    _move(*copy.operands, before=copy)
    copy.erase()


def _move(source, target, before, order=None, low=(), pad_value=None) -> None:
    with ir.InsertionPoint(before), before.location:
        start = DmaStartOp.build(source, target, low=low, permutation=order, pad_value=pad_value)
        DmaWaitOp([start.token])


def _replace_pad(pad: Pad) -> None:
    made_by = definition(pad.buffer)
    if made_by is None or made_by.name != "memref.alloc":
        with ir.InsertionPoint(pad.copy), pad.copy.location:
            low = [_index(offset) for offset in pad.low]
        _move(pad.source, pad.buffer, pad.copy, low=low, pad_value=pad.value)
    else:
        _fold_into_readers(pad)
    view = definition(pad.copy.operands[1])
    pad.copy.erase()
    view.erase()
    pad.fill.erase()
    if made_by is not None and made_by.name == "memref.alloc":
        _erase_views(pad.buffer)
        made_by.erase()


def _fold_into_readers(pad: Pad) -> None:
    for view in [pad.buffer, *subviews(pad.buffer)]:
        if view == pad.copy.operands[1]:
            continue
        for reader in users(view):
            if reader.name == "memref.copy" and reader.operands[0] == view:
                _read_padded(pad, reader)
            elif reader.name != "memref.subview" and reader != pad.fill:
                fail(reader, f"'{reader.name}' uses a padded buffer; only copies of its tiles may")


def _erase_views(buffer: ir.Value) -> None:
    for view in reversed(subviews(buffer)):
        definition(view).erase()


def _read_padded(pad: Pad, reader: ir.Operation) -> None:
    """Replace the copy of a tile of the padded buffer by a padding move from the pad's source."""
    tile, target = reader.operands
    with ir.InsertionPoint(reader), reader.location:
        origin = unwrap_subviews(tile, pad.buffer)
        if origin is None:
            fail(reader, f"a tile of a padded buffer must be a dense box of it, got {tile.type}")
        image, padded = pad.source.type.shape, pad.buffer.type.shape
        box = clamp_box(origin, tile.type.shape, pad.low, image, padded)
        source = box_of(pad.source, box.starts, box.sizes)
        low = [_index(offset) for offset in box.low]
    _move(source, target, reader, low=low, pad_value=pad.value)
    reader.erase()


def _index(value: int | ir.Value) -> ir.Value:
    if isinstance(value, int):
        return arith.ConstantOp(ir.IndexType.get(), value).result
    return value
