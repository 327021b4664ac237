"""Comparisons, choices, losses and reductions to one number for `decomposition_cases.CASES`."""

from __future__ import annotations

import torch

aten = torch.ops.aten
CASES: dict[str, tuple[torch._ops.OpOverload, tuple, dict]] = {}
_numbers = torch.Generator().manual_seed(2)
NAN, INF = float("nan"), float("inf")


def case(name: str, overload: torch._ops.OpOverload, *arguments: object, **options: object) -> None:
    CASES[name] = (overload, arguments, options)


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=_numbers)


X = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1e-5, 0.1, -0.1, 3, -3, 0.5, 1]).reshape(1, 2, 2, 3)
Y = X.flatten().roll(1).reshape(X.shape)  # infinities and NaN meet other numbers
Y[0, 1, 1] = X[0, 1, 1]
MASK = X > 0
OTHER = torch.tensor([True, False, True])
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    case(f"{_name} tensor", getattr(aten, _name).Tensor, X, Y)
    case(f"{_name} number", getattr(aten, _name).Scalar, X, 0.1)
case("gt without dimensions", aten.gt.Tensor, X, torch.tensor(0.5))
case("where", aten.where.self, MASK, X, Y)
case("where broadcast", aten.where.self, OTHER, X, torch.tensor([2.0]))
case("masked fill", aten.masked_fill.Scalar, X, OTHER, -INF)
case("maximum", aten.maximum.default, X, Y)
case("minimum", aten.minimum.default, X, Y)
case("clamp by tensors", aten.clamp.Tensor, rand(1, 2, 2, 3), rand(2, 3) - 1, rand(2, 1, 1) + 1)
case("clamp by a lower tensor", aten.clamp_min.Tensor, X, Y)
case("clamp by an upper tensor", aten.clamp_max.Tensor, X, Y)
case("sign", aten.sign.default, X)
case("sgn", aten.sgn.default, X)
for _name in ("and", "or", "xor"):
    case(f"logical {_name}", getattr(aten, f"logical_{_name}").default, MASK, OTHER)
    case(f"bitwise {_name}", getattr(aten, f"bitwise_{_name}").Tensor, MASK, OTHER)
case("logical not", aten.logical_not.default, MASK)
case("bitwise not", aten.bitwise_not.default, MASK)
case("mul by booleans", aten.mul.Tensor, rand(1, 2, 2, 3), MASK)
case("booleans to numbers", aten._to_copy.default, MASK, dtype=torch.float32)
case("booleans of a permuted tensor", aten.logical_not.default, MASK.permute(0, 2, 3, 1))
case("expand booleans", aten.expand.default, MASK, [4, 2, 2, 3])
case("cat booleans", aten.cat.default, [MASK, MASK], 1)

FINITE = torch.where(X.isinf(), 7.0, X)
case("celu whole", aten.celu.default, X, 1.5)
case("threshold", aten.threshold.default, X, 0.1, 0.5)
case("glu", aten.glu.default, X, 1)
case("log sigmoid", aten.log_sigmoid_forward.default, FINITE)
_, _power = aten.log_sigmoid_forward(FINITE)
case("log sigmoid backward", aten.log_sigmoid_backward.default, rand(*X.shape), FINITE, _power)
case("glu backward", aten.glu_backward.default, rand(1, 1, 2, 3), FINITE, 1)
case("dropout backward", aten.native_dropout_backward.default, rand(*X.shape), MASK, 1.25)
case("addcmul", aten.addcmul.default, rand(2, 3), rand(2, 3), rand(3), value=0.7)
case("addcdiv", aten.addcdiv.default, rand(2, 3), rand(2, 3), rand(3), value=0.7)
for _weight in (0.3, 0.75, -2):
    case(f"lerp {_weight}", aten.lerp.Scalar, rand(2, 3), rand(2, 3), _weight)
case("power 1", aten.pow.Tensor_Scalar, X, 1.0)

IMAGE = rand(2, 4, 7, 9)
for _name in ("sum", "mean"):
    case(f"{_name} of all", getattr(aten, _name).default, IMAGE)
    case(f"{_name} of one line", getattr(aten, _name).default, rand(11))
case("sum of all, kept", aten.sum.dim_IntList, IMAGE, [0, 1, 2, 3], True)
case("amax of all", aten.amax.default, IMAGE, [])
case("amin of all", aten.amin.default, IMAGE, [0, 1, 2, 3])
case("norm of all", aten.linalg_vector_norm.default, IMAGE)
case("number of a number", aten.mul.Tensor, torch.tensor(2.5), torch.tensor(-1.5))
case("expand a number", aten.expand.default, torch.tensor(2.5), [2, 3])

T = torch.where(torch.arange(12).reshape(X.shape) % 2 == 0, FINITE + 0.5, FINITE - 3)
UNIT = rand(1, 2, 2, 3).sigmoid()
for _reduction in (0, 1, 2):
    _grad = rand(*X.shape) if _reduction == 0 else rand(1)[0]
    for _name, _more in {"mse_loss": (), "smooth_l1_loss": (0.7,), "huber_loss": (0.7,)}.items():
        case(f"{_name} {_reduction}", getattr(aten, _name).default, FINITE, T, _reduction, *_more)
        case(
            f"{_name} backward {_reduction}",
            getattr(aten, f"{_name}_backward").default,
            _grad, FINITE, T, _reduction, *_more,
        )  # fmt: skip
    for _weight in (None, rand(2, 1, 1)):
        _given = _weight is not None
        case(
            f"bce backward {_reduction} {_given}",
            aten.binary_cross_entropy_backward.default,
            _grad, UNIT, UNIT.flip(0, 1), _weight, _reduction,
        )  # fmt: skip
        case(
            f"bce with logits {_reduction} {_given}",
            aten.binary_cross_entropy_with_logits.default,
            FINITE * 30, UNIT, _weight, _weight, _reduction,
        )  # fmt: skip
case("smooth l1 without a bend", aten.smooth_l1_loss.default, FINITE, T, 1, 0.0)
case("xlogy", aten.xlogy.Tensor, X.abs(), Y)
