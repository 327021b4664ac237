"""How far a compiled network is from the same network in float64, beside how far eager is.

Both round; neither is right. So a compiled result may be a few times as far from the float64 result
as eager's is, and where eager happens to be exact, a few units in the last place of the largest
value. Eager's error is the larger one of two runs, with images in either order of memory: gradients
that cancel to zero are all rounding, and one run says little of how much.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils import _pytree as pytree

TIMES_EAGER = 8
UNITS = 16  # in the last place of the largest value
# Gradients that are 0 but for rounding are measured by this part of the step's largest gradient.
LEAST_SCALE = 1e-3
_GRADIENT = "gradient of "

Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Deviation:
    """Of one tensor: largest differences from the float64 result, in parts of its largest value (of
    a gradient: or of LEAST_SCALE of the step's largest, if that is more)."""

    name: str
    ours: float
    eager: float

    @property
    def tolerance(self) -> float:
        return TIMES_EAGER * self.eager + UNITS * torch.finfo(torch.float32).eps

    @property
    def acceptable(self) -> bool:
        return self.ours <= self.tolerance  # false for NaN

    def __str__(self) -> str:
        return f"{self.name}: {self.ours:.1e}, eager {self.eager:.1e}"


def infer(model: nn.Module, inputs: Tensors) -> dict[str, torch.Tensor]:
    """Results of one call, by position."""
    with torch.no_grad():
        results = pytree.tree_leaves(model(*inputs))
    return {f"result {index}": result for index, result in enumerate(results)}


def train(model: nn.Module, inputs: Tensors) -> dict[str, torch.Tensor]:
    """Loss of one step, and the gradients of all parameters and inputs."""
    inputs = tuple(x.clone().requires_grad_(x.is_floating_point()) for x in inputs)
    model.zero_grad()
    loss = sum(
        (result.square() * _weights(result)).mean() for result in pytree.tree_leaves(model(*inputs))
    )
    loss.backward()
    named = [*model.named_parameters(), *((f"input {i}", x) for i, x in enumerate(inputs))]
    gradients = {f"{_GRADIENT}{name}": x.grad for name, x in named if x.grad is not None}
    return {"loss": loss.detach(), **gradients}


def deviations(
    model: nn.Module,
    compiled: Callable,
    inputs: Tensors,
    step: Callable[[Callable, Tensors], dict[str, torch.Tensor]],
) -> list[Deviation]:
    """`step` (infer or train) by float64, eager and the compiled network, compared. `compiled` must
    be a compiled copy of `model`, as a step changes the statistics of batch normalization.

    Raises ValueError where dtypes, shapes or strides of eager and compiled results differ.
    """
    exact = step(copy.deepcopy(model).double(), tuple(map(_double, inputs)))
    eager = [step(copy.deepcopy(model), inputs)]
    with contextlib.suppress(RuntimeError):  # views of images in one order only
        eager.append(step(*_channels_last(model, inputs)))
    ours = _without_zeros(_named(step(compiled, inputs)), exact)
    if exact.keys() != ours.keys():
        raise ValueError(f"missing or additional: {sorted(exact.keys() ^ ours.keys())}")
    _check_strides(model, inputs, step, eager[0], ours)
    least = LEAST_SCALE * max(
        (_largest(value) for name, value in exact.items() if name.startswith(_GRADIENT)), default=0
    )
    return [
        _deviation(
            name,
            exact[name],
            [e[name] for e in eager],
            ours[name],
            least if name.startswith(_GRADIENT) else 0.0,
        )
        for name in exact
    ]


def failures(found: Iterable[Deviation]) -> list[str]:
    return [str(deviation) for deviation in found if not deviation.acceptable]


def _weights(like: torch.Tensor) -> torch.Tensor:
    """A different weight for every element, so that mixed-up elements show."""
    weights = torch.linspace(0.5, 1.5, like.numel(), dtype=torch.float64)
    return weights.to(like.dtype).reshape(like.shape)


def _double(x: torch.Tensor) -> torch.Tensor:
    return x.double() if x.is_floating_point() else x


def _named(values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Of a compiled network, by the names of the network."""
    return {name.replace("_orig_mod.", ""): value for name, value in values.items()}


def _without_zeros(
    values: dict[str, torch.Tensor], known: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """AOTAutograd gives zeros to a parameter whose part of the results is not used after a graph
    break; eager gives nothing."""
    return {
        name: value
        for name, value in values.items()
        if name in known or not name.startswith(_GRADIENT) or value.count_nonzero()
    }


def _channels_last(model: nn.Module, inputs: Tensors) -> tuple[nn.Module, Tensors]:
    model = copy.deepcopy(model).to(memory_format=torch.channels_last)
    return model, tuple(
        x.to(memory_format=torch.channels_last) if x.ndim == 4 else x for x in inputs
    )


def _check_strides(
    model: nn.Module, inputs: Tensors, step: Callable, eager: dict, ours: dict
) -> None:
    """Strides are eager's, or those that PyTorch's tracing promises where these differ."""
    results = [name for name in eager if name.startswith("result")]
    if all(ours[name].stride() == eager[name].stride() for name in results):
        return
    traced = _named(step(torch.compile(copy.deepcopy(model), backend="aot_eager"), inputs))
    for name in results:
        if ours[name].stride() not in (eager[name].stride(), traced[name].stride()):
            raise ValueError(f"{name}: strides {ours[name].stride()}, not {eager[name].stride()}")


def _deviation(
    name: str,
    exact: torch.Tensor,
    eager: Sequence[torch.Tensor],
    ours: torch.Tensor,
    least_scale: float,
) -> Deviation:
    for what in ("dtype", "shape"):
        if getattr(ours, what) != getattr(eager[0], what):
            raise ValueError(f"{name}: {what} {getattr(ours, what)}, not {getattr(eager[0], what)}")
    scale = max(_largest(exact), least_scale, torch.finfo(torch.float32).tiny)

    def error(value: torch.Tensor) -> float:
        return _largest(value.double() - exact) / scale

    return Deviation(name, error(ours), max(map(error, eager)))


def _largest(value: torch.Tensor) -> float:
    """NaN if any element is; 0 of no elements."""
    return value.abs().max().item() if value.numel() else 0.0
