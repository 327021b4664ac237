"""How ATen calls are spelled before torch-mlir sees them.

A region is traced again with `REGION_DECOMPOSITIONS`. What it says of f32 is only what torch-mlir
lowers wrongly (NaN lost in clamps), slowly (comparisons with numbers in f64, an assertion in batch
normalization), or in a form that our passes do not want (bias as the initial value of a
convolution). Everything else that the support rules let through it lowers well by itself. Calls on
bf16 and f16 are made in f32.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from mlir_npu.lowering import (  # noqa: F401  (imported for what they register)
    decompose_activation,
    decompose_activation_backward,
    decompose_adaptive_pooling,
    decompose_attention,
    decompose_comparison,
    decompose_contraction,
    decompose_convolution_backward,
    decompose_elementwise,
    decompose_gather,
    decompose_loss,
    decompose_max_pool_backward,
    decompose_normalization,
    decompose_normalization_backward,
    decompose_pooling,
    decompose_pooling_backward,
    decompose_reduction,
    decompose_scatter,
    decompose_shape,
    decompose_volume,
)
from mlir_npu.lowering.decomposition_table import TABLE
from mlir_npu.lowering.half_precision import in_single_precision
from mlir_npu.lowering.support import all_rules

NPU_DECOMPOSITIONS: dict[torch._ops.OpOverload, Callable] = dict(TABLE)

# These only move elements, so they take halves as they are.
_MOVES = frozenset(
    {
        *("_to_copy", "_unsafe_index", "_unsafe_view", "alias", "cat", "clone", "constant_pad_nd"),
        *("contiguous", "copy", "detach", "expand", "flatten", "im2col", "index", "index_select"),
        *("lift_fresh", "lift_fresh_copy", "permute", "pixel_shuffle", "pixel_unshuffle"),
        *("reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "repeat"),
        *("replication_pad1d", "replication_pad2d", "replication_pad3d", "reshape", "roll"),
        *("select", "select_scatter", "slice", "slice_scatter", "split", "split_with_sizes"),
        *("squeeze", "stack", "t", "transpose", "unbind", "unsqueeze", "view", "where"),
    }
)


def _of_halves() -> dict[torch._ops.OpOverload, Callable]:
    found = {}
    for name in all_rules():
        namespace, operator, overload = name.split(".")
        if namespace == "aten" and operator not in _MOVES:
            call = getattr(getattr(torch.ops.aten, operator), overload)
            found[call] = in_single_precision(call, TABLE.get(call))
    return found


# The same, and bf16 and f16 computed in f32 and rounded when a call is done.
REGION_DECOMPOSITIONS: dict[torch._ops.OpOverload, Callable] = NPU_DECOMPOSITIONS | _of_halves()
