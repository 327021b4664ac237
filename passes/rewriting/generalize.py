"""Named linalg operations as generics, for those that no kernel knows by name."""

from mlir_npu.dialect.bindings import ir
from mlir_npu.passes.rewriting.generics import body_of, build_with_maps
from mlir_npu.passes.rewriting.loops import indexing_maps
from mlir_npu.passes.rewriting.values import before, replace

_KEPT = frozenset(
    {
        "linalg.copy",
        "linalg.depthwise_conv_2d_nhwc_hwc",
        "linalg.fill",
        "linalg.generic",
        "linalg.pooling_nhwc_max",
        "linalg.pooling_nhwc_sum",
        "linalg.transpose",
    }
)


def generalize(op: ir.Operation) -> ir.Operation:
    """`op` as a generic, or `op` itself if a kernel knows it by name or it has no loops."""
    if op.name in _KEPT or not op.name.startswith("linalg.") or len(op.regions) != 1:
        return op
    maps = indexing_maps(op)
    if maps is None:
        return op
    count = len(op.results)
    parallel = {
        e.position for m in maps[-count:] for e in m.results if isinstance(e, ir.AffineDimExpr)
    }
    kinds = ["parallel" if loop in parallel else "reduction" for loop in range(maps[0].n_dims)]
    operands = list(op.operands)
    with before(op):
        new = build_with_maps(operands[:-count], operands[-count:], maps, kinds, body_of(op))
    replace(op, list(new.results))
    return new
