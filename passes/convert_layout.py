"""Put the channels of images last: NHWC inside a function, transposes only where layouts meet.

Convolutions and poolings take their channels-last forms. Pads, elementwise generics, reductions,
slices, concatenations and reshapes follow the layout of what they read. Whatever else reads an
image gets it through a transpose, in the order it knows; transposes that meet cancel. Operands of
elementwise generics lose their dimensions of extent 1. Generics whose body asks for indices stay as
they are.

Before:
    %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] : 1x8x6x6 to 1x8x8x8
    %c = linalg.conv_2d_nchw_fchw ins(%p, %w : 1x8x8x8, 16x8x3x3) outs(%zero : 1x16x6x6)
    %r = linalg.generic {relu} ins(%c : 1x16x6x6)
    return %r : 1x16x6x6
After:
    %t = linalg.transpose ins(%x) permutation = [0, 2, 3, 1]
    %p = tensor.pad %t low[0, 1, 1, 0] high[0, 1, 1, 0] : 1x6x6x8 to 1x8x8x8
    %v = linalg.transpose ins(%w) permutation = [2, 3, 1, 0]
    %c = linalg.conv_2d_nhwc_hwcf ins(%p, %v : 1x8x8x8, 3x3x8x16) outs(%zero : 1x6x6x16)
    %r = linalg.generic {relu} ins(%c : 1x6x6x16)
    %b = linalg.transpose ins(%r) permutation = [0, 3, 1, 2]
    return %b : 1x16x6x6
"""

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.registry import NoOptions, register_pass
from mlir_npu.passes.rewriting.channels_last import CHANNELS_LAST, to_channels_last
from mlir_npu.passes.rewriting.functions import region_blocks
from mlir_npu.passes.rewriting.hoisting import hoist_transposes
from mlir_npu.passes.rewriting.sinking import SINKING
from mlir_npu.passes.rewriting.transposes import transposes_to_views
from mlir_npu.passes.rewriting.values import erase_unused

RULES = {**SINKING, **dict.fromkeys(CHANNELS_LAST, to_channels_last)}


@register_pass("convert-layout")
def convert_layout(module: ir.Operation, options: NoOptions) -> None:
    for block in region_blocks(module):
        for view in list(block.operations):
            rule = RULES.get(view.operation.name)
            if rule is not None:
                rule(view.operation)
        erase_unused(block)
        hoist_transposes(block)
        transposes_to_views(block)
        erase_unused(block)
