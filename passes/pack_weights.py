"""Split output channels into the blocks of a micro-kernel, and lay weights out in its order.

Channels-last convolutions, grouped convolutions and matrix products become generics over blocks of
output channels (`npu.op` names them); their weights are transposed to match, once, from whatever
order they are in. Of batches of products both sides are data and stay in their order. Elementwise
generics that follow take on the blocked shape, and per-channel operands with them. Blocked and
plain results are views of each other. The block size comes from the target's vector registers.
Where sram is a cache, a matrix product with one row becomes sums over the rows of its weights as
they are stored.

Before:
    %w = linalg.transpose ins(%p : 32x8x3x3) permutation = [2, 3, 1, 0]
    %c = linalg.conv_2d_nhwc_hwcf ins(%x, %w : 1x8x8x8, 3x3x8x32) outs(%zero : 1x6x6x32)
    %r = linalg.generic {add, relu} ins(%c, %shift : 1x6x6x32, 32)
After:
    %v = tensor.expand_shape %p : 32x8x3x3 into 2x16x8x3x3
    %w = linalg.transpose ins(%v) permutation = [0, 3, 4, 2, 1]
    %c = linalg.generic {npu.op = "conv2d"} ins(%x, %w : 1x8x8x8, 2x3x3x8x16) outs(%z)
    %s = tensor.expand_shape %shift : 32 into 2x16
    %e = linalg.generic {add, relu} ins(%c, %s : 1x6x6x2x16, 2x16)
    %r = tensor.collapse_shape %e : 1x6x6x2x16 into 1x6x6x32
"""

from mlir_npu.dialect.bindings import ir
from mlir_npu.dialect.target import target_of
from mlir_npu.passes.analysis.register_tile import choose_channel_block
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.epilogues import follow_producer, settle
from mlir_npu.passes.rewriting.functions import region_blocks
from mlir_npu.passes.rewriting.generics import GENERIC
from mlir_npu.passes.rewriting.packing import PACKINGS, pack
from mlir_npu.passes.rewriting.transposes import transposes_to_views
from mlir_npu.passes.rewriting.values import erase_unused
from mlir_npu.passes.rewriting.vector_product import to_row_sums


@register_pass("pack-weights")
def pack_weights(module: ir.Operation, options: NoOptions) -> None:
    target = target_of(module)
    for block in region_blocks(module):
        for view in list(block.operations):
            op = view.operation
            if target.cached and op.name == "linalg.matmul" and to_row_sums(op):
                continue
            if op.name in PACKINGS:
                pack(op, lambda channels: choose_channel_block(channels, target))
            elif op.name == GENERIC:
                follow_producer(settle(op))
        transposes_to_views(block)
        erase_unused(block)
