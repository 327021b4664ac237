"""A matrix product with one row reads its weights where they lie.

Each weight is used once, so putting it in another order in every call would take longer than the
product, and an ordered copy takes as much memory as the weights. With the reduction along rows of
the stored weights, the product is a sum of each row times the vector.
"""

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.rewriting.generics import body_of, build_with_maps
from mlir_npu.passes.rewriting.packing import has_plain_maps
from mlir_npu.passes.rewriting.transposes import transpose_source
from mlir_npu.passes.rewriting.values import (
    before,
    fill_scalar,
    filled,
    is_static,
    replace,
    shape_of,
)
from mlir_npu.passes.rewriting.views import viewed

# Shorter sums spend their time on adding up the lanes of a register.
SHORTEST = 256


def to_row_sums(op: ir.Operation) -> bool:
    """Replace a `linalg.matmul` with one row by a generic over its stored weights, if it is one:

    %t = linalg.transpose ins(%w : NxC) permutation = [1, 0]
    %r = linalg.matmul ins(%x, %t : 1xC, CxN) outs(%zero : 1xN)
    ->
    %v = tensor.collapse_shape %x : 1xC into C
    %s = linalg.generic {(n, c) -> (n, c), (c), (n)} ins(%w, %v) outs(%zero : N)
    %r = tensor.expand_shape %s : N into 1xN
    """
    if not has_plain_maps(op):
        return False
    image, weights, init = op.operands
    stored = transpose_source(weights)
    if stored is None or stored[1] != (1, 0) or not is_static(image) or not is_static(stored[0]):
        return False
    rows, depth = shape_of(image)
    scalar = fill_scalar(init)
    if rows != 1 or depth < SHORTEST or scalar is None:
        return False
    n, c = ir.AffineDimExpr.get(0), ir.AffineDimExpr.get(1)
    maps = [ir.AffineMap.get(2, 0, dims) for dims in ([n, c], [c], [n])]
    with before(op):
        operands = [stored[0], viewed(image, [depth])]
        zeros = filled(shape_of(stored[0])[:1], scalar)
        sums = build_with_maps(operands, [zeros], maps, ["parallel", "reduction"], body_of(op))
        replace(op, [viewed(sums.results[0], shape_of(init))])
    return True
