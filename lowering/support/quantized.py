"""Quantisation and what undoes it: pairs of them around other ops make these integer ops."""

from __future__ import annotations

import torch
from torch import fx

from mlir_npu.lowering.support.rules import arguments, rule

_STORED = (torch.int8, torch.uint8)
_BIASES = (*_STORED, torch.int32)


@rule(
    "quantized_decomposed.quantize_per_tensor.default",
    "quantized_decomposed.quantize_per_channel.default",
)
def quantize(node: fx.Node) -> str | None:
    """quantize_per_tensor and quantize_per_channel to int8 and uint8."""
    return _problem(node, arguments(node)["dtype"], _STORED)


@rule(
    "quantized_decomposed.dequantize_per_tensor.default",
    "quantized_decomposed.dequantize_per_channel.default",
)
def dequantize(node: fx.Node) -> str | None:
    """dequantize_per_tensor and dequantize_per_channel of int8, uint8 and int32 to float32. A
    convolution or matrix product of dequantised tensors is computed with integers."""
    call = arguments(node)
    if call["out_dtype"] not in (None, torch.float32):
        return f"it makes {_name(call['out_dtype'])}, and the NPU takes float32 only"
    return _problem(node, call["input"].meta["val"].dtype, _BIASES)


def _problem(node: fx.Node, dtype: torch.dtype, known: tuple[torch.dtype, ...]) -> str | None:
    call = arguments(node)
    if dtype not in known:
        names = " and ".join(map(_name, known))
        return f"it is quantised as {_name(dtype)}, and the NPU has {names}"
    if "scale" in call:
        is_number = isinstance(call["scale"], float)
        return None if is_number else "its scale is not known at compile time"
    scales = call["scales"].meta["val"].dtype
    if scales != torch.float32:
        return f"its scales are {_name(scales)}, and the NPU takes float32 only"
    return None


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
