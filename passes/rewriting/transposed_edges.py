"""Transposes at the edges of kernels, which become a part of the moves of their tiles.

A kernel reads an operand through a transpose, and makes its result for one, where nothing but
reshapes stands between; these change places with the transpose first. Weights are not read so,
since every tile would put them in order again; but large ones, of which a copy in the kernel's
order would take up memory, where one tile covers all positions of the image.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.analysis.permutation import Group, groups, inverse
from mlir_npu.passes.analysis.pointwise import orders_weights_in_calls
from mlir_npu.passes.kernels.walk import definition, users
from mlir_npu.passes.rewriting.dependence import is_prepared
from mlir_npu.passes.rewriting.epilogues import is_compute
from mlir_npu.passes.rewriting.generics import GENERIC
from mlir_npu.passes.rewriting.moves import read_pad
from mlir_npu.passes.rewriting.packing import OP
from mlir_npu.passes.rewriting.transposes import (
    TRANSPOSE,
    marked_transpose,
    permutation_of,
    transpose_source,
)
from mlir_npu.passes.rewriting.values import before, element_type, is_static, replace, shape_of
from mlir_npu.passes.rewriting.views import VIEWS, unviewed, viewed

# Kernels that may read one transposed operand, each by moves of its own, where sram is a cache.
READERS_IN_CACHE = 2


@dataclass(frozen=True)
class Edges:
    """Transposes that kernels read their operands through, and those that they end with."""

    loads: frozenset[ir.Operation]
    stores: frozenset[ir.Operation]

    def __contains__(self, op: ir.Operation) -> bool:
        return op in self.loads or op in self.stores

    def store_of(self, op: ir.Operation) -> ir.Operation | None:
        """The transpose that ends the kernel whose last computation is `op`."""
        return next((user for user in users(op.results[0]) if user in self.stores), None)


def expose_transposes(block: ir.Block) -> None:
    """Let transposes and reshapes change places, so that transposes stand next to computations."""
    for view in list(block.operations):
        op = view.operation
        if op.name == TRANSPOSE and is_static(op.operands[0]):
            _behind_result(op)
    for view in list(block.operations):
        op = view.operation
        if is_compute(op):
            for index, value in enumerate(op.operands):
                if isinstance(value.type, ir.ShapedType) and is_static(value):
                    _before_operand(op, index)


def find_edges(block: ir.Block, *, cached: bool) -> Edges:
    """The transposes of a block that kernels can take in. cached: whether sram is a cache."""
    transposes = [view.operation for view in block.operations if view.operation.name == TRANSPOSE]
    moved = [op for op in transposes if is_static(op.operands[0])]
    stores = frozenset(op for op in moved if _ends_kernel(op))
    loads = {op for op in moved if op not in stores and _is_read_by_kernels(op, cached)}
    if cached:
        loads |= {op for op in moved if _is_read_as_weights(op)}
    return Edges(frozenset(loads), stores)


def _ends_kernel(op: ir.Operation) -> bool:
    source = op.operands[0]
    return is_compute(definition(source)) and users(source) == [op] and not is_prepared(source)


def _is_read_by_kernels(op: ir.Operation, cached: bool) -> bool:
    value = op.results[0]
    readers = [(value, user) for user in users(value)]
    padded = [user for _, user in readers if user.name == "tensor.pad" and read_pad(user)]
    for pad in padded:
        readers.remove((value, pad))
        readers += [(pad.results[0], user) for user in users(pad.results[0])]
    if not readers or (cached and len(readers) > READERS_IN_CACHE) or is_prepared(value):
        return False
    behind_pads = {pad.results[0] for pad in padded}
    return all(_reads_tiles(user, used, used in behind_pads) for used, user in readers)


def _is_read_as_weights(op: ir.Operation) -> bool:
    """Whether one kernel reads large weights through `op`, each of them in one tile only."""
    weights = op.results[0]
    readers = users(weights)
    given = definition(unviewed(op.operands[0])) is None
    if not given or len(readers) != 1 or OP not in readers[0].attributes:
        return False
    kernel = readers[0]
    if [operand == weights for operand in kernel.operands] != [False, True, False]:
        return False
    *taps, _, _ = shape_of(weights)
    *positions, blocks, _ = shape_of(kernel.results[0])
    size = math.prod(shape_of(weights)) * element_type(weights).width // 8
    one_tap = math.prod(taps) == blocks
    return one_tap and orders_weights_in_calls(size, math.prod(positions))


def _reads_tiles(op: ir.Operation, value: ir.Value, padded: bool) -> bool:
    """Whether the kernel of `op` moves tiles of `value` in the order of its computation."""
    if not is_compute(op) or value in list(op.operands)[-len(op.results) :]:
        return False
    if op.name == GENERIC and OP not in op.attributes:
        return not padded
    return [operand == value for operand in op.operands].index(True) == 0


def _behind_result(op: ir.Operation) -> None:
    """transpose(view(x)) becomes view(transpose'(x)) where x is computed."""
    source = op.operands[0]
    origin = unviewed(source)
    if origin == source or not is_compute(definition(origin)) or not _only_use(origin, op):
        return
    grouping = groups(shape_of(origin), shape_of(source))
    if grouping is None or (parts := _parts(grouping, shape_of(source), of_target=True)) is None:
        return
    moved = [dim for d in permutation_of(op) for dim in parts[d]]
    with before(op):
        replace(op, [viewed(marked_transpose(origin, moved), shape_of(op.results[0]))])


def _before_operand(op: ir.Operation, index: int) -> None:
    """An operand view(transpose(x)) becomes transpose'(view'(x))."""
    value = op.operands[index]
    origin = unviewed(value)
    found = transpose_source(origin)
    if origin == value or found is None or not _only_use(origin, op):
        return
    source, permutation = found
    grouping = groups(shape_of(origin), shape_of(value))
    if grouping is None or (parts := _parts(grouping, shape_of(origin), of_target=False)) is None:
        return
    moved = [dim for d in inverse(permutation) for dim in parts[d]]
    extents = shape_of(value)
    with before(op):
        view = viewed(source, [extents[dim] for dim in moved])
        op.operands[index] = marked_transpose(view, inverse(moved))


def _parts(
    grouping: Sequence[Group], shape: Sequence[int], *, of_target: bool
) -> list[tuple[int, ...]] | None:
    """For each dimension of one side of a reshape, of `shape`, the dimensions of the other side.

    None where more than one dimension wider than 1 is in a group.
    """
    parts: list[tuple[int, ...]] = [()] * len(shape)
    for group in grouping:
        own, others = (group.target, group.source) if of_target else (group.source, group.target)
        wide = [d for d in own if shape[d] != 1]
        if len(wide) > 1:
            return None
        parts[(wide or own)[0]] = others
    return parts


def _only_use(origin: ir.Value, user: ir.Operation) -> bool:
    """Whether a chain of views leads from `origin` to `user` and nowhere else."""
    while (found := users(origin)) != [user]:
        if len(found) != 1 or found[0].name not in VIEWS:
            return False
        origin = found[0].results[0]
    return True
