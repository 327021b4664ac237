"""How ATen calls of host parts are spelled before torch-mlir sees them.

First what torch-mlir lowers to other results than eager's (found by the parity tests), then what it
lowers well after torch's own decompositions, then what regions use, for tensors of floats.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor, fx
from torch._decomp import get_decompositions

from mlir_npu.lowering.decompose_comparison import maximum, minimum
from mlir_npu.lowering.decompositions import NPU_DECOMPOSITIONS
from mlir_npu.lowering.fallback.host_elementwise import (
    expm1,
    hardswish_backward,
    hardtanh_backward,
    isnan,
    log1p,
    logical,
    logical_not,
    neg,
    pow_scalar,
    relu,
    sgn,
    to_copy,
    trunc,
)
from mlir_npu.lowering.fallback.host_normalization import (
    batch_norm_functional,
    native_group_norm,
    var,
    var_mean,
)
from mlir_npu.lowering.fallback.llvm_ops import ARITHMETIC
from mlir_npu.lowering.half_precision import in_single_precision
from mlir_npu.lowering.support.rules import find_rule

aten = torch.ops.aten


def split(x: Tensor, size: int, dim: int = 0) -> list[Tensor]:
    extent = x.shape[dim]
    return [
        aten.slice.Tensor(x, dim, low, min(low + size, extent)) for low in range(0, extent, size)
    ]


def split_with_sizes(x: Tensor, sizes: list[int], dim: int = 0) -> list[Tensor]:
    lows = itertools.accumulate(sizes, initial=0)
    return [aten.slice.Tensor(x, dim, low, low + size) for low, size in zip(lows, sizes)]


def unbind(x: Tensor, dim: int = 0) -> list[Tensor]:
    return [aten.select.int(x, dim, index) for index in range(x.shape[dim])]


def _for_floats(decompose: Callable) -> Callable:
    """Regions compute on floats: their decompositions would turn the 0.5 in `integers * 0.5` into
    0."""

    def decompose_floats(*args, **kwargs):
        tensors = [a for a in args if isinstance(a, Tensor)]
        if not tensors or not all(tensor.is_floating_point() for tensor in tensors):
            return NotImplemented
        return decompose(*args, **kwargs)

    return decompose_floats


_TORCH = [
    aten.threshold_backward, aten.silu_backward, aten.gelu_backward, aten.sigmoid_backward,
    aten.tanh_backward, aten.hardsigmoid_backward, aten.softplus_backward, aten.mish_backward,
    aten.leaky_relu_backward, aten.elu_backward, aten._softmax, aten._log_softmax,
    aten._softmax_backward_data, aten._log_softmax_backward_data, aten.native_layer_norm,
    aten.native_layer_norm_backward, aten.native_group_norm_backward,
    aten.native_batch_norm_backward, aten.addcmul, aten.addcdiv, aten.lerp, aten.square,
    aten.mse_loss, aten.mse_loss_backward, aten.log_sigmoid_forward, aten.log_sigmoid_backward,
    aten.glu, aten.glu_backward, aten.std, aten.std_mean, aten.logsumexp,
    aten.binary_cross_entropy_with_logits, aten.smooth_l1_loss, aten.huber_loss,
]  # fmt: skip
_TORCH_MOVES = [
    aten.zeros_like, aten.ones_like, aten.masked_fill, aten.stack, aten.new_zeros, aten.new_ones,
    aten.new_full, aten.select_backward, aten.slice_backward, aten.tril, aten.triu,
]  # fmt: skip

_AS_ON_NPU = {
    overload: _for_floats(decompose) for overload, decompose in NPU_DECOMPOSITIONS.items()
}
_ARITHMETIC: dict[torch._ops.OpOverload, Callable] = {
    **_AS_ON_NPU,
    **get_decompositions(_TORCH),
    aten.relu.default: relu,
    aten.maximum.default: maximum,
    aten.minimum.default: minimum,
    aten.trunc.default: trunc,
    aten.sgn.default: sgn,
    aten.hardtanh_backward.default: hardtanh_backward,
    aten.hardswish_backward.default: hardswish_backward,
    aten.isnan.default: isnan,
    aten.var_mean.correction: var_mean,
    aten.var.correction: var,
    aten.native_group_norm.default: native_group_norm,
    aten._native_batch_norm_legit_functional.default: batch_norm_functional,
    aten.expm1.default: expm1,
    aten.log1p.default: log1p,
    aten.logical_not.default: logical_not,
    aten.logical_and.default: logical("logical_and"),
    aten.logical_or.default: logical("logical_or"),
    aten.logical_xor.default: logical("logical_xor"),
}
# respellings for the NPU that only move elements
_NPU_MOVES = {
    *("view", "_unsafe_view", "squeeze", "unbind", "stack", "roll", "copy", "index"),
    *("_unsafe_index", "index_select", "slice_scatter", "select_scatter", "pixel_shuffle"),
    *("pixel_unshuffle", "im2col", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d"),
    *("replication_pad1d", "replication_pad2d", "replication_pad3d"),
}

# what treats halves by itself, or only moves them
_OTHERS: dict[torch._ops.OpOverload, Callable] = {
    **{o: call for o, call in _AS_ON_NPU.items() if o._opname in _NPU_MOVES},
    **get_decompositions(_TORCH_MOVES),
    aten.split.Tensor: split,
    aten.split_with_sizes.default: split_with_sizes,
    aten.unbind.int: unbind,
    aten.pow.Tensor_Scalar: pow_scalar,
    aten._to_copy.default: to_copy,
    aten.neg.default: neg,
}
# what changes nothing but the sign bit, of halves too
_SIGNS = {aten.neg.default, aten.abs.default}

HOST_DECOMPOSITIONS: dict[torch._ops.OpOverload, Callable] = _OTHERS | {
    overload: in_single_precision(overload, _ARITHMETIC.get(overload))
    for overload in (_ARITHMETIC.keys() | ARITHMETIC) - _OTHERS.keys() - _SIGNS
}


_AT_POSITIONS = frozenset(
    {
        *(aten.index.Tensor, aten._unsafe_index.Tensor, aten.index_select.default),
        *(aten.index_put.default, aten._unsafe_index_put.default),
    }
)


def explain_respelling(node: fx.Node) -> str | None:
    """What the NPU's rule has against a call that is respelled as for the NPU: such respellings, of
    calls of floats and at positions, are right only where the rule allows the call."""
    shared = _AS_ON_NPU.get(node.target)
    rule = find_rule(node)
    own = _OTHERS.get(node.target) or _ARITHMETIC.get(node.target)
    if rule is None or shared is None or own is not shared:
        return None
    values = [operand.meta.get("val") for operand in node.all_input_nodes]
    static = all(map(_has_static_elements, values))
    if node.target in _AT_POSITIONS:
        return rule(node) if static else "an operand has no dimensions, or none of known sizes"
    floats = all(isinstance(v, Tensor) and v.is_floating_point() for v in values)
    return rule(node) if floats and static else None


def _has_static_elements(value: object) -> bool:
    """What rules take for granted: dimensions of known sizes that are not 0."""
    shape = getattr(value, "shape", ())
    return len(shape) > 0 and all(isinstance(size, int) and size for size in shape)
