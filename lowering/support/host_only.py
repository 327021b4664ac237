"""Calls that have no rule on purpose, and why they run on the host."""

from __future__ import annotations

from torch import fx

_RANDOM = "it draws random numbers, in the order and from the generator that eager uses"
_LABELS = "it picks elements by labels, integers that are known at run time only"
_INDICES = "it reads or writes at positions that are known at run time only"
_UNEQUAL = "it takes maxima of windows by their positions, which the NPU does not make"
_SORTS = "it orders elements by their values"
_CHECKS = "it raises for inputs outside of [0, 1], as only the host can"
_SCANS = "each of its elements depends on the one before"

_REASONS = {
    **dict.fromkeys(("native_dropout", "bernoulli", "rand_like", "randn_like"), _RANDOM),
    **dict.fromkeys(("rand", "randn", "exponential", "rrelu_with_noise_functional"), _RANDOM),
    **dict.fromkeys(("nll_loss_forward", "nll_loss_backward"), _LABELS),
    **dict.fromkeys(("nll_loss2d_forward", "nll_loss2d_backward"), _LABELS),
    **dict.fromkeys(("embedding", "embedding_dense_backward", "_embedding_bag"), _INDICES),
    **dict.fromkeys(("gather", "scatter", "scatter_add", "max_unpool2d", "max_unpool3d"), _INDICES),
    **dict.fromkeys(("grid_sampler_2d", "grid_sampler_2d_backward", "index_fill"), _INDICES),
    **dict.fromkeys(
        ("_embedding_bag_dense_backward", "value_selecting_reduction_backward"), _INDICES
    ),
    **dict.fromkeys(("max_pool2d_with_indices_backward",), _UNEQUAL),
    **dict.fromkeys(("max_pool3d_with_indices_backward",), _UNEQUAL),
    **dict.fromkeys(("adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward"), _UNEQUAL),
    **dict.fromkeys(("topk", "sort", "median", "kthvalue", "argmax", "argmin"), _SORTS),
    **dict.fromkeys(("max.dim", "min.dim"), "it makes the positions of what it finds"),
    **dict.fromkeys(("cumsum", "cumprod", "logcumsumexp"), _SCANS),
    "binary_cross_entropy": _CHECKS,
}


def why_on_host(node: fx.Node) -> str | None:
    name = str(node.target).removeprefix("aten.")
    return _REASONS.get(name) or _REASONS.get(name.rsplit(".", 1)[0])
