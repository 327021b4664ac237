"""The region of a vector-unit op as a function of whole arrays, one reduction point at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.kernels.walk import constant_of
from mlir_npu.simulator.buffers import dtype_of
from mlir_npu.simulator.errors import SimulationError, UnknownType

# By the number of the predicate in arith.cmpf; the unordered ones are true on NaN.
FLOAT_COMPARISONS = (
    lambda a, b: np.zeros(np.broadcast(a, b).shape, bool),
    lambda a, b: a == b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: (a < b) | (a > b),
    lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    lambda a, b: ~((a < b) | (a > b)),
    lambda a, b: ~(a <= b),
    lambda a, b: ~(a < b),
    lambda a, b: ~(a >= b),
    lambda a, b: ~(a > b),
    lambda a, b: a != b,
    lambda a, b: np.isnan(a) | np.isnan(b),
    lambda a, b: np.ones(np.broadcast(a, b).shape, bool),
)
# By the number of the predicate in arith.cmpi; unsigned ones on the bits of the operands.
INTEGER_COMPARISONS = (
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
    *(
        lambda a, b, compare=compare: compare(_unsigned(a), _unsigned(b))
        for compare in (np.less, np.less_equal, np.greater, np.greater_equal)
    ),
)


def _unsigned(value):
    value = np.asarray(value)
    return value if value.dtype.kind != "i" else value.view(f"u{value.dtype.itemsize}")


FUNCTIONS: dict[str, Callable] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.negf": np.negative,
    "arith.select": np.where,
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "math.absf": np.abs,
    "math.ceil": np.ceil,
    "math.cos": np.cos,
    "math.erf": lambda x: np.vectorize(math.erf, otypes=[np.asarray(x).dtype])(x),
    "math.exp": np.exp,
    "math.expm1": np.expm1,
    "math.floor": np.floor,
    "math.fma": lambda a, b, c: a * b + c,
    "math.log": np.log,
    "math.log1p": np.log1p,
    "math.log2": np.log2,
    "math.powf": np.power,
    "math.roundeven": np.rint,
    "math.rsqrt": lambda x: 1 / np.sqrt(x),
    "math.sin": np.sin,
    "math.sqrt": np.sqrt,
    "math.tanh": np.tanh,
}
CONVERSIONS = (
    *("arith.extf", "arith.truncf", "arith.sitofp", "arith.fptosi", "arith.extsi"),
    *("arith.trunci", "arith.uitofp", "arith.extui"),
)
UNSIGNED_CONVERSIONS = ("arith.uitofp", "arith.extui")


def region_function(op: ir.Operation) -> Callable[[Sequence[np.ndarray]], None]:
    """eltwise, drain or reduce on the arrays of its operands; writes the last one in place."""
    maps = [ir.AffineMapAttr(attribute).value for attribute in op.attributes["indexing_maps"]]
    kinds = ["parallel"] * maps[0].n_dims
    if "iterator_types" in op.attributes:
        kinds = [ir.StringAttr(kind).value for kind in op.attributes["iterator_types"]]
    reduced = [dim for dim, kind in enumerate(kinds) if kind == "reduction"]
    body = _body_function(op)

    def run(arrays: Sequence[np.ndarray]) -> None:
        extents = _extents(maps, arrays)
        for point in itertools.product(*[range(extents[dim]) for dim in reduced]):
            fixed = dict(zip(reduced, point))
            views = [_aligned(op, m, a, fixed) for m, a in zip(maps, arrays)]
            with np.errstate(all="ignore"):  # as on the machine, inf and NaN are values
                views[-1][...] = np.broadcast_to(body(views), views[-1].shape)

    return run


def _extents(maps, arrays) -> list[int]:
    found = {}
    for map_, array in zip(maps, arrays):
        for result, extent in zip(map_.results, array.shape):
            if isinstance(result, ir.AffineDimExpr):
                found[result.position] = extent
    return [found[dim] for dim in range(maps[0].n_dims)]


def _aligned(op, map_, array: np.ndarray, fixed: dict[int, int]) -> np.ndarray:
    """A view of `array` with one axis per dimension, of extent 1 where it is absent or fixed."""
    index, axes = [], []
    for result in map_.results:
        if isinstance(result, ir.AffineConstantExpr):
            index.append(result.value)
        elif not isinstance(result, ir.AffineDimExpr):
            raise SimulationError(op, f"operands must be indexed by dimensions, got '{result}'")
        elif result.position in fixed:
            index.append(fixed[result.position])
        else:
            index.append(slice(None))
            axes.append(result.position)
    view = array[(*index, ...)]
    view = view.transpose([axes.index(dim) for dim in sorted(axes)]) if axes else view
    spread = [slice(None) if dim in axes else np.newaxis for dim in range(map_.n_dims)]
    return view[(*spread, ...)]  # with an ellipsis the result is a view even of rank 0


def _body_function(op: ir.Operation) -> Callable[[Sequence[Any]], Any]:
    """The region as a function of its block arguments."""
    block = op.regions[0].blocks[0]
    slots = {argument: i for i, argument in enumerate(block.arguments)}
    constants: list[Any] = []
    steps: list[tuple[Callable, list[int]]] = []
    arguments = len(slots)

    def slot(value: ir.Value) -> int:
        """The slot of a value; one from outside of the region must be a constant."""
        if value not in slots:
            slots[value] = -1 - len(constants)
            constants.append(_constant(op, value))
        return slots[value]

    for child in block.operations:
        inner = child.operation
        if inner.name == "npu.yield":
            result = slot(inner.operands[0])
            break
        if inner.name == "arith.constant":
            slot(inner.results[0])
            continue
        steps.append((_scalar_function(inner), [slot(value) for value in inner.operands]))
        slots[inner.results[0]] = arguments + len(steps) - 1

    def body(values: Sequence[Any]) -> Any:
        frame = list(values)
        for function, operands in steps:
            frame.append(function(*[frame[i] if i >= 0 else constants[-1 - i] for i in operands]))
        return frame[result] if result >= 0 else constants[-1 - result]

    return body


def _constant(op: ir.Operation, value: ir.Value) -> Any:
    attribute = constant_of(value)
    if attribute is None:
        raise SimulationError(op, f"its region uses {value.get_name()}, which is no constant")
    return _dtype(op, value.type).type(attribute.value)


def _dtype(op: ir.Operation, type_: ir.Type) -> np.dtype:
    try:
        return dtype_of(type_)
    except UnknownType as error:
        raise SimulationError(op, str(error)) from None


def _scalar_function(op: ir.Operation) -> Callable:
    if op.name == "arith.cmpf":
        return FLOAT_COMPARISONS[ir.IntegerAttr(op.attributes["predicate"]).value]
    if op.name == "arith.cmpi":
        return INTEGER_COMPARISONS[ir.IntegerAttr(op.attributes["predicate"]).value]
    if op.name in CONVERSIONS:
        dtype = _dtype(op, op.results[0].type)
        prepare = _unsigned if op.name in UNSIGNED_CONVERSIONS else np.asarray
        return lambda value: prepare(value).astype(dtype)
    if op.name not in FUNCTIONS:
        raise SimulationError(op, "the simulator does not know this scalar op")
    return FUNCTIONS[op.name]
