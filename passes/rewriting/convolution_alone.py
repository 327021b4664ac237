"""One convolution as a module of its own: of its image and its weights, without what follows it."""

from __future__ import annotations

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import constant_of
from mlir_npu.passes.rewriting.moves import read_pad
from mlir_npu.passes.rewriting.values import defined_by, element_type

CONVOLUTION = "linalg.conv_2d_nhwc_hwcf"
_TEXT = """
func.func @main(%image: {source} {{npu.role = "input"}},
                %weights: {weights} {{npu.role = "parameter"}}) -> {result} {{
{pad}  %start = arith.constant 0.0 : {element}
  %empty = tensor.empty() : {result}
  %init = linalg.fill ins(%start : {element}) outs(%empty : {result}) -> {result}
  %result = {op} {{strides = {strides}, dilations = {dilations}}}
    ins({image}, %weights : {padded}, {weights}) outs(%init : {result}) -> {result}
  return %result : {result}
}}
"""
_PAD = """  %border = arith.constant {value}
  %padded = tensor.pad %image low[{low}] high[{high}] {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %border : {element}
  }} : {source} to {padded}
"""


def convolution_alone(op: ir.Operation) -> str:
    """A convolution with static shapes, added to zeros; a pad before it is a part of it."""
    image, weights, init = op.operands
    element = element_type(image)
    source, name, pad = image.type, "%image", ""
    made_by = defined_by(image, "tensor.pad")
    padding = read_pad(made_by) if made_by is not None else None
    if padding is not None:
        source, name = made_by.operands[0].type, "%padded"
        pad = _PAD.format(
            value=constant_of(padding.value),
            low=", ".join(map(str, padding.low)),
            high=", ".join(map(str, padding.high)),
            element=element,
            source=source,
            padded=image.type,
        )
    return _TEXT.format(
        source=source,
        weights=weights.type,
        result=init.type,
        pad=pad,
        element=element,
        op=op.name,
        strides=op.attributes["strides"],
        dilations=op.attributes["dilations"],
        image=name,
        padded=image.type,
    )
