"""A kernel as text with its NumPy reference, and what all kernels are written with."""

from __future__ import annotations

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
