"""Elementwise kernels with broadcasts and reductions over any dimensions, with their reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from staged.kernel_text import Kernel, module, tensor

# name: (MLIR op, NumPy function); small integers stay exact
BINARY = {
    "add": ("arith.addf", np.add),
    "sub": ("arith.subf", np.subtract),
    "mul": ("arith.mulf", np.multiply),
    "max": ("arith.maximumf", np.maximum),
    "min": ("arith.minimumf", np.minimum),
}
REDUCTIONS = {"add": ("%zero", 0.0), "max": ("%lowest", -np.inf)}


@dataclass(frozen=True)
class Operand:
    """Which loop indexes each dimension of an operand; None for a dimension of extent 1."""

    loops: tuple[int | None, ...]

    def shape(self, extents: Sequence[int]) -> tuple[int, ...]:
        return tuple(1 if loop is None else extents[loop] for loop in self.loops)

    def map(self, rank: int) -> str:
        results = ", ".join("0" if loop is None else f"d{loop}" for loop in self.loops)
        return f"affine_map<({_dims(rank)}) -> ({results})>"

    def spread(self, array: np.ndarray, rank: int) -> np.ndarray:
        """The operand with one axis per loop."""
        kept = [loop for loop in self.loops if loop is not None]
        squeezed = array.reshape(
            [n for n, loop in zip(array.shape, self.loops) if loop is not None]
        )
        ordered = squeezed.transpose([kept.index(loop) for loop in sorted(kept)])
        return ordered[tuple(slice(None) if loop in kept else None for loop in range(rank))]


def eltwise(
    extents: Sequence[int], operands: Sequence[Operand], ops: Sequence[str], *, schedule: str = ""
) -> Kernel:
    """operands[0] op[0] operands[1] op[1] ..., then relu; every operand is an argument."""
    rank, out = len(extents), tuple(extents)
    inputs = tuple(operand.shape(extents) for operand in operands)
    maps = [*(operand.map(rank) for operand in operands), Operand(tuple(range(rank))).map(rank)]
    names = [f"%arg{i}" for i in range(len(operands))]
    block = ", ".join(f"%v{i}: f32" for i in range(len(operands)))
    lines, value = [], "%v0"
    for i, op in enumerate(ops, start=1):
        lines.append(f"%t{i} = {BINARY[op][0]} {value}, %v{i} : f32")
        value = f"%t{i}"
    chain = "\n    ".join(lines)
    body = f"""%e = tensor.empty() : {tensor(out)}
  %result = linalg.generic {{indexing_maps = [{", ".join(maps)}],
    iterator_types = [{", ".join(['"parallel"'] * rank)}]}}
    ins({", ".join(names)} : {", ".join(tensor(shape) for shape in inputs)})
    outs(%e : {tensor(out)}) {{
  ^bb0({block}, %old: f32):
    {chain}
    %cmp = arith.cmpf ugt, {value}, %zero : f32
    %y = arith.select %cmp, {value}, %zero : f32
    linalg.yield %y : f32
  }} -> {tensor(out)}"""

    def reference(*arrays):
        total, *rest = (operand.spread(a, rank) for operand, a in zip(operands, arrays))
        for op, array in zip(ops, rest):
            total = BINARY[op][1](total, array)
        return np.broadcast_to(np.maximum(total, 0), out)

    return Kernel(module("eltwise", body, inputs, out, schedule), inputs, out, reference)


def reduction(
    extents: Sequence[int],
    reduced: Sequence[int],
    kind: str,
    *,
    epilogue: bool = False,
    schedule: str = "",
) -> Kernel:
    """Sum or maximum over the dimensions `reduced`; the epilogue is v * v - v, without relu."""
    rank = len(extents)
    kept = tuple(d for d in range(rank) if d not in reduced)
    out = tuple(extents[d] for d in kept)
    start, low = REDUCTIONS[kind]
    whole, part, own = (
        Operand(tuple(range(rank))).map(rank),
        Operand(kept).map(rank),
        Operand(tuple(range(len(kept)))).map(len(kept)),
    )
    kinds = ", ".join('"reduction"' if d in reduced else '"parallel"' for d in range(rank))
    body = f"""%lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : {tensor(out)}
  %f = linalg.fill ins({start} : f32) outs(%e : {tensor(out)}) -> {tensor(out)}
  {"%total" if epilogue else "%result"} = linalg.generic {{indexing_maps = [{whole}, {part}],
    iterator_types = [{kinds}]}} ins(%arg0 : {tensor(extents)}) outs(%f : {tensor(out)}) {{
  ^bb0(%a: f32, %acc: f32):
    %s = {BINARY[kind][0]} %acc, %a : f32
    linalg.yield %s : f32
  }} -> {tensor(out)}"""
    if epilogue:
        body += f"""
  %result = linalg.generic {{indexing_maps = [{own}, {own}],
    iterator_types = [{", ".join(['"parallel"'] * len(kept))}]}}
    ins(%total : {tensor(out)}) outs(%e : {tensor(out)}) {{
  ^bb0(%a: f32, %old: f32):
    %p = arith.mulf %a, %a : f32
    %d = arith.subf %p, %a : f32
    linalg.yield %d : f32
  }} -> {tensor(out)}"""

    def reference(x):
        total = BINARY[kind][1].reduce(x.astype(np.float64), tuple(reduced), initial=low)
        return total * total - total if epilogue else total

    inputs = (tuple(extents),)
    return Kernel(module("reduce", body, inputs, out, schedule), inputs, out, reference)


def _dims(rank: int) -> str:
    return ", ".join(f"d{i}" for i in range(rank))
