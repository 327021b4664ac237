"""Reductions, elementwise operations, and kernels that only move."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from staged.kernel_text.base import RELU, Kernel, module, tensor
from staged.kernel_text.window import Window


def mean(image: Sequence[int], *, schedule: str = "") -> Kernel:
    """Mean over space: a sum of (n, y, x, c) over y and x, then a division."""
    n, h, w, c = image
    out, dims = (n, c), "n, c, y, x"
    body = f"""%count = arith.constant {h * w}.0 : f32
  %e = tensor.empty() : {tensor(out)}
  %f = linalg.fill ins(%zero : f32) outs(%e : {tensor(out)}) -> {tensor(out)}
  %sum = linalg.generic {{indexing_maps = [affine_map<({dims}) -> (n, y, x, c)>,
      affine_map<({dims}) -> (n, c)>],
    iterator_types = ["parallel", "parallel", "reduction", "reduction"]}}
    ins(%arg0 : {tensor(image)}) outs(%f : {tensor(out)}) {{
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  }} -> {tensor(out)}
  %result = linalg.generic {{indexing_maps = [affine_map<(n, c) -> (n, c)>,
      affine_map<(n, c) -> (n, c)>], iterator_types = ["parallel", "parallel"]}}
    ins(%sum : {tensor(out)}) outs(%e : {tensor(out)}) {{
  ^bb0(%a: f32, %old: f32):
    %q = arith.divf %a, %count : f32
    linalg.yield %q : f32
  }} -> {tensor(out)}"""

    def reference(x):
        return x.sum((1, 2)) / np.float32(h * w)

    return Kernel(
        module("reduce", body, (tuple(image),), out, schedule), (tuple(image),), out, reference
    )


def add_relu(shape: Sequence[int], *, schedule: str = "") -> Kernel:
    """relu(x * x + bias) with a per-channel bias: the same operand twice, and a broadcast."""
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    full, last = f"affine_map<({dims}) -> ({dims})>", f"affine_map<({dims}) -> (d{len(shape) - 1})>"
    kinds = ", ".join(['"parallel"'] * len(shape))
    body = f"""%e = tensor.empty() : {tensor(shape)}
  %result = linalg.generic {{indexing_maps = [{full}, {full}, {last}, {full}],
    iterator_types = [{kinds}]}}
    ins(%arg0, %arg0, %arg1 : {tensor(shape)}, {tensor(shape)}, {tensor(shape[-1:])})
    outs(%e : {tensor(shape)}) {{
  ^bb0(%a: f32, %b: f32, %bias: f32, %old: f32):
    %p = arith.mulf %a, %b : f32
    %v = arith.addf %p, %bias : f32
    {RELU}
  }} -> {tensor(shape)}"""
    inputs = (tuple(shape), tuple(shape[-1:]))

    def reference(x, bias):
        return np.maximum(x * x + bias, 0)

    return Kernel(
        module("eltwise", body, inputs, tuple(shape), schedule), inputs, tuple(shape), reference
    )


def transpose(shape: Sequence[int], order: Sequence[int], *, schedule: str = "") -> Kernel:
    out = tuple(shape[i] for i in order)
    body = f"""%e = tensor.empty() : {tensor(out)}
  %result = linalg.transpose ins(%arg0 : {tensor(shape)}) outs(%e : {tensor(out)})
    permutation = [{", ".join(map(str, order))}]"""
    text = module("copy", body, (tuple(shape),), out, schedule)
    return Kernel(text, (tuple(shape),), out, lambda x: x.transpose(order))


def concat(shape: Sequence[int], other: int) -> Kernel:
    """Two tensors side by side in the last dimension, of extents shape[-1] and `other`."""
    *outer, last = shape
    second, out = (*outer, other), (*outer, last + other)
    zeros = ", ".join("0" for _ in outer)
    ones = ", ".join("1" for _ in shape)
    sizes = ", ".join(map(str, outer))
    body = f"""%e = tensor.empty() : {tensor(out)}
  %first = tensor.insert_slice %arg0 into %e[{zeros}, 0] [{sizes}, {last}] [{ones}]
    : {tensor(shape)} into {tensor(out)}
  %result = tensor.insert_slice %arg1 into %first[{zeros}, {last}] [{sizes}, {other}] [{ones}]
    : {tensor(second)} into {tensor(out)}"""
    inputs = (tuple(shape), second)
    return Kernel(
        module("copy", body, inputs, out), inputs, out, lambda x, y: np.concatenate([x, y], -1)
    )


def pad(image: Sequence[int], window: Window) -> Kernel:
    text, padded = window.pad_text(image)
    text = text.replace("%image =", "%result =")
    pads = [(0, 0), *zip(window.low, window.high), (0, 0)]
    inputs = (tuple(image),)
    return Kernel(module("copy", text, inputs, padded), inputs, padded, lambda x: np.pad(x, pads))
