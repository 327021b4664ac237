"""Transposed convolutions and gradients for `decomposition_cases.CASES`."""

from __future__ import annotations

import torch

import mlir_npu.lowering.max_pool_gradient  # noqa: F401  (registers the operator)

aten = torch.ops.aten
CASES: dict[str, tuple[torch._ops.OpOverload, tuple, dict]] = {}
_numbers = torch.Generator().manual_seed(1)


def case(name: str, overload: torch._ops.OpOverload, *arguments: object, **options: object) -> None:
    CASES[name] = (overload, arguments, options)


def integers(*shape: int) -> torch.Tensor:
    """Small ones, whose sums of products are exact in any order."""
    return torch.randint(-3, 4, shape, generator=_numbers).float()


def convolution(
    name: str,
    x: tuple[int, ...],
    weight: tuple[int, ...],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int = 1,
    more: list[int] | None = None,
    wanted: str | None = None,
) -> None:
    """more: output padding of a transposed convolution; wanted: its gradient by input, weight or
    bias ("i", "w", "b"), or none, the convolution itself."""
    tensors = integers(*x), integers(*weight)
    rest = stride, padding, dilation, more is not None, more or [0] * len(stride), groups
    if wanted is None:
        case(f"conv {name}", aten.convolution.default, *tensors, None, *rest)
        return
    out = aten.convolution(*tensors, None, *rest)
    mask = [letter == wanted for letter in "iwb"]
    tensors = integers(*out.shape), *tensors
    case(
        f"conv backward {name}",
        aten.convolution_backward.default,
        *tensors,
        [out.shape[1]],
        *rest,
        mask,
    )


_ONES, _ZEROS, _TWOS = [1, 1], [0, 0], [2, 2]
_PLAIN = (2, 4, 9, 8), (6, 4, 3, 3)
_SMALL = 2, 4, 5, 6
convolution("transposed", _SMALL, (4, 3, 3, 3), _ONES, _ONES, _ONES, more=_ZEROS)
convolution("transposed by 2", _SMALL, (4, 3, 3, 2), _TWOS, [1, 0], [1, 2], more=_ONES)
convolution("transposed, phases alike", _SMALL, (4, 3, 2, 2), _TWOS, _ZEROS, _ONES, 2, _ZEROS)
convolution("transposed depthwise", _SMALL, (4, 1, 3, 3), _TWOS, _ONES, _ONES, 4, [1, 0])
convolution("transposed, sparse", _SMALL, (4, 3, 2, 3), [4, 3], _ZEROS, _ONES, more=[2, 1])
convolution(
    "transposed, in its padding", (1, 2, 1, 1), (2, 3, 2, 2), [3, 3], _ONES, _ONES, 1, _TWOS
)
convolution("transposed 1d", (2, 4, 9), (4, 6, 4), [3], [1], [1], more=[2])
for _wanted, _name in {"i": "by input", "w": "by weight"}.items():
    convolution(_name, *_PLAIN, _ONES, _ONES, _ONES, wanted=_wanted)
    convolution(f"{_name}, strided", *_PLAIN, [2, 3], _ONES, [2, 1], wanted=_wanted)
    convolution(f"{_name}, wide padding", *_PLAIN, _ONES, [3, 4], _ONES, wanted=_wanted)
    convolution(f"{_name}, 1x1", _PLAIN[0], (6, 4, 1, 1), _TWOS, _ZEROS, _ONES, wanted=_wanted)
    convolution(
        f"{_name}, grouped", _PLAIN[0], (6, 2, 3, 3), _ONES, _ONES, _ONES, 2, wanted=_wanted
    )
    convolution(
        f"{_name}, depthwise", _PLAIN[0], (4, 1, 3, 3), _TWOS, _ONES, _ONES, 4, wanted=_wanted
    )
    convolution(
        f"{_name}, multiplier", _PLAIN[0], (8, 1, 3, 3), _ONES, _ONES, _ONES, 4, wanted=_wanted
    )
    convolution(
        f"{_name}, transposed", _SMALL, (4, 3, 3, 3), _TWOS, _ONES, _ONES, 1, [1, 0], _wanted
    )
    convolution(f"{_name}, 1d", (2, 4, 9), (6, 4, 3), [2], [1], [1], wanted=_wanted)
convolution("by bias", *_PLAIN, _ONES, _ONES, _ONES, wanted="b")
# name: weight, stride, padding, dilation, groups, output padding (None: not transposed)
_VOLUMES = {
    "3d": ((6, 4, 3, 3, 2), [1, 2, 1], [1, 1, 0], [1, 1, 2], 1, None),
    "3d strided in time": ((6, 2, 3, 2, 3), [2, 1, 3], [0, 1, 2], [2, 1, 1], 2, None),
    "3d over time": ((6, 4, 3, 1, 1), [2, 1, 1], [1, 0, 0], [1, 1, 1], 1, None),
    "3d depthwise": ((4, 1, 2, 3, 3), [1, 1, 1], [1, 1, 1], [1, 1, 1], 4, None),
    "3d transposed": ((4, 3, 3, 3, 2), [2, 2, 1], [1, 1, 0], [1, 1, 1], 1, [1, 0, 0]),
    "3d transposed grouped": ((4, 3, 2, 2, 3), [2, 3, 1], [0, 0, 1], [1, 1, 2], 2, [0, 0, 0]),
}
for _name, (_weight, *_rest) in _VOLUMES.items():
    for _wanted in "iw" if _rest[-1] is None else (None, "i", "w"):
        convolution(f"{_name} {_wanted}", (2, 4, 5, 6, 7), _weight, *_rest, wanted=_wanted)

NAN, INF = float("nan"), float("inf")
SPECIAL = torch.tensor(
    [NAN, INF, -INF, 0.0, -0.0, 1e-5, -1e-5, 3, -3, 0.5, -0.5, 6, -1, 1, 20, 30, -30, 2]
).reshape(1, 2, 3, 3)
FINITE = torch.where(SPECIAL.isinf(), 7.0, SPECIAL)
GRAD = torch.randn(SPECIAL.shape, generator=_numbers)
for _name in "hardswish hardsigmoid silu mish".split():
    # The limits of these are products of 0 and infinity in one formula and not in another.
    case(f"{_name} backward", getattr(aten, f"{_name}_backward").default, GRAD, FINITE)
for _name in "sigmoid tanh".split():
    case(f"{_name} backward", getattr(aten, f"{_name}_backward").default, GRAD, GRAD.sigmoid())
case("relu backward", aten.threshold_backward.default, GRAD, SPECIAL, 0)
case("threshold backward", aten.threshold_backward.default, GRAD, SPECIAL, 0.5)
case("relu6 backward", aten.hardtanh_backward.default, GRAD, SPECIAL, 0.0, 6.0)
case("leaky_relu backward", aten.leaky_relu_backward.default, GRAD, SPECIAL, 0.1, False)
case("gelu backward", aten.gelu_backward.default, GRAD, FINITE)
case("gelu tanh backward", aten.gelu_backward.default, GRAD, FINITE, approximate="tanh")
case("elu backward", aten.elu_backward.default, GRAD, 1.5, 2, 0.5, False, FINITE)
case("elu backward of the result", aten.elu_backward.default, GRAD, 1, 1, 1, True, GRAD)
case("softplus backward", aten.softplus_backward.default, GRAD, FINITE, 2.0, 5.0)
_WEIGHT = torch.randn(1, 2, 1, 1, generator=_numbers)
case("prelu backward", aten._prelu_kernel_backward.default, GRAD, SPECIAL, _WEIGHT)

IMAGE = torch.randn(2, 4, 7, 9, generator=_numbers)
_STATISTICS = [torch.rand(4, generator=_numbers) + 0.5 for _ in range(5)]
for _train in (True, False):
    case(
        f"batch norm backward {'training' if _train else 'evaluation'}",
        aten.native_batch_norm_backward.default,
        torch.randn(2, 4, 7, 9, generator=_numbers),
        IMAGE,
        *_STATISTICS,
        _train,
        1e-5,
        [True, True, True],
    )
for _arguments in (
    ([2, 2], [2, 2], [0, 0], False, True, None),
    ([3, 2], [2, 3], [1, 1], True, False, None),
    ([3, 3], [1, 2], [1, 0], False, True, 5),
    ([2, 2], [], [0, 0], True, True, None),
):
    _out = aten.avg_pool2d(IMAGE, *_arguments)
    _grad = torch.randn(_out.shape, generator=_numbers)
    case(
        f"avg pool backward {_arguments}",
        aten.avg_pool2d_backward.default,
        _grad,
        IMAGE,
        *_arguments,
    )
_grad = torch.randn(2, 4, 2, 3, generator=_numbers)
_image = torch.randn(2, 4, 8, 12, generator=_numbers)
case("adaptive pool backward", aten._adaptive_avg_pool2d_backward.default, _grad, _image)

_VOLUME = torch.randn(2, 4, 5, 6, 7, generator=_numbers)
for _arguments in (
    ([2, 3, 2], [2, 2, 1], [1, 1, 0], True, False, None),
    ([2], [], [0], False, True, None),
    ([3, 2, 2], [1, 2, 2], [0, 1, 1], False, True, 5),
):
    _out = aten.avg_pool3d(_VOLUME, *_arguments)
    _grad = torch.randn(_out.shape, generator=_numbers)
    case(
        f"avg pool 3d backward {_arguments}",
        aten.avg_pool3d_backward.default,
        _grad,
        _VOLUME,
        *_arguments,
    )

_GRAD = torch.randn(IMAGE.shape, generator=_numbers)
for _dims, _affine, _mask in ((1, True, "iwb"), (2, True, "iwb"), (3, False, "i"), (1, True, "i")):
    _shape = list(IMAGE.shape[-_dims:])
    _parameters = [torch.randn(_shape, generator=_numbers) if _affine else None for _ in range(2)]
    _, *_saved = aten.native_layer_norm(IMAGE, _shape, *_parameters, 1e-5)
    _mask = [letter in _mask for letter in "iwb"]
    case(
        f"layer norm backward {_dims} {_affine} {_mask}",
        aten.native_layer_norm_backward.default,
        _GRAD, IMAGE, _shape, *_saved, *_parameters, _mask,
    )  # fmt: skip
for _x, _groups, _affine in (
    (IMAGE, 2, True),
    (IMAGE, 4, False),
    (torch.randn(3, 12, generator=_numbers), 2, True),
    (_VOLUME, 1, True),
):
    _weight = torch.randn(_x.shape[1], generator=_numbers) if _affine else None
    _sizes = _x.shape[0], _x.shape[1], _x[0, 0].numel(), _groups
    _, *_saved = aten.native_group_norm(_x, _weight, None, *_sizes, 1e-5)
    case(
        f"group norm backward {_x.dim()}d {_groups} {_affine}",
        aten.native_group_norm_backward.default,
        torch.randn(_x.shape, generator=_numbers),
        _x, *_saved, _weight, *_sizes, [True, _affine, _affine],
    )  # fmt: skip
for _dim in (1, -1):
    _float = torch.float32
    for _name in ("_softmax", "_log_softmax"):
        _y = getattr(aten, _name)(IMAGE * 3, _dim, False)
        _backward = getattr(aten, f"{_name}_backward_data").default
        case(f"{_name} backward {_dim}", _backward, _GRAD, _y, _dim, _float)
for _dim, *_bounds in ((1, 1, 3, 1), (-1, -8, 2**63 - 1, 1), (2, 1, 7, 2), (3, 0, 9, 4)):
    _out = IMAGE[(slice(None),) * (_dim % 4) + (slice(*_bounds),)]
    case(
        f"slice backward {_dim} {_bounds}",
        aten.slice_backward.default,
        torch.randn(_out.shape, generator=_numbers),
        list(IMAGE.shape), _dim, *_bounds,
    )  # fmt: skip
for _dim, _index in ((1, 2), (-1, -1), (0, 0)):
    _grad = torch.randn(IMAGE.select(_dim, _index).shape, generator=_numbers)
    case(f"select backward {_dim}", aten.select_backward.default, _grad, IMAGE.shape, _dim, _index)
case("crop", aten.constant_pad_nd.default, IMAGE, [-1, -2, 0, -3], 0.0)
case("crop and pad", aten.constant_pad_nd.default, IMAGE, [-1, 2, 3, -3, 0, 1], 1.5)

_TIES = torch.randint(-1, 2, (2, 4, 8, 10), generator=_numbers).float()
_TIES[0, 0, 2:5, 3] = NAN
_TIES[0, 1, 3:6, 2:5] = -INF
_TIES[1, 1, :4, :5] = _TIES[1, 3, 5:, 7:] = -INF  # whole windows, in part in the padding
_TIES[1, 2, 4:6, 4:6] = INF
for _arguments in (
    ([2, 2], [2, 2], [0, 0], [1, 1], False),
    ([3, 3], [2, 2], [1, 1], [1, 1], False),
    ([3, 2], [1, 3], [1, 0], [1, 1], True),
    ([2, 3], [3, 2], [0, 1], [2, 1], True),
    ([1, 1], [2, 2], [0, 0], [1, 1], False),
):
    _out = aten.max_pool2d_with_indices(_TIES, *_arguments)[0]
    case(
        f"max pool backward {_arguments}",
        torch.ops.mlir_npu.max_pool2d_backward.default,
        torch.randn(_out.shape, generator=_numbers), _TIES, *_arguments,
    )  # fmt: skip

_DEEP = torch.stack([_TIES, _TIES.flip(3), _TIES.roll(1, 2), _TIES * 2], 2)
for _arguments in (
    ([2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False),
    ([3, 3, 2], [2, 2, 1], [1, 1, 1], [1, 1, 1], False),
    ([2, 2, 3], [1, 2, 2], [1, 0, 1], [1, 2, 1], True),
):
    _out = aten.max_pool3d_with_indices(_DEEP, *_arguments)[0]
    case(
        f"max pool 3d backward {_arguments}",
        torch.ops.mlir_npu.max_pool3d_backward.default,
        torch.randn(_out.shape, generator=_numbers), _DEEP, *_arguments,
    )  # fmt: skip

for _name, _x, _sizes in (
    ("2d", torch.randn(2, 3, 7, 12, generator=_numbers), ([3, 4], [1, 5], [9, 12])),
    ("3d", torch.randn(2, 3, 4, 6, 5, generator=_numbers), ([2, 3, 5], [3, 4, 2], [1, 1, 1])),
):
    for _size in _sizes:
        case(
            f"adaptive pool {_name} {_size}",
            getattr(aten, f"_adaptive_avg_pool{_name}").default,
            _x,
            _size,
        )
        _grad = torch.randn(2, 3, *_size, generator=_numbers)
        _backward = getattr(aten, f"_adaptive_avg_pool{_name}_backward").default
        case(f"adaptive pool {_name} {_size} backward", _backward, _grad, _x)
case("adaptive max pool 2d", aten.adaptive_max_pool2d.default, _TIES, [4, 2])
case("adaptive max pool 3d", aten.adaptive_max_pool3d.default, _DEEP, [2, 4, 5])

# extent 7 and 9; with pieces that repeat, that have steps, and that meet in one element
_ROWS = torch.tensor([0, 0, 0, 1, 1, 2, 2, 3, 3, 6])
_COLUMNS = torch.tensor([0, 2, 4, 4, -1])
for _name in ("index_put", "_unsafe_index_put"):
    for _indices in ([None, None, _ROWS[:, None], _COLUMNS], [None, None, None, _COLUMNS]):
        _values = IMAGE[tuple(slice(None) if i is None else i for i in _indices)]
        _put = getattr(aten, _name).default
        for _target in (torch.zeros_like(IMAGE), IMAGE):
            case(
                f"{_name} {len([i for i in _indices if i is not None])} {bool(_target.any())}",
                _put, _target, _indices, torch.randn(_values.shape, generator=_numbers), True,
            )  # fmt: skip
for _name in ("reflection", "replication"):
    for _x, _padding in (
        (torch.randn(2, 3, 7, generator=_numbers), [3, 2]),
        (IMAGE, [2, 1, 0, 3]),
        (_VOLUME, [1, 2, 0, 1, 3, 1]),
    ):
        _rank = len(_padding) // 2
        _out = getattr(aten, f"{_name}_pad{_rank}d").default(_x, _padding)
        case(
            f"{_name} {_rank}d backward",
            getattr(aten, f"{_name}_pad{_rank}d_backward").default,
            torch.randn(_out.shape, generator=_numbers), _x, _padding,
        )  # fmt: skip
