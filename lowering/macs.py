"""How much arithmetic a node does, for reports and for deciding whether a region pays.

A multiply-accumulate (MAC) is one product added to a sum. Only convolutions and matrix products
count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import fx

from mlir_npu.lowering.support.rules import arguments, shape


def count_macs(node: fx.Node) -> int:
    """MACs of one call; 0 for nodes that multiply no matrices and for dynamic shapes."""
    count = _COUNTERS.get(str(node.target)) if node.op == "call_function" else None
    if count is None or not _static(node):
        return 0
    return count(node)


def is_convolution(node: fx.Node) -> bool:
    return str(node.target) in ("aten.convolution.default", "aten.convolution_backward.default")


def count_conv_macs(nodes: Iterable[fx.Node]) -> int:
    return sum(count_macs(node) for node in nodes if is_convolution(node))


def count_elements(node: fx.Node) -> int:
    """Elements of the (first) tensor a node makes; 0 if it is dynamic or not a tensor."""
    value = node.meta.get("val")
    value = value[0] if isinstance(value, (tuple, list)) and value else value
    if not isinstance(value, torch.Tensor) or not _static_shape(value):
        return 0
    return value.numel()


def _convolution(node: fx.Node) -> int:
    call = arguments(node)
    input_shape, weight_shape = shape(call["input"]), shape(call["weight"])
    # The weight holds, for each channel of the side that is swept, one window over its group.
    swept = input_shape if call["transposed"] else shape(node)
    return swept[0] * math.prod(swept[2:]) * math.prod(weight_shape)


def _convolution_backward(node: fx.Node) -> int:
    """The gradient of the input and that of the weight each cost as much as the forward."""
    call = arguments(node)
    swept = shape(call["input"]) if call["transposed"] else shape(call["grad_output"])
    forward = swept[0] * math.prod(swept[2:]) * math.prod(shape(call["weight"]))
    return forward * sum(bool(wanted) for wanted in call["output_mask"][:2])


def _attention(node: fx.Node) -> int:
    """Scores, and the weighted sums of values."""
    call = arguments(node)
    query, value = shape(call["query"]), shape(call["value"])
    return math.prod(query[:-1]) * value[-2] * (query[-1] + value[-1])


def _contraction(left: str) -> callable:
    def count(node: fx.Node) -> int:
        return math.prod(shape(node)) * shape(arguments(node)[left])[-1]

    return count


def _static(node: fx.Node) -> bool:
    values = [operand.meta.get("val") for operand in node.all_input_nodes] + [node.meta.get("val")]
    return all(_static_shape(value) for value in values if isinstance(value, torch.Tensor))


def _static_shape(value: torch.Tensor) -> bool:
    return all(isinstance(size, int) for size in value.shape)


_COUNTERS = {
    "aten.convolution.default": _convolution,
    "aten.convolution_backward.default": _convolution_backward,
    "aten._scaled_dot_product_flash_attention_for_cpu.default": _attention,
    "aten.mm.default": _contraction("self"),
    "aten.bmm.default": _contraction("self"),
    "aten.matmul.default": _contraction("self"),
    "aten.linear.default": _contraction("input"),
    "aten.addmm.default": _contraction("mat1"),
    "aten.baddbmm.default": _contraction("batch1"),
}
