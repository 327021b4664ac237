"""What the source of a program calls between its units."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from mlir_npu.errors import MismatchError

_ROUNDING = 1e-5  # of float32, with sums


def check(value: torch.Tensor, expected: bool | int | float, where: str) -> None:
    """Raises MismatchError if Python read another number when the program was captured: one that
    differs by more than rounding does, which depends on how a sum is made."""
    found = value.item()
    rounding = 0.0
    if value.is_floating_point():
        rounding = max(_ROUNDING, 2 * torch.finfo(value.dtype).eps)
    both_nan = found != found and expected != expected
    if not both_nan and not math.isclose(found, expected, rel_tol=rounding):
        raise MismatchError(
            f"{where}: the value is {found}, and was {expected} when the model was captured; what "
            "follows may differ, so capture it again for such inputs"
        )


def total(
    parts: Sequence[torch.Tensor | None],
    shape: Sequence[int],
    strides: Sequence[int],
    dtype: torch.dtype,
) -> torch.Tensor:
    """The sum of the tensors, laid out with these strides; None are zeros. One that is so already
    is itself the result."""
    parts = [part for part in parts if part is not None]
    if len(parts) == 1 and parts[0].stride() == tuple(strides) and parts[0].dtype is dtype:
        return parts[0]
    made = torch.empty_strided(shape, strides, dtype=dtype, device="cpu")
    if not parts:
        return made.zero_()
    made.copy_(parts[0])
    for part in parts[1:]:
        made.add_(part)
    return made


def view_gradient(
    gradient: torch.Tensor,
    base: tuple[Sequence[int], Sequence[int], torch.dtype],
    view: tuple[Sequence[int], Sequence[int], int],
) -> torch.Tensor:
    """For the base (shape, strides, dtype) of a view (shape, strides, offset)."""
    shape, strides, dtype = base
    made = torch.empty_strided(shape, strides, dtype=dtype, device="cpu").zero_()
    sizes, steps, offset = view
    repeated = [dim for dim, step in enumerate(steps) if step == 0 and sizes[dim] > 1]
    if repeated:
        gradient = gradient.sum(repeated, keepdim=True)
        sizes = gradient.shape
    made.as_strided(sizes, steps, offset).add_(gradient)
    return made
