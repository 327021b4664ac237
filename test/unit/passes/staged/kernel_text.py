"""Kernels in the form that form-kernels leaves, called from @main, with their NumPy reference."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

RELU = """
  %cmp = arith.cmpf ugt, %v, %zero : f32
  %y = arith.select %cmp, %v, %zero : f32
  linalg.yield %y : f32"""


@dataclass(frozen=True)
class Kernel:
    """Module text, shapes of the inputs and of the output, and what the output must be."""

    text: str
    inputs: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    reference: Callable[..., np.ndarray]

    def arrays(self, seed: int) -> list[np.ndarray]:
        """Small integers, so that sums in f32 are exact in any order."""
        rng = np.random.default_rng(seed)
        return [rng.integers(-4, 5, shape).astype(np.float32) for shape in self.inputs]


def tensor(shape: Sequence[int]) -> str:
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}f32>"


def module(kind: str, body: str, inputs, output, schedule: str = "") -> str:
    """One kernel %arg0... and a @main that calls it. `body` ends with the value %result."""
    arguments = ", ".join(f"%arg{i}: {tensor(shape)}" for i, shape in enumerate(inputs))
    values = ", ".join(f"%arg{i}" for i in range(len(inputs)))
    types = ", ".join(tensor(shape) for shape in inputs)
    scheduled = f", npu.schedule = {schedule}" if schedule else ""
    return f"""
func.func private @kernel({arguments}) -> {tensor(output)}
    attributes {{npu.kernel = "{kind}"{scheduled}}} {{
  %zero = arith.constant 0.0 : f32
  {body}
  return %result : {tensor(output)}
}}
func.func @main({arguments}) -> {tensor(output)} {{
  %0 = call @kernel({values}) : ({types}) -> {tensor(output)}
  return %0 : {tensor(output)}
}}
"""


def transposed(
    build: Callable[..., Kernel],
    loads: Mapping[int, Sequence[int]],
    store: Sequence[int] | None = None,
    *,
    schedule: str = "",
) -> Kernel:
    """A kernel with operands that it reads, and a result that it stores, through a transpose.

    loads: per operand, the permutation that makes the operand of what `build` makes. store: that of
    its result.
    """
    kernel = build(schedule=schedule)
    zero = "%zero = arith.constant 0.0 : f32"
    (head, body), inputs = (
        kernel.text.partition("func.func @main")[0].split(zero),
        list(kernel.inputs),
    )
    for i, order in loads.items():
        shape = kernel.inputs[i]
        inputs[i] = tuple(shape[order.index(d)] for d in range(len(shape)))
        body = re.sub(rf"%arg{i}\b", f"%load{i}", body)
        moved = _transpose(f"load{i}", f"arg{i}", inputs[i], shape, order)
        body = f"{moved}{body}"
    inner, output = body.rpartition("return")[0], kernel.output
    if store is not None:
        output = tuple(kernel.output[d] for d in store)
        inner = re.sub(r"%result\b", "%computed", inner)
        inner += _transpose("result", "computed", kernel.output, output, store)
    (kind,) = re.search(r'npu.kernel = "(\w+)"', head).groups()
    text = module(kind, inner, inputs, output, schedule)

    def reference(*arrays):
        moved = [a.transpose(loads[i]) if i in loads else a for i, a in enumerate(arrays)]
        result = kernel.reference(*moved)
        return result if store is None else result.transpose(store)

    return Kernel(text, tuple(inputs), output, reference)


def _transpose(result: str, source: str, before, after, order: Sequence[int]) -> str:
    return f"""
  %{result}_empty = tensor.empty() : {tensor(after)}
  %{result} = linalg.transpose ins(%{source} : {tensor(before)})
    outs(%{result}_empty : {tensor(after)}) permutation = {list(order)}
  """


def schedule(tile: Sequence[int], reduction: Sequence[int] = (), parallel: bool = False) -> str:
    """An explicit schedule; the byte counts are left at 0 because plan-scratchpad counts again."""
    split = (
        f", reduction_tile = array<i64: {', '.join(map(str, reduction))}>" if any(reduction) else ""
    )
    sizes = f"array<i64: {', '.join(map(str, tile))}>" if tile else "array<i64>"
    return (
        f"{{tile = {sizes}, parallel = {str(parallel).lower()}, sram_bytes = 0 : i64, "
        f'acc_bytes = 0 : i64, bound = "given"{split}}}'
    )


@dataclass(frozen=True)
class Window:
    """Window, stride, dilation and padding of a convolution or pool, each (y, x)."""

    taps: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    low: tuple[int, int] = (0, 0)
    high: tuple[int, int] = (0, 0)

    def padded(self, extents: Sequence[int]) -> tuple[int, int]:
        return tuple(e + a + b for e, a, b in zip(extents, self.low, self.high))

    def output(self, extents: Sequence[int]) -> tuple[int, int]:
        spans = [(k - 1) * d + 1 for k, d in zip(self.taps, self.dilations)]
        return tuple((e - s) // t + 1 for e, s, t in zip(self.padded(extents), spans, self.strides))

    def pad_text(self, shape: Sequence[int], value: str = "%zero") -> tuple[str, tuple[int, ...]]:
        """`%image`, the padded %arg0 of shape (n, y, x, ...)."""
        if not any((*self.low, *self.high)):
            return "", tuple(shape)
        rest = ", 0" * (len(shape) - 3)
        padded = (shape[0], *self.padded(shape[1:3]), *shape[3:])
        names = ", ".join(f"%i{d}: index" for d in range(len(shape)))
        return (
            f"%image = tensor.pad %arg0 low[0, {self.low[0]}, {self.low[1]}{rest}] "
            f"high[0, {self.high[0]}, {self.high[1]}{rest}] {{\n  ^bb0({names}):\n"
            f"    tensor.yield {value} : f32\n  }} : {tensor(shape)} to {tensor(padded)}",
            padded,
        )

    def windows(self, image: np.ndarray, value: float = 0.0):
        """((r, s), input elements that tap meets) of the padded image."""
        pads = [(0, 0), *zip(self.low, self.high), *[(0, 0)] * (image.ndim - 3)]
        padded = np.pad(image, pads, constant_values=value)
        height, width = self.output(image.shape[1:3])
        for r, s in itertools.product(*map(range, self.taps)):
            y, x = r * self.dilations[0], s * self.dilations[1]
            rows = slice(y, y + (height - 1) * self.strides[0] + 1, self.strides[0])
            columns = slice(x, x + (width - 1) * self.strides[1] + 1, self.strides[1])
            yield (r, s), padded[:, rows, columns]


def conv2d(
    image: Sequence[int],
    blocks: int,
    block: int,
    window: Window,
    *,
    epilogue: bool = True,
    schedule: str = "",
) -> Kernel:
    """Blocked convolution of an NHWC image; the epilogue is relu(v * scale + shift + residual)."""
    n, h, w, c = image
    out = (n, *window.output((h, w)), blocks, block)
    weights = (blocks, *window.taps, c, block)
    pad, padded = window.pad_text(image)
    (sy, sx), (dy, dx) = window.strides, window.dilations
    dims = "n, y, x, ko, ki, r, s, c"
    body = f"""{pad}
  %e = tensor.empty() : {tensor(out)}
  %f = linalg.fill ins(%zero : f32) outs(%e : {tensor(out)}) -> {tensor(out)}
  {"%conv" if epilogue else "%result"} = linalg.generic {{indexing_maps = [
      affine_map<({dims}) -> (n, y * {sy} + r * {dy}, x * {sx} + s * {dx}, c)>,
      affine_map<({dims}) -> (ko, r, s, c, ki)>, affine_map<({dims}) -> (n, y, x, ko, ki)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel",
                      "reduction", "reduction", "reduction"]}}
    ins({"%image" if pad else "%arg0"}, %arg1 : {tensor(padded)}, {tensor(weights)})
    outs(%f : {tensor(out)}) attrs = {{npu.op = "conv2d", npu.strides = array<i64: {sy}, {sx}>,
    npu.dilations = array<i64: {dy}, {dx}>}} {{
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  }} -> {tensor(out)}
  {_epilogue(out, (blocks, block)) if epilogue else ""}"""
    extra = ((blocks, block), (blocks, block), out) if epilogue else ()

    def reference(x, w, *operands):
        total = np.zeros(out, np.float32)
        for (r, s), taps in window.windows(x):
            total += np.einsum("nyxc,kci->nyxki", taps, w[:, r, s])
        return _finish(total, *operands)

    inputs = (tuple(image), weights, *extra)
    return Kernel(module("conv2d", body, inputs, out, schedule), inputs, out, reference)


def _epilogue(out, channels) -> str:
    """relu(%conv * %arg2 + %arg3 + %arg4); channel operands have the last dimensions of `out`."""
    dims = ", ".join(f"d{i}" for i in range(len(out)))
    last = ", ".join(f"d{i}" for i in range(len(out) - len(channels), len(out)))
    full, per_channel = f"affine_map<({dims}) -> ({dims})>", f"affine_map<({dims}) -> ({last})>"
    kinds = ", ".join(['"parallel"'] * len(out))
    return f"""%result = linalg.generic {{indexing_maps = [{full}, {per_channel}, {per_channel},
      {full}, {full}], iterator_types = [{kinds}]}}
    ins(%conv, %arg2, %arg3, %arg4 : {tensor(out)}, {tensor(channels)}, {tensor(channels)},
        {tensor(out)}) outs(%e : {tensor(out)}) {{
  ^bb0(%a: f32, %scale: f32, %shift: f32, %residual: f32, %old: f32):
    %scaled = arith.mulf %a, %scale : f32
    %shifted = arith.addf %scaled, %shift : f32
    %v = arith.addf %shifted, %residual : f32
    {RELU}
  }} -> {tensor(out)}"""


def _finish(total, *operands) -> np.ndarray:
    if not operands:
        return total
    scale, shift, residual = operands
    return np.maximum(total * scale + shift + residual, 0)


def grouped_conv2d(
    image: Sequence[int], blocks: int, block: int, window: Window, *, schedule: str = ""
) -> Kernel:
    """Grouped convolution; the image is (n, y, x, groups, channels per group)."""
    n, h, w, g, c = image
    out = (n, *window.output((h, w)), g, blocks, block)
    weights = (g, blocks, *window.taps, c, block)
    pad, padded = window.pad_text(image)
    (sy, sx), (dy, dx) = window.strides, window.dilations
    dims = "n, y, x, g, ko, ki, r, s, c"
    kinds = ", ".join(['"parallel"'] * 6 + ['"reduction"'] * 3)
    body = f"""{pad}
  %e = tensor.empty() : {tensor(out)}
  %f = linalg.fill ins(%zero : f32) outs(%e : {tensor(out)}) -> {tensor(out)}
  %conv = linalg.generic {{indexing_maps = [
      affine_map<({dims}) -> (n, y * {sy} + r * {dy}, x * {sx} + s * {dx}, g, c)>,
      affine_map<({dims}) -> (g, ko, r, s, c, ki)>,
      affine_map<({dims}) -> (n, y, x, g, ko, ki)>], iterator_types = [{kinds}]}}
    ins({"%image" if pad else "%arg0"}, %arg1 : {tensor(padded)}, {tensor(weights)})
    outs(%f : {tensor(out)}) attrs = {{npu.op = "grouped_conv2d",
    npu.strides = array<i64: {sy}, {sx}>, npu.dilations = array<i64: {dy}, {dx}>}} {{
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  }} -> {tensor(out)}
  {_epilogue(out, (g, blocks, block))}"""
    inputs = (tuple(image), weights, (g, blocks, block), (g, blocks, block), out)

    def reference(x, w, *operands):
        total = np.zeros(out, np.float32)
        for (r, s), taps in window.windows(x):
            total += np.einsum("nyxgc,gkci->nyxgki", taps, w[:, :, r, s])
        return _finish(total, *operands)

    return Kernel(module("grouped_conv2d", body, inputs, out, schedule), inputs, out, reference)


def pointwise_conv2d(image: Sequence[int], channels: int, *, schedule: str = "") -> Kernel:
    """1 x 1 convolution of an image (n, c, y, x), with channels first; epilogue per column."""
    n, c, h, w = image
    out, dims = (n, channels, h, w), "n, k, y, x, c"
    body = f"""%e = tensor.empty() : {tensor(out)}
  %f = linalg.fill ins(%zero : f32) outs(%e : {tensor(out)}) -> {tensor(out)}
  %conv = linalg.generic {{indexing_maps = [affine_map<({dims}) -> (k, c)>,
      affine_map<({dims}) -> (n, c, y, x)>, affine_map<({dims}) -> (n, k, y, x)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}}
    ins(%arg0, %arg1 : {tensor((channels, c))}, {tensor(image)})
    outs(%f : {tensor(out)}) attrs = {{npu.op = "pointwise_conv2d"}} {{
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  }} -> {tensor(out)}
  {_epilogue(out, (w,))}"""
    inputs = ((channels, c), tuple(image), (w,), (w,), out)

    def reference(weights, x, *operands):
        return _finish(np.einsum("kc,ncyx->nkyx", weights, x), *operands)

    return Kernel(module("pointwise_conv2d", body, inputs, out, schedule), inputs, out, reference)


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
  {_epilogue(out, (c,)) if epilogue else ""}"""
    inputs = (tuple(image), weights, *(((c,), (c,), out) if epilogue else ()))

    def reference(x, w, *operands):
        total = sum(taps * w[r, s] for (r, s), taps in window.windows(x))
        return _finish(total, *operands)

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


def matmul(m: int, c: int, blocks: int, block: int, *, schedule: str = "") -> Kernel:
    """lhs (m, c) times rhs (no, c, ni), with the epilogue of conv2d."""
    out, dims = (m, blocks, block), "m, no, ni, c"
    body = f"""%e = tensor.empty() : {tensor(out)}
  %f = linalg.fill ins(%zero : f32) outs(%e : {tensor(out)}) -> {tensor(out)}
  %conv = linalg.generic {{indexing_maps = [affine_map<({dims}) -> (m, c)>,
      affine_map<({dims}) -> (no, c, ni)>, affine_map<({dims}) -> (m, no, ni)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
    ins(%arg0, %arg1 : {tensor((m, c))}, {tensor((blocks, c, block))})
    outs(%f : {tensor(out)}) attrs = {{npu.op = "matmul"}} {{
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  }} -> {tensor(out)}
  {_epilogue(out, (blocks, block))}"""
    inputs = ((m, c), (blocks, c, block), (blocks, block), (blocks, block), out)

    def reference(x, w, *operands):
        return _finish(np.einsum("mc,kci->mki", x, w), *operands)

    return Kernel(module("matmul", body, inputs, out, schedule), inputs, out, reference)


def batch_matmul(p: int, m: int, c: int, blocks: int, block: int, *, schedule: str = "") -> Kernel:
    """lhs (p, m, c) times rhs (p, c, no, ni), with the epilogue of conv2d."""
    out, dims = (p, m, blocks, block), "p, m, no, ni, c"
    lhs, rhs = (p, m, c), (p, c, blocks, block)
    body = f"""%e = tensor.empty() : {tensor(out)}
  %f = linalg.fill ins(%zero : f32) outs(%e : {tensor(out)}) -> {tensor(out)}
  %conv = linalg.generic {{indexing_maps = [affine_map<({dims}) -> (p, m, c)>,
      affine_map<({dims}) -> (p, c, no, ni)>, affine_map<({dims}) -> (p, m, no, ni)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}}
    ins(%arg0, %arg1 : {tensor(lhs)}, {tensor(rhs)})
    outs(%f : {tensor(out)}) attrs = {{npu.op = "batch_matmul"}} {{
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  }} -> {tensor(out)}
  {_epilogue(out, (blocks, block))}"""
    inputs = (lhs, rhs, (blocks, block), (blocks, block), out)

    def reference(x, w, *operands):
        return _finish(np.einsum("pmc,pcki->pmki", x, w), *operands)

    return Kernel(module("batch_matmul", body, inputs, out, schedule), inputs, out, reference)


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
