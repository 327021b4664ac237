"""Calls that come apart into several for `decomposition_cases.CASES`: normalizations with the
statistics of their input, attention, movement of elements, volumes."""

from __future__ import annotations

import itertools

import torch

aten = torch.ops.aten
CASES: dict[str, tuple[torch._ops.OpOverload, tuple, dict]] = {}
_numbers = torch.Generator().manual_seed(2)
NAN, INF = float("nan"), float("inf")


def case(name: str, overload: torch._ops.OpOverload, *arguments: object, **options: object) -> None:
    CASES[name] = (overload, arguments, options)


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=_numbers)


ROWS = torch.tensor([[NAN, 1, 2, 3], [INF, 1, -INF, 0], [-INF] * 4, [-1e30, 1e30, 88, -0.0]])
IMAGE, VOLUME = rand(2, 8, 7, 9) + 0.5, rand(2, 4, 5, 7, 6)


def _normalizations() -> None:
    eight = rand(8), rand(8)
    case("layer norm", aten.native_layer_norm.default, rand(3, 17, 8) + 0.5, [8], *eight, 1e-5)
    case("layer norm plain", aten.native_layer_norm.default, IMAGE, [7, 9], None, None, 1e-5)
    case("layer norm of channels", aten.native_layer_norm.default,
         IMAGE.permute(0, 2, 3, 1), [8], *eight, 1e-5)  # fmt: skip
    for groups in (1, 4, 8):
        case(f"group norm {groups}", aten.native_group_norm.default,
             IMAGE, *eight, 2, 8, 63, groups, 1e-5)  # fmt: skip
    case("group norm 1d", aten.native_group_norm.default, IMAGE[0], None, None, 8, 7, 9, 7, 1e-5)
    four = rand(4), None
    case("group norm 3d", aten.native_group_norm.default, VOLUME, *four, 2, 4, 210, 2, 1e-5)
    last_image = IMAGE.contiguous(memory_format=torch.channels_last)
    case("group norm channels_last", aten.native_group_norm.default,
         last_image, *eight, 2, 8, 63, 2, 1e-5)  # fmt: skip
    case("batch norm of the batch", aten._native_batch_norm_legit.no_stats,
         IMAGE, *eight, True, 0.1, 1e-5)  # fmt: skip
    case("batch norm training", aten._native_batch_norm_legit_functional.default,
         IMAGE, *eight, rand(8), rand(8).abs(), True, 0.1, 1e-5)  # fmt: skip


def _attention() -> None:
    for dim in (-1, 1):
        case(f"softmax {dim}", aten._softmax.default, rand(2, 3, 17, 5), dim, False)
        case(f"log softmax {dim}", aten._log_softmax.default, rand(2, 3, 17, 5), dim, False)
    case("softmax special", aten._softmax.default, ROWS, -1, False)
    case("safe softmax", aten._safe_softmax.default, ROWS.nan_to_num(0, 3, -INF), -1)
    attend = aten._scaled_dot_product_flash_attention_for_cpu.default
    query, key, value = rand(2, 4, 7, 8), rand(2, 4, 9, 8), rand(2, 4, 9, 8)
    case("attention", attend, query, key, value)
    case("attention causal", attend, query, key, value, 0.0, True)
    case("attention causal, square, scaled", attend, query, query, query, 0.0, True, scale=0.3)
    mask = rand(2, 1, 7, 9)
    mask[:, :, 3] = -INF
    mask[0, :, 5, 4:] = -INF
    case("attention masked", attend, query, key, value, attn_mask=mask)
    case("attention shared keys", attend, query, key[:, :2], value[:, :2], attn_mask=mask)


def _reductions() -> None:
    for name in ("amax", "amin"):
        case(f"{name} special", getattr(aten, name).default, ROWS, [-1], True)
        case(f"{name} over space", getattr(aten, name).default, IMAGE, [2, 3])
    case("norm", aten.linalg_vector_norm.default, IMAGE, 2, [-1], True)


def _movement() -> None:
    case("stack", aten.stack.default, [rand(3, 4), rand(3, 4)], 1)
    case("unbind", aten.unbind.int, rand(3, 4, 5), 1)
    case("roll", aten.roll.default, IMAGE, [2, -3], [2, 3])
    case("roll by nothing", aten.roll.default, IMAGE, [7, 1], [2, 0])
    case("pixel shuffle", aten.pixel_shuffle.default, IMAGE, 2)
    case("pixel unshuffle", aten.pixel_unshuffle.default, rand(3, 2, 4, 6), 2)
    plain = [1, 1], [0, 0]
    case("unfold", aten.im2col.default, rand(2, 3, 4, 6), [2, 3], *plain, [2, 3])
    case("fold", aten.col2im.default, rand(2, 18, 4), [4, 6], [2, 3], *plain, [2, 3])
    case("slice scatter", aten.slice_scatter.default, IMAGE, rand(2, 8, 3, 9), 2, 2, 5)
    case("slice scatter, all", aten.slice_scatter.default, IMAGE, rand(2, 8, 7, 9), 2, 0, 2**63 - 1)
    case("select scatter", aten.select_scatter.default, IMAGE, rand(2, 7, 9), 1, -2)
    case("copy", aten.copy.default, IMAGE, rand(8, 1, 9))
    up, odd = torch.arange(14) // 2, torch.tensor([0, 0, 0, 1, 2, 2, 4, 6, 8, 8, 7])
    case("index rows", aten._unsafe_index.Tensor, IMAGE, [None, None, up])
    case("index a grid", aten.index.Tensor, IMAGE, [None, None, up[:, None], odd])
    case("index from the end", aten.index.Tensor, IMAGE, [None, torch.tensor([-1, 0, -3])])
    case("index select", aten.index_select.default, IMAGE, -1, odd)
    for name, paddings in {
        "reflection": ([6, 2], [1, 8, 0, 3]),
        "replication": ([9, 2], [1, 8, 0, 3]),
    }.items():
        case(f"{name} 1d", getattr(aten, f"{name}_pad1d").default, rand(2, 3, 7), paddings[0])
        case(f"{name} 2d", getattr(aten, f"{name}_pad2d").default, IMAGE, paddings[1])
        volume = getattr(aten, f"{name}_pad3d").default
        case(f"{name} 3d", volume, VOLUME, [1, 2, 0, 1, 3, 1])


def _volumes() -> None:
    # name: weight, stride, padding, dilation, groups; input channels 4
    variants = {
        "plain": ((6, 4, 3, 3, 3), [1, 2, 2], [1, 1, 1], [1, 1, 1], 1),
        "time": ((6, 4, 3, 1, 1), [2, 1, 1], [1, 0, 0], [2, 1, 1], 1),
        "space grouped": ((6, 2, 1, 3, 2), [1, 1, 1], [0, 1, 0], [1, 2, 1], 2),
        "depthwise": ((8, 1, 2, 3, 3), [2, 1, 1], [1, 1, 1], [1, 1, 1], 4),
        "pixels": ((6, 4, 1, 1, 1), [1, 1, 1], [0, 0, 0], [1, 1, 1], 1),
    }
    for name, (weight, stride, padding, dilation, groups) in variants.items():
        case(f"conv 3d {name}", aten.convolution.default, VOLUME, rand(*weight), rand(weight[0]),
             stride, padding, dilation, False, [0, 0, 0], groups)  # fmt: skip
    windows = [[2, 3, 2], [2, 2, 1], [1, 1, 0]]
    for ceil in (False, True):
        case(f"max pool 3d {ceil}", aten.max_pool3d_with_indices.default,
             VOLUME, *windows, [1, 1, 2], ceil)  # fmt: skip
    for ceil, count_pad, divisor in itertools.product([False, True], [False, True], [None, 3]):
        case(f"avg pool 3d {ceil} {count_pad} {divisor}", aten.avg_pool3d.default,
             VOLUME, *windows, ceil, count_pad, divisor)  # fmt: skip
    case("avg pool 3d one number", aten.avg_pool3d.default, VOLUME, [2])


for _family in (_normalizations, _attention, _reductions, _movement, _volumes):
    _family()
