"""Saved statistics of halves, whose type PyTorch gets wrong.

Normalizations of bf16 and f16 by weights of f32 save means and deviations in f32, and graphs say
that they are halves. Compiled code goes by the graph, so such calls are left to eager, which goes
by the tensors.
"""

from __future__ import annotations

import operator

from torch import fx

from mlir_npu.lowering.half_precision import HALVES

_FORWARD = frozenset(
    {
        *("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional"),
        *("_native_batch_norm_legit_no_training", "_batch_norm_no_update", "native_layer_norm"),
        "native_group_norm",
    }
)
_BACKWARD = frozenset(
    {"native_batch_norm_backward", "native_layer_norm_backward", "native_group_norm_backward"}
)


def mistyped_statistics(node: fx.Node) -> str | None:
    """Why a normalization, or the backward of one, is for eager."""
    name = getattr(node.target, "_opname", "")
    backward = name in _BACKWARD
    if not backward and (name not in _FORWARD or not _saves(node)):
        return None
    dtype = node.args[1 if backward else 0].meta["val"].dtype
    return f"its saved statistics are not {dtype}, as the graph says" if dtype in HALVES else None


def _saves(node: fx.Node) -> bool:
    reads = (user for user in node.users if user.target is operator.getitem)
    return any(user.args[1] and user.users for user in reads)
