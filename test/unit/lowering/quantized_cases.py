"""Calls that quantise and dequantise, as convert_pt2e leaves them in a graph."""

from __future__ import annotations

import torch
import torch.ao.quantization.fx._decomposed  # registers the ops

ops = torch.ops.quantized_decomposed

_numbers = torch.Generator().manual_seed(0)
_IMAGE = torch.randn(2, 4, 7, 9, generator=_numbers) * 3
_SCALES = torch.rand(4, generator=_numbers) + 0.01
_POINTS = torch.tensor([0, 3, -7, 100])
_WHOLE = {torch.int8: (-128, 127), torch.uint8: (0, 255)}


def _stored(dtype: torch.dtype) -> torch.Tensor:
    low, high = _WHOLE[dtype]
    return torch.randint(low, high + 1, _IMAGE.shape, dtype=dtype, generator=_numbers)


def _cases() -> dict[str, tuple[torch._ops.OpOverload, tuple, dict]]:
    cases = {}
    for dtype, (low, high) in _WHOLE.items():
        name, stored = str(dtype).removeprefix("torch."), _stored(dtype)
        point = (low + high) // 2 + 9
        tensor = (0.043, point, low, high, dtype)
        channel = (_SCALES, _POINTS, 1, low, high, dtype)
        cases |= {
            f"quantize to {name}": (ops.quantize_per_tensor.default, (_IMAGE, *tensor), {}),
            f"dequantize {name}": (ops.dequantize_per_tensor.default, (stored, *tensor), {}),
            f"quantize channels to {name}": (
                ops.quantize_per_channel.default, (_IMAGE, *channel), {},
            ),
            f"dequantize channels of {name}": (
                ops.dequantize_per_channel.default, (stored, *channel), {},
            ),
        }  # fmt: skip
    cases["quantize to a part"] = (
        ops.quantize_per_tensor.default, (_IMAGE, 0.03, 2, -127, 100, torch.int8), {},
    )  # fmt: skip
    cases["quantize bfloat16"] = (
        ops.quantize_per_tensor.default, (_IMAGE.bfloat16(), 0.03, 2, -128, 127, torch.int8), {},
    )  # fmt: skip
    cases["dequantize a bias"] = (
        ops.dequantize_per_tensor.default,
        (torch.arange(-50, 50, dtype=torch.int32) * 999, 1e-3, 0, -(2**31), 2**31 - 1, torch.int32),
        {},
    )
    return cases


CASES = _cases()
