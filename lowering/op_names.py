"""Names of ATen ops and of those that quantise, for checking what a user typed."""

from __future__ import annotations

import functools

import torch

# registered only where a quantised network was loaded
_QUANTIZING = (
    *("quantize_per_tensor", "quantize_per_channel"),
    *("dequantize_per_tensor", "dequantize_per_channel"),
)


@functools.cache
def aten_op_names() -> frozenset[str]:
    """Names without namespace and overload, such as "relu" or "convolution"."""
    names = (name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::"))
    return frozenset((*(name[6:].split(".")[0] for name in names), *_QUANTIZING))
