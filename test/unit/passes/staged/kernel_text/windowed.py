"""Depthwise convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from staged.kernel_text.base import Kernel, module, tensor
from staged.kernel_text.epilogue import epilogue_text, finish
from staged.kernel_text.window import Window


def depthwise_conv2d(
    image: Sequence[int], window: Window, *, epilogue: bool = True, schedule: str = ""
) -> Kernel:
    n, h, w, c = image
    out = (n, *window.output((h, w)), c)
    weights = (*window.taps, c)
    pad, padded = window.pad_text(image)
    body = f"""{pad}
  %e = tensor.empty() : {tensor(out)}
  %f = linalg.fill ins(%zero : f32) outs(%e : {tensor(out)}) -> {tensor(out)}
  {"%conv" if epilogue else "%result"} = linalg.depthwise_conv_2d_nhwc_hwc {_attributes(window)}
    ins({"%image" if pad else "%arg0"}, %arg1 : {tensor(padded)}, {tensor(weights)})
    outs(%f : {tensor(out)}) -> {tensor(out)}
  {epilogue_text(out, (c,)) if epilogue else ""}"""
    inputs = (tuple(image), weights, *(((c,), (c,), out) if epilogue else ()))

    def reference(x, w, *operands):
        total = sum(taps * w[r, s] for (r, s), taps in window.windows(x))
        return finish(total, *operands)

    return Kernel(module("depthwise_conv2d", body, inputs, out, schedule), inputs, out, reference)


def _attributes(window: Window) -> str:
    strides, dilations = (
        f"dense<[{a}, {b}]> : vector<2xi64>" for a, b in (window.strides, window.dilations)
    )
    return f"{{strides = {strides}, dilations = {dilations}}}"


def pool2d(image: Sequence[int], window: Window, kind: str, *, schedule: str = "") -> Kernel:
    """kind "max", padded with -inf, or "sum", padded with 0."""
    n, h, w, c = image
    out = (n, *window.output((h, w)), c)
    value = "%lowest" if kind == "max" else "%zero"
    pad, padded = window.pad_text(image, value)
    body = f"""%lowest = arith.constant 0xFF800000 : f32
  {pad}
  %e = tensor.empty() : {tensor(out)}
  %window = tensor.empty() : {tensor(window.taps)}
  %f = linalg.fill ins({value} : f32) outs(%e : {tensor(out)}) -> {tensor(out)}
  %result = linalg.pooling_nhwc_{kind} {_attributes(window)}
    ins({"%image" if pad else "%arg0"}, %window : {tensor(padded)}, {tensor(window.taps)})
    outs(%f : {tensor(out)}) -> {tensor(out)}"""
    fill, combine = (-np.inf, np.maximum) if kind == "max" else (0.0, np.add)

    def reference(x):
        total = np.full(out, fill, np.float32)
        for _, taps in window.windows(x, fill):
            total = combine(total, taps)
        return total

    return Kernel(
        module("pool2d", body, (tuple(image),), out, schedule), (tuple(image),), out, reference
    )
