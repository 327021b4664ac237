"""How many multiply-accumulates of a region are of 8-bit integers, for reports."""

from __future__ import annotations

from torch import fx

from mlir_npu.lowering.macs import count_macs
from mlir_npu.lowering.quantized_values import SHIFTS
from mlir_npu.lowering.support.rules import HOLDS_ZEROS, arguments

_FACTORS = {
    "aten.convolution.default": ("input", "weight"),
    "aten.mm.default": ("self", "mat2"),
    "aten.addmm.default": ("mat1", "mat2"),
}
_MOVES = ("view", "reshape", "permute", "transpose", "t", "unsqueeze", "squeeze", "clone", "expand")
_PER_TENSOR = "quantized_decomposed.dequantize_per_tensor.default"
_PER_CHANNEL = "quantized_decomposed.dequantize_per_channel.default"


def integer_macs(graph_module: fx.GraphModule) -> int:
    return sum(count_macs(node) for node in graph_module.graph.nodes if _multiplies_integers(node))


def _multiplies_integers(node: fx.Node) -> bool:
    names = _FACTORS.get(str(node.target))
    if names is None:
        return False
    call = arguments(node)
    image, weight = (_origin(call[name]) for name in names)
    if call.get("transposed") or str(image.target) != _PER_TENSOR or not _is_stored(image):
        return False
    if str(weight.target) == _PER_CHANNEL:
        points = arguments(weight)["zero_points"]
        return _is_stored(weight) and (points is None or bool(points.meta.get(HOLDS_ZEROS)))
    if str(weight.target) != _PER_TENSOR or not _is_stored(weight):
        return False
    stored = arguments(weight)["input"].meta["val"].dtype
    return arguments(weight)["zero_point"] == SHIFTS[stored]


def _is_stored(node: fx.Node) -> bool:
    return arguments(node)["input"].meta["val"].dtype in SHIFTS


def _origin(node: fx.Node) -> fx.Node:
    """What makes the elements that `node` moves."""
    while node.op == "call_function" and _packet(node) in _MOVES:
        node = node.args[0]
    return node


def _packet(node: fx.Node) -> str:
    return str(node.target).removeprefix("aten.").partition(".")[0]
