"""Sums of products: convolutions with and without groups, pointwise ones, matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from staged.kernel_text.base import Kernel, module, tensor
from staged.kernel_text.epilogue import epilogue_text, finish
from staged.kernel_text.window import Window


@dataclass(frozen=True)
class Product:
    """A sum of products. dims: its loops, the last `reductions` of which are summed over; lhs, rhs,
    out: the expressions by which the loops index the operands and the result."""

    op: str
    dims: str
    reductions: int
    lhs: str
    rhs: str
    out: str
    attributes: str = ""

    def text(self, result: str, operands: Sequence[tuple[str, Sequence[int]]], out) -> str:
        """%e and `result`, the product of two named operands with these shapes."""
        maps = ", ".join(
            f"affine_map<({self.dims}) -> ({m})>" for m in (self.lhs, self.rhs, self.out)
        )
        loops = self.dims.count(",") + 1 - self.reductions
        kinds = ", ".join(['"parallel"'] * loops + ['"reduction"'] * self.reductions)
        names = ", ".join(name for name, _ in operands)
        types = ", ".join(tensor(shape) for _, shape in operands)
        return f"""%e = tensor.empty() : {tensor(out)}
  %f = linalg.fill ins(%zero : f32) outs(%e : {tensor(out)}) -> {tensor(out)}
  {result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
    ins({names} : {types}) outs(%f : {tensor(out)})
    attrs = {{npu.op = "{self.op}"{self.attributes}}} {{
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  }} -> {tensor(out)}"""


def conv2d(
    image: Sequence[int],
    blocks: int,
    block: int,
    window: Window,
    *,
    epilogue: bool = True,
    schedule: str = "",
) -> Kernel:
    """Blocked convolution of an NHWC image."""
    n, h, w, c = image
    out = (n, *window.output((h, w)), blocks, block)
    weights = (blocks, *window.taps, c, block)
    dims = "n, y, x, ko, ki, r, s, c"
    lhs, attributes = _windowed(window)
    product = Product(
        "conv2d", dims, 3, f"n, {lhs}, c", "ko, r, s, c, ki", "n, y, x, ko, ki", attributes
    )
    channels = (blocks, block) if epilogue else None
    text, inputs = _kernel_on_image(product, image, weights, window, out, channels)

    def reference(x, w, *operands):
        total = np.zeros(out, np.float32)
        for (r, s), taps in window.windows(x):
            total += np.einsum("nyxc,kci->nyxki", taps, w[:, r, s])
        return finish(total, *operands)

    return Kernel(module("conv2d", text, inputs, out, schedule), inputs, out, reference)


def grouped_conv2d(
    image: Sequence[int], blocks: int, block: int, window: Window, *, schedule: str = ""
) -> Kernel:
    """Grouped convolution; the image is (n, y, x, groups, channels per group)."""
    n, h, w, g, c = image
    out = (n, *window.output((h, w)), g, blocks, block)
    weights = (g, blocks, *window.taps, c, block)
    lhs, attributes = _windowed(window)
    dims, to = "n, y, x, g, ko, ki, r, s, c", "n, y, x, g, ko, ki"
    product = Product(
        "grouped_conv2d", dims, 3, f"n, {lhs}, g, c", "g, ko, r, s, c, ki", to, attributes
    )
    channels = (g, blocks, block)
    text, inputs = _kernel_on_image(product, image, weights, window, out, channels)

    def reference(x, w, *operands):
        total = np.zeros(out, np.float32)
        for (r, s), taps in window.windows(x):
            total += np.einsum("nyxgc,gkci->nyxgki", taps, w[:, :, r, s])
        return finish(total, *operands)

    return Kernel(module("grouped_conv2d", text, inputs, out, schedule), inputs, out, reference)


def _windowed(window: Window) -> tuple[str, str]:
    """How rows and columns of the image are indexed, and the attributes that say so."""
    (sy, sx), (dy, dx) = window.strides, window.dilations
    strides = f"npu.strides = array<i64: {sy}, {sx}>"
    dilations = f"npu.dilations = array<i64: {dy}, {dx}>"
    return f"y * {sy} + r * {dy}, x * {sx} + s * {dx}", f", {strides}, {dilations}"


def _kernel_on_image(
    product: Product, image, weights, window: Window, out, channels: Sequence[int] | None
) -> tuple[str, tuple]:
    """The body, with the epilogue if there are channel operands, and the inputs' shapes."""
    pad, padded = window.pad_text(image)
    operands = [("%image" if pad else "%arg0", padded), ("%arg1", weights)]
    if channels is None:
        return f"{pad}\n  {product.text('%result', operands, out)}", (tuple(image), weights)
    body = f"{pad}\n  {product.text('%conv', operands, out)}\n  {epilogue_text(out, channels)}"
    return body, (tuple(image), weights, channels, channels, out)


def pointwise_conv2d(image: Sequence[int], channels: int, *, schedule: str = "") -> Kernel:
    """1 x 1 convolution of an image (n, c, y, x), with channels first; epilogue per column."""
    n, c, h, w = image
    product = Product("pointwise_conv2d", "n, k, y, x, c", 1, "k, c", "n, c, y, x", "n, k, y, x")
    shapes = ((channels, c), tuple(image), (n, channels, h, w))
    return _on_matrices(product, shapes, (w,), "kc,ncyx->nkyx", schedule)


def matmul(m: int, c: int, blocks: int, block: int, *, schedule: str = "") -> Kernel:
    """lhs (m, c) times rhs (no, c, ni)."""
    product = Product("matmul", "m, no, ni, c", 1, "m, c", "no, c, ni", "m, no, ni")
    shapes = ((m, c), (blocks, c, block), (m, blocks, block))
    return _on_matrices(product, shapes, (blocks, block), "mc,kci->mki", schedule)


def batch_matmul(p: int, m: int, c: int, blocks: int, block: int, *, schedule: str = "") -> Kernel:
    """lhs (p, m, c) times rhs (p, c, no, ni)."""
    product = Product(
        "batch_matmul", "p, m, no, ni, c", 1, "p, m, c", "p, c, no, ni", "p, m, no, ni"
    )
    shapes = ((p, m, c), (p, c, blocks, block), (p, m, blocks, block))
    return _on_matrices(product, shapes, (blocks, block), "pmc,pcki->pmki", schedule)


def _on_matrices(product: Product, shapes, channels, einsum: str, schedule: str) -> Kernel:
    lhs, rhs, out = shapes
    body = product.text("%conv", [("%arg0", lhs), ("%arg1", rhs)], out)
    inputs = (lhs, rhs, channels, channels, out)

    def reference(a, b, *operands):
        return finish(np.einsum(einsum, a, b), *operands)

    text = module(product.op, f"{body}\n  {epilogue_text(out, channels)}", inputs, out, schedule)
    return Kernel(text, inputs, out, reference)
