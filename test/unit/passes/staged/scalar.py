"""Evaluate the region of a vector-unit op on whole arrays, one reduction point at a time."""
from __future__ import annotations

import itertools

import numpy as np

from mlir_npu.dialect.bindings import ir

COMPARE = {
    # arith.cmpf predicates; the unordered ones are true on NaN
    1: lambda a, b: a == b,
    2: lambda a, b: a > b,
    3: lambda a, b: a >= b,
    4: lambda a, b: a < b,
    5: lambda a, b: a <= b,
    9: lambda a, b: ~(a <= b),
    10: lambda a, b: ~(a < b),
    11: lambda a, b: ~(a >= b),
    12: lambda a, b: ~(a > b),
}
SCALAR = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.negf": np.negative,
    "arith.select": np.where,
    "math.exp": np.exp,
}


def evaluate(op: ir.Operation, arrays: list[np.ndarray], env: dict) -> None:
    """Run eltwise, drain or reduce; the last array is written in place."""
    maps = [ir.AffineMapAttr(attribute).value for attribute in op.attributes["indexing_maps"]]
    extents = _extents(maps, arrays)
    kinds = ["parallel"] * len(extents)
    if "iterator_types" in op.attributes:
        kinds = [ir.StringAttr(kind).value for kind in op.attributes["iterator_types"]]
    reduced = [d for d, kind in enumerate(kinds) if kind == "reduction"]
    for point in itertools.product(*[range(extents[d]) for d in reduced]):
        fixed = dict(zip(reduced, point))
        views = [_aligned(m, a, len(extents), fixed) for m, a in zip(maps, arrays)]
        value = _region(op.regions[0].blocks[0], views, env)
        views[-1][...] = np.broadcast_to(value, views[-1].shape)


def _extents(maps, arrays) -> list[int]:
    found = {}
    for map_, array in zip(maps, arrays):
        for result, extent in zip(map_.results, array.shape):
            if isinstance(result, ir.AffineDimExpr):
                found[result.position] = extent
    return [found[d] for d in range(maps[0].n_dims)]


def _aligned(map_, array, rank, fixed) -> np.ndarray:
    """A view of `array` with one axis per dimension, of extent 1 where it is absent or fixed."""
    index, axes = [], []
    for result in map_.results:
        if isinstance(result, ir.AffineConstantExpr):
            index.append(result.value)
        elif result.position in fixed:
            index.append(fixed[result.position])
        else:
            index.append(slice(None))
            axes.append(result.position)
    view = array[(*index, ...)]
    view = view.transpose([axes.index(d) for d in sorted(axes)]) if axes else view
    spread = [slice(None) if d in axes else np.newaxis for d in range(rank)]
    return view[(*spread, ...)]  # with an ellipsis the result is a view even of rank 0


def _region(block: ir.Block, arguments, env) -> np.ndarray:
    values = {**env, **dict(zip(block.arguments, arguments))}
    for child in block.operations:
        op = child.operation
        operands = [values[v] for v in op.operands]
        if op.name == "npu.yield":
            return operands[0]
        values[op.results[0]] = _scalar(op, operands)
    raise AssertionError("a region without npu.yield")


def _scalar(op: ir.Operation, operands):
    if op.name == "arith.constant":
        return np.float32(op.attributes["value"].value)
    if op.name == "arith.cmpf":
        return COMPARE[op.attributes["predicate"].value](*operands)
    return SCALAR[op.name](*operands)
