"""relu(v * scale + shift + residual), the epilogue of contractions."""

from __future__ import annotations

import numpy as np

from staged.kernel_text.base import RELU, tensor


def epilogue_text(out, channels) -> str:
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


def finish(total, *operands) -> np.ndarray:
    if not operands:
        return total
    scale, shift, residual = operands
    return np.maximum(total * scale + shift + residual, 0)
